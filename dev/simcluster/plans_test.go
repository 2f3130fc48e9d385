package simcluster_test

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Two nodes of plans, behind all admission policies, go through two plans one after the other and one node at a time: a
// version, and content, which is brought again when a Secret changes and not before (S1, S7; system-upgrade-controller
// #77, #163, #225, #282).
func TestPlans(t *testing.T) {
	controlplane.SkipIfShort(t)
	const before, after = "v1.35.4+k3s1", "v1.36.3+k3s1"
	c, err := simcluster.Start(t.Context(), simcluster.Config{
		Nodes: 1, Version: version(0), Progress: os.Stderr,
		Args:   map[string][]string{controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=500ms"}},
		Policy: quick,
		Reboot: nodesim.Reboot{Mode: nodesim.RebootShutdown, Down: 500 * time.Millisecond}, PodStop: 100 * time.Millisecond,
	})
	assert.NilError(t, err)
	defer c.Stop()
	var upgrades, copies atomic.Int32
	does := func(p *corev1.Pod) nodesim.PlanRun {
		target := p.Annotations[kube.PlanTarget]
		if p.Labels[kube.PlanLabel] == "files" {
			copies.Add(1)
			return nodesim.PlanRun{Reboots: true, Message: target + " reboot"}
		}
		upgrades.Add(1)
		return nodesim.PlanRun{Reboots: true, Kubelet: target}
	}
	names := []string{"debian-1", "debian-2"}
	for _, name := range names {
		_, err := c.AddPlanned(t.Context(), name, before, does)
		assert.NilError(t, err)
	}
	seen := nodesim.Observe(t.Context(), c.Client)
	defer seen.Close()
	assert.NilError(t, c.Install(t.Context()))
	assert.NilError(t, c.InstallPlans(t.Context(), "k3s.yaml", "files.yaml"))
	assert.NilError(t, c.SetPolicy(t.Context(), quick+fmt.Sprintf(`plans:
- {name: k3s, nodeSelector: {}, apply: k3s-upgrade, target: {version: %s}, proof: kubeletVersion, effect: reboot}
- {name: files, nodeSelector: {}, apply: files, target: {content: true}, proof: content, effect: reboot}
`, after)))
	done := func(rounds int32) {
		t.Helper()
		assert.NilError(t, simcluster.Await(t.Context(), fmt.Sprintf("both nodes have what their plans want, in round %d", rounds), bound, func() (bool, error) {
			for _, name := range names {
				n, err := c.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				m, problems := marker.Decode(n.Annotations)
				if len(problems) > 0 || n.Status.NodeInfo.KubeletVersion != after || m.Disruption != nil || m.PlanDone["files"] == "" || copies.Load() < 2*rounds {
					return false, errors.Errorf("%s: %v, kubelet %s, intent %+v, report %+v, waits for %+v, history %+v", name, problems,
						n.Status.NodeInfo.KubeletVersion, m.Intent, m.Report, m.Waiting, m.History)
				}
			}
			return true, nil
		}))
	}
	done(1)
	assert.Equal(t, copies.Load(), int32(2), "each node gets the same content once")
	assert.Equal(t, upgrades.Load(), int32(2), "each node is updated once")
	content := func() string {
		n, err := c.Client.CoreV1().Nodes().Get(t.Context(), names[0], metav1.GetOptions{})
		assert.NilError(t, err)
		m, _ := marker.Decode(n.Annotations)
		return m.PlanDone["files"]
	}
	first := content()
	_, err = c.Kubectl(t.Context(), "-n", kube.PlansNamespace, "patch", "secret", "example-files", "-p", `{"stringData":{"example.conf":"answer = 43"}}`)
	assert.NilError(t, err)
	done(2)
	assert.Assert(t, content() != first)
	assert.Equal(t, seen.MaxUnschedulable(), 1)

	var outcomes []string
	for _, name := range names {
		n, err := c.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		assert.NilError(t, err)
		assert.Assert(t, !n.Spec.Unschedulable)
		m, _ := marker.Decode(n.Annotations)
		for _, a := range m.History {
			outcomes = append(outcomes, string(a.Outcome)+" "+a.Reason)
		}
	}
	slices.Sort(outcomes)
	assert.DeepEqual(t, slices.Compact(outcomes), []string{"updated Updated"})
	other, err := c.Client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Equal(t, len(other.Annotations[string(marker.KeyIntentID)]), 0, "a node without the label is left alone")
}
