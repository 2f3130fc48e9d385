package e2e_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A user drains a node in the middle of a rollout, while another one is updated: it stays cordoned until the user
// uncordons it (S5). Meanwhile it counts as out of service, so no other node starts (S1).
func TestUserDrains(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	home := w.home(t)
	w.release(t)
	first := w.reaches(t, w.isnt(t, home), intent.PhaseDraining, intent.PhaseRebooting)
	theirs := ""
	for _, n := range w.Nodes {
		if n.Name() != home && n.Name() != first.Name {
			theirs = n.Name()
		}
	}
	_, err := w.Kubectl(t.Context(), "drain", theirs, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=2m")
	assert.NilError(t, err)
	await(t, "the user's node is updated and still cordoned, and the last one waits for it", func() (bool, error) {
		nodes, err := w.views(t.Context())
		for _, n := range nodes {
			switch n.Name {
			case home:
				if m := n.Marks.Waiting; m == nil || m.Reason != string(plan.ReasonUnavailableLimit) {
					return false, err
				}
				continue
			case theirs:
				n.Unschedulable = !n.Unschedulable
			}
			if !w.rests(n) {
				return false, err
			}
		}
		return err == nil, err
	})
	_, err = w.Kubectl(t.Context(), "uncordon", theirs)
	assert.NilError(t, err)
	w.awaitRest(t)
	w.rebootedOnce(t, boots, asked)
}

// Pods of the operator are deleted and restarted in the middle of a rollout.
func TestPodsRestarted(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	w.release(t)
	n := w.reaches(t, anyNode, intent.PhaseStaging)
	_, err := w.Kubectl(t.Context(), "-n", manifest.Namespace, "delete", "pod", "--wait=false", "-l", manifest.LabelComponent+"=agent", "--field-selector", "spec.nodeName="+n.Name)
	assert.NilError(t, err)
	for _, what := range []string{"deployment/update-operator-controller", "deployment/update-operator-proxy", "daemonset/update-operator-agent"} {
		w.reaches(t, func(n fleet.Node) bool { return true }, intent.PhaseDraining, intent.PhaseRebooting, intent.PhaseReturning, intent.PhaseVerifying)
		_, err := w.Kubectl(t.Context(), "-n", manifest.Namespace, "rollout", "restart", what)
		assert.NilError(t, err)
	}
	w.awaitRest(t)
	w.rebootedOnce(t, boots, asked)
}
