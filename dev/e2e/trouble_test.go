package e2e_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

func (w *world) isnt(t *testing.T, name string) func(fleet.Node) bool {
	t.Helper()
	return func(n fleet.Node) bool { return n.Name != name }
}

// The power of the controller's node is cut while another node drains: what was begun is finished by
// the next leader (S1, S3, L1).
func TestPowerCutOfTheController(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	home := w.home(t)
	w.release(t)
	n := w.reaches(t, w.isnt(t, home), intent.PhaseDraining)
	began := time.Now()
	assert.NilError(t, w.Node(home).PowerOff(t.Context()))
	t.Logf("%s lost its power while %s drained", home, n.Name)
	assert.NilError(t, w.Node(home).PowerOn(t.Context()))
	w.awaitRest(t)
	t.Logf("all nodes were updated %s later", time.Since(began).Round(time.Second))
	w.rebootedOnce(t, boots, asked)
}

// A node that boots the old version is given back and remembered; the others go on. It is tried again when
// a user asks for it.
func TestRollback(t *testing.T) {
	w := inWorld(t)
	bad := w.other(t)
	assert.NilError(t, bad.Host.SetFaults(hostsim.Fault{ID: hostsim.F17, Version: version(w.released + 1)}))
	w.release(t)
	await(t, "the others are updated and it is given back", func() (bool, error) {
		nodes, err := w.views(t.Context())
		for _, n := range nodes {
			if n.Name == bad.Name() {
				f := n.Marks.Failure
				if f == nil || f.Reason != string(plan.ReasonRolledBack) || n.Disrupted() || n.Unschedulable {
					return false, err
				}
			} else if !w.rests(n) {
				return false, err
			}
		}
		return err == nil, err
	})
	assert.Equal(t, bad.Host.Snapshot().Version, version(w.released-1))
	assert.NilError(t, bad.Host.SetFaults())
	_, err := w.Kubectl(t.Context(), "annotate", "node", bad.Name(), string(marker.KeyRetry)+"=please")
	assert.NilError(t, err)
	w.awaitRest(t)
}

// A node never comes back: it is Lost and says so, the others go on (L2, L3), and it finishes by itself
// when its power returns.
func TestNeverComesBack(t *testing.T) {
	w := inWorld(t)
	gone := w.other(t)
	gone.StayDark(true)
	w.release(t)
	await(t, "it is Lost and the others are updated", func() (bool, error) {
		nodes, err := w.views(t.Context())
		for _, n := range nodes {
			if n.Name == gone.Name() {
				if n.Marks.Waiting == nil || n.Marks.Waiting.Reason != string(plan.ReasonLost) {
					return false, err
				}
			} else if !w.rests(n) {
				return false, err
			}
		}
		return err == nil, err
	})
	out, err := w.Kubectl(t.Context(), "get", "events", "-A", "--field-selector", "reason=Lost,involvedObject.name="+gone.Name(), "-o", "jsonpath={.items[*].message}")
	assert.NilError(t, err)
	assert.Check(t, out != "", "no Event tells of it")
	gone.StayDark(false)
	assert.NilError(t, gone.PowerOn(t.Context()))
	w.awaitRest(t)
}

// The API server is killed in the middle of a rollout and started again.
func TestAPIServerKilled(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	w.release(t)
	for _, phase := range []intent.Phase{intent.PhaseDraining, intent.PhaseRebooting} {
		w.reaches(t, anyNode, phase)
		w.Plane.StopAPIServer()
		time.Sleep(3 * time.Second) // an outage
		assert.NilError(t, w.Plane.StartAPIServer(t.Context()))
	}
	w.awaitRest(t)
	w.rebootedOnce(t, boots, asked)
}

// Kubelets are restarted under the agents, and the host's socket is replaced: in each phase on a node.
func TestKubeletAndSocketRestarted(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	w.release(t)
	for _, phase := range []intent.Phase{intent.PhaseStaging, intent.PhaseDraining, intent.PhaseVerifying} {
		n := w.Node(w.reaches(t, anyNode, phase).Name)
		if phase == intent.PhaseStaging {
			assert.NilError(t, n.RestartHostAPI())
			continue
		}
		restart(t, n, "kubelet")
	}
	w.awaitRest(t)
	w.rebootedOnce(t, boots, asked)
}

func restart(t *testing.T, n *realcluster.Node, program string) {
	t.Helper()
	// It may be down for its reboot already.
	if n.Up() {
		assert.Check(t, n.Restart(t.Context(), program))
	}
}
