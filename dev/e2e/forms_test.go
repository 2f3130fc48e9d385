package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// takeOff removes the operator in the middle of a rollout, by `make undeploy` with what deletes its objects, and looks that
// the nodes are as if it had never been there.
func (w *world) takeOff(t *testing.T, remove string) {
	t.Helper()
	w.release(t)
	w.reaches(t, anyNode, intent.PhaseDraining, intent.PhaseRebooting)
	root, err := controlplane.Root()
	assert.NilError(t, err)
	out, err := w.Run(t.Context(), root, "env", "NAMESPACE="+w.namespace, "REMOVE="+remove, "sh", "dev/undeploy.sh")
	t.Log(out)
	assert.NilError(t, err)
	w.untouched(t)
	// An update that was activated and not booted stays on its host, and another operator takes it for another updater's.
	for _, n := range w.Nodes {
		if n.Host.Snapshot().State == hostsim.Ready {
			assert.NilError(t, n.Host.Foreign(hostsim.Deactivate))
		}
	}
}

// operated is the cluster with the operator installed in another form, which puts it in place as it was before, and then
// as it is now.
func operated(t *testing.T, w *world, namespace string, install, upgrade func()) {
	t.Helper()
	w.takeOff(t, "")
	w.namespace = namespace
	t.Cleanup(func() {
		w.namespace = manifest.Namespace
		ctx := context.WithoutCancel(t.Context())
		assert.Check(t, w.install(ctx, w.objects))
		for _, n := range w.Nodes {
			_, err := w.Kubectl(ctx, "label", "node", n.Name(), labelled)
			assert.Check(t, err)
		}
	})
	install()
	for _, n := range w.Nodes {
		_, err := w.Kubectl(t.Context(), "label", "node", n.Name(), labelled)
		assert.NilError(t, err)
	}
	w.awaitRest(t)
	upgrade()
	await(t, "all pods are Ready", func() (bool, error) { return w.allReady(t.Context()) })
	boots, asked := w.machines()
	w.release(t)
	w.awaitRest(t)
	w.rebootedOnce(t, boots, asked)
}

// lastOf is the checkout in which some paths were before they were changed last; this one if that is not known, or if they
// were not there.
func lastOf(t *testing.T, path string) string {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	git := exec.Command("git", "log", "-2", "--format=%H", "--", path)
	git.Dir = root
	out, err := git.Output()
	assert.NilError(t, err)
	commits := strings.Fields(string(out))
	if len(commits) < 2 {
		return root
	}
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", "git archive "+commits[1]+" | tar -x -C "+dir)
	archive.Dir = root
	out, err = archive.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
		return root
	}
	return dir
}

// bootIDs gives the agents the file of their node's boot ID, which on these nodes isn't the kernel's.
const bootIDs = `{"spec": {"template": {"spec": {
	"containers": [{"name": "agent", "volumeMounts": [{"name": "boot-id", "mountPath": "/host/boot-id", "readOnly": true}]}],
	"volumes": [{"name": "boot-id", "hostPath": {"path": "/etc/boot-id", "type": "File"}}]}}}}`

// Helm installs the operator as the chart was before, upgrades it, and removes it; a rollout goes through each time.
func TestHelm(t *testing.T) {
	w := inWorld(t)
	root, err := controlplane.Root()
	assert.NilError(t, err)
	dir := t.TempDir()
	helm := filepath.Join(dir, "helm")
	assert.NilError(t, controlplane.Go(t.Context(), filepath.Join(root, "dev", "release"), "build", "-o", helm, "helm.sh/helm/v4/cmd/helm"))
	values := filepath.Join(dir, "values.yaml")
	assert.NilError(t, os.WriteFile(values, []byte(`
image: {registry: localhost, repository: bottlerocket-update-operator, tag: e2e}
policy: {version: 1, soak: 2s, retry: {base: 5s}, deadlines: {reboot: 40s}}
plans: {enabled: true}
controller: {extraArgs: [-lease-duration=5s, -lease-renew-deadline=3s, -lease-retry-period=1s]}
agent: {extraArgs: [-refresh-interval=3s, -boot-id-file=/host/boot-id]}
`), 0o600))
	run := func(args ...string) {
		t.Helper()
		out, err := w.Run(t.Context(), dir, append([]string{helm, "-n", w.namespace}, args...)...)
		t.Log(out)
		assert.NilError(t, err)
	}
	chart := filepath.Join("charts", "bottlerocket-update-operator")
	operated(t, w, manifest.Namespace, func() {
		run("install", "update-operator", filepath.Join(lastOf(t, chart), chart), "-f", values, "--create-namespace",
			// The policies that stay without plans are from the manifest.
			"--take-ownership")
		_, err := w.Kubectl(t.Context(), "-n", w.namespace, "patch", "daemonset", "update-operator-agent", "-p", bootIDs)
		assert.NilError(t, err)
	}, func() {
		run("upgrade", "update-operator", filepath.Join(root, chart), "--reuse-values", "--set", "forceDrain=true")
	})
	w.takeOff(t, helm+" -n "+w.namespace+" uninstall update-operator")
	_, err = w.Kubectl(t.Context(), "delete", "namespace", w.namespace)
	assert.NilError(t, err)
}

// kustomize does so too, in another namespace, as docs/install.md says.
func TestKustomize(t *testing.T) {
	w := inWorld(t)
	root, err := controlplane.Root()
	assert.NilError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	assert.NilError(t, err)
	_, patches, found := strings.Cut(string(page), "```yaml\npatches:\n")
	assert.Assert(t, found)
	patches, _, _ = strings.Cut(patches, "```")
	patch, err := os.ReadFile("patch.yaml")
	assert.NilError(t, err)
	dir := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "patch.yaml"), patch, 0o600))
	use := func(checkout string) {
		t.Helper()
		checkout, err := filepath.Rel(dir, checkout)
		assert.NilError(t, err)
		assert.NilError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [`+checkout+`]
components: [`+checkout+`/components/plans]
images:
- {name: public.ecr.aws/bottlerocket/bottlerocket-update-operator, newName: localhost/bottlerocket-update-operator, newTag: e2e}
patches:
- path: patch.yaml
`+patches), 0o600))
		out, err := w.Kubectl(t.Context(), "apply", "-k", dir)
		t.Log(out)
		assert.NilError(t, err)
	}
	operated(t, w, "ops", func() {
		use(lastOf(t, "components"))
		assert.NilError(t, w.setPolicy(t.Context(), quick))
	}, func() { use(root) })
	w.takeOff(t, `"$KUBECTL" delete -k `+dir+` -l '!bottlerocket.aws/keep'`)
}
