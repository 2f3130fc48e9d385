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
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// before puts the checkout of the last commit but one that changed the product into dir, and returns its
// manifest.
func before(t *testing.T, dir, name string) manifest.Objects {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		assert.NilError(t, err, "git %s: %s", strings.Join(args, " "), out)
		return strings.TrimSpace(string(out))
	}
	commits := strings.Fields(git("log", "-2", "--format=%H", "--", "cmd", "pkg"))
	assert.Assert(t, len(commits) == 2, "the history of this checkout is too short for an upgrade: it needs two commits that changed cmd or pkg")
	archive := filepath.Join(dir, "checkout.tar")
	git("archive", "-o", archive, commits[1])
	out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput()
	assert.NilError(t, err, "%s", out)
	content, err := os.ReadFile(filepath.Join(dir, manifest.FileName))
	assert.NilError(t, err)
	o, err := manifest.Decode(content)
	assert.NilError(t, err)
	patch, err := os.ReadFile("patch.yaml")
	assert.NilError(t, err)
	o, err = o.Patched(patch)
	assert.NilError(t, err)
	o.SetImage(name)
	return o
}

// The operator is upgraded in the middle of a rollout, and taken back in the middle of the next one.
func TestUpgradeAndBack(t *testing.T) {
	w := inWorld(t)
	const name = "localhost/bottlerocket-update-operator:before"
	checkout := t.TempDir()
	old := before(t, checkout, name)
	assert.NilError(t, w.buildImage(t.Context(), checkout, name))
	t.Cleanup(func() { assert.Check(t, w.install(context.WithoutCancel(t.Context()), w.objects)) })
	w.operate(t, old)
	w.awaitRest(t)

	for _, next := range []manifest.Objects{w.objects, old} {
		boots, asked := w.machines()
		w.release(t)
		w.reaches(t, anyNode, intent.PhaseDraining, intent.PhaseRebooting)
		w.operate(t, next)
		w.awaitRest(t)
		w.rebootedOnce(t, boots, asked)
	}
	w.operate(t, w.objects)
	w.awaitRest(t)
}

// operate installs a version of the operator and waits until all its pods are of it.
func (w *world) operate(t *testing.T, o manifest.Objects) {
	t.Helper()
	assert.NilError(t, w.install(t.Context(), o))
	workload, err := o.Workload(manifest.Agent)
	assert.NilError(t, err)
	await(t, "all pods of the operator run "+workload.Container().Image, func() (bool, error) {
		for _, component := range []string{manifest.Controller, manifest.Proxy, manifest.Agent} {
			for _, p := range w.pods(t, component) {
				if p.Spec.Containers[0].Image != workload.Container().Image {
					return false, nil
				}
			}
		}
		return w.allReady(t.Context())
	})
}
