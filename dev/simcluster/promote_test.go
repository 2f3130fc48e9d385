package simcluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// script returns the shell lines between two marks of the page on promotion.
func script(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/promote.md")
	assert.NilError(t, err)
	_, rest, begins := strings.Cut(string(page), "<!-- "+name+":begin -->\n```sh\n")
	lines, _, ends := strings.Cut(rest, "```\n<!-- "+name+":end -->")
	assert.Assert(t, begins && ends, "the page has no %s", name)
	return lines
}

// pipeline runs shell lines as a pipeline does, with kubectl and its plugin.
type pipeline struct {
	dir string
	env []string
}

func newPipeline(t *testing.T, staging, production *simcluster.Cluster) *pipeline {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	bin := t.TempDir()
	assert.NilError(t, controlplane.Go(t.Context(), root, "build", "-buildvcs=false", "-o", filepath.Join(bin, "kubectl-bottlerocket"), "./cmd/kubectl-bottlerocket"))
	assert.NilError(t, os.Symlink(staging.Plane.Binaries().Kubectl, filepath.Join(bin, "kubectl")))
	return &pipeline{t.TempDir(), append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+bin,
		"STAGING="+staging.Plane.Kubeconfig(), "PRODUCTION="+production.Plane.Kubeconfig(), "BAKE=2s",
		"GIT_AUTHOR_NAME=pipeline", "GIT_AUTHOR_EMAIL=pipeline@example.com", "GIT_COMMITTER_NAME=pipeline", "GIT_COMMITTER_EMAIL=pipeline@example.com", "GIT_CONFIG_NOSYSTEM=1")}
}

func (p *pipeline) run(ctx context.Context, lines string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", lines)
	cmd.Dir, cmd.Env = p.dir, append(p.env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A second cluster goes to what the first one has proven, and no further: by the pipelines that the page shows, with
// the policy in the cluster and with the policy in Git. Its hosts end locked there, whatever newer is released (L1, S5).
func TestAnotherClusterFollows(t *testing.T) {
	staging := inWorld(t)
	now := version(staging.released)
	staging.rollout(t, nil)
	next, further := version(staging.released), version(staging.released+1)

	policy := "# production\n" + quick + "# only what staging has proven\nversions:\n  pin: " + now + "\n"
	production, err := simcluster.Start(t.Context(), simcluster.Config{
		Nodes: 2, Version: now, Policy: policy, Reboot: nodesim.Reboot{Mode: nodesim.RebootStale, Down: 700 * time.Millisecond},
		Args: map[string][]string{
			controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=" + renewal.String()},
			agent:      {"-refresh-interval=1s"},
		},
		Latencies: hostsim.Latencies{Refresh: 50 * time.Millisecond, Prepare: 200 * time.Millisecond, Activate: 200 * time.Millisecond},
		PodStop:   100 * time.Millisecond,
	})
	assert.NilError(t, err)
	defer production.Stop()
	w := &world{Cluster: production}
	defer func() {
		if t.Failed() {
			w.dump(t)
		}
	}()
	assert.NilError(t, production.Install(t.Context()))
	assert.NilError(t, production.Label(t.Context()))
	assert.NilError(t, production.AwaitOperator(t.Context(), bound, true))
	for _, v := range []string{next, further} {
		assert.NilError(t, production.Release(v))
	}
	lockedAt := func(v string) {
		t.Helper()
		assert.NilError(t, simcluster.Await(t.Context(), "production is at "+v+", and locked there", bound, func() (bool, error) {
			list, err := production.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				if !atRest(&list.Items[i], v) {
					return false, nil
				}
			}
			for _, m := range production.Fleet.Machines() {
				if s := m.Host().Snapshot(); s.Version != v || s.Settings.VersionLock != v {
					return false, nil
				}
			}
			return true, nil
		}))
	}
	lockedAt(now)

	p := newPipeline(t, staging.Cluster, production)
	inForce := func() string {
		t.Helper()
		m, err := production.Client.CoreV1().ConfigMaps(simcluster.Namespace).Get(t.Context(), kube.PolicyConfigMap, metav1.GetOptions{})
		assert.NilError(t, err)
		return m.Data[kube.PolicyKey]
	}
	pinned := strings.Replace(policy, "pin: "+now, "pin: "+next, 1)

	// Nothing is proven for long enough yet, and a cluster that can't be asked is an error.
	out, err := p.run(t.Context(), script(t, "promote"), "BAKE=1000h")
	assert.NilError(t, err, out)
	assert.Assert(t, strings.Contains(out, "Soaking: all nodes must run "+next), out)
	out, err = p.run(t.Context(), script(t, "promote"), "STAGING=/nowhere")
	var exit *exec.ExitError
	assert.Assert(t, errors.As(err, &exit) && exit.ExitCode() == 2, "%v: %s", err, out)
	assert.Equal(t, inForce(), policy)

	// With the policy in Git, the cluster's own is left to what keeps it there.
	_, err = production.Client.CoreV1().ConfigMaps(simcluster.Namespace).Patch(t.Context(), kube.PolicyConfigMap, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"x"}}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	assert.NilError(t, os.WriteFile(filepath.Join(p.dir, "policy.yaml"), []byte(policy), 0o600))
	out, err = p.run(t.Context(), "git init -q . && git add policy.yaml && git commit -q -m begin")
	assert.NilError(t, err, out)
	assert.NilError(t, simcluster.Await(t.Context(), "the pipeline commits the pin", patience, func() (bool, error) {
		if out, err = p.run(t.Context(), script(t, "promote-git")); err != nil {
			return false, err
		}
		content, err := os.ReadFile(filepath.Join(p.dir, "policy.yaml"))
		return string(content) == pinned, err
	}))
	out, err = p.run(t.Context(), script(t, "promote-git")+"git log --format=%s; git status --porcelain")
	assert.NilError(t, err, out)
	assert.Assert(t, strings.HasSuffix(out, "Pin Bottlerocket "+next+", which staging has proven\nbegin\n"), out)
	assert.Equal(t, inForce(), policy)
	out, err = p.run(t.Context(), script(t, "promote"))
	assert.Assert(t, err != nil && strings.Contains(out, "is kept by Argo CD"), out)
	assert.Equal(t, inForce(), policy)

	_, err = production.Client.CoreV1().ConfigMaps(simcluster.Namespace).Patch(t.Context(), kube.PolicyConfigMap, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":null}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	out, err = p.run(t.Context(), script(t, "promote"))
	assert.NilError(t, err, out)
	assert.Assert(t, strings.Contains(out, "the fleet: from "+now+" to "+next+", 2 nodes"), out)
	assert.Equal(t, inForce(), pinned)
	lockedAt(next)
	out, err = p.run(t.Context(), script(t, "promote"))
	assert.NilError(t, err, out)
	assert.Equal(t, out, "configmap/update-policy unchanged\n")
}
