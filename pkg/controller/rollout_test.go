package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

// The whole way of two nodes, one after the other: each reboots once and ends Idle, schedulable, on the new version,
// with no slot held (S1, S3, S5, S7, L1).
func TestRollout(t *testing.T) {
	f := newFleet(t, "a", "b")
	c, _ := f.control(nil)
	for _, m := range f.machines {
		f.until(m.name+" is managed", m.updatedTo(v1))
	}
	f.release(v2)
	for _, m := range f.machines {
		f.until(m.name+" is updated", m.updatedTo(v2))
		h := m.marks().History
		assert.Assert(t, h[len(h)-1].Out > 0, "for how long it was out of service: %+v", h)
		assert.Equal(t, m.rebooted(), 1)
		assert.Assert(t, !m.node().Spec.Unschedulable)
		assert.Equal(t, h[len(h)-1].Outcome, marker.OutcomeUpdated)
	}
	var last plan.Rollout
	f.until("the rollout has ended", func() bool {
		out, err := c.Plan(t.Context())
		if err != nil || len(out.Rollouts) == 0 {
			return false
		}
		last = out.Rollouts[len(out.Rollouts)-1]
		return last.Version == v2 && !last.UnderWay()
	})
	assert.Equal(t, last.Most, 2)
	state, err := f.client.CoreV1().ConfigMaps(f.namespace).Get(t.Context(), kube.StateConfigMap, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.DeepEqual(t, rollout.Decode(state.Data["rollouts"]).Rollouts[:1], []plan.Rollout{last})
}

// A node that a user had cordoned before its update ends cordoned (S5). It counts as one that is out of service
// before, during and after its own update, so the others wait for the user.
func TestForeignCordonStays(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	f.control(nil)
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.cordon("a", true)
	f.release(v2)
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, a.node().Spec.Unschedulable)
	b, c := f.machines["b"], f.machines["c"]
	f.until("b and c wait", func() bool {
		waits := func(m *machine) bool {
			w := m.marks().Waiting
			return w != nil && w.Reason == string(plan.ReasonUnavailableLimit)
		}
		return waits(b) && waits(c)
	})
	f.cordon("a", false)
	f.until("b is updated", b.updatedTo(v2))
	assert.Assert(t, !b.node().Spec.Unschedulable)
}

// A host with an update activated that its Node tells nothing of, as after the Node was deleted in the middle of it, waits
// for a person's word, and with it begins anew.
func TestActivatedAndForgotten(t *testing.T) {
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	f.release(v2)
	for _, c := range []hostsim.Command{hostsim.Refresh, hostsim.Prepare, hostsim.Activate} {
		assert.NilError(t, a.host.Foreign(c))
		f.until("the host is done", func() bool { return a.host.Snapshot().Running == "" })
	}
	c, _ := f.control(nil)
	f.until("a waits for a word", func() bool {
		out, err := c.Plan(t.Context())
		return err == nil && out.Nodes[0].Reason == plan.ReasonAnotherUpdater && strings.Contains(out.Nodes[0].Message.String(), string(marker.KeyRetry))
	})
	_, err := f.client.CoreV1().Nodes().Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"annotations":{"bottlerocket.aws/retry":""}}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	f.until("a is updated", a.updatedTo(v2))
	assert.Equal(t, a.rebooted(), 1)
}

// A boot that falls back ends in a failure record, verified on the old version, and not in a loop; the
// others go on (S7, S8, L1).
func TestRolledBack(t *testing.T) {
	f := newFleet(t, "a", "b")
	a, b := f.machines["a"], f.machines["b"]
	assert.NilError(t, a.host.SetFaults(hostsim.Fault{ID: hostsim.F17}))
	f.control(nil)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("b is updated", b.updatedTo(v2))
	f.until("a gave up", func() bool {
		m := a.marks()
		return m.Failure != nil && m.Disruption == nil && m.Report.Answer(m.Intent.ID) == marker.StateReady
	})
	m := a.marks()
	assert.Equal(t, m.Failure.Reason, string(plan.ReasonRolledBack))
	assert.DeepEqual(t, m.Failure.Versions, []string{v2})
	assert.Equal(t, m.Failure.Count, 1)
	assert.Equal(t, m.Report.Current, v1)
	assert.Assert(t, !a.node().Spec.Unschedulable)
	assert.Equal(t, a.rebooted(), 1)
	// The user's word forgets the failure; this time the boot succeeds.
	assert.NilError(t, a.host.SetFaults())
	f.annotate("a", marker.KeyRetry, "please")
	f.until("a is updated", a.updatedTo(v2))
	m = a.marks()
	assert.Assert(t, m.Failure == nil && !m.Retry)
}

// A node that doesn't come back is Lost: the others go on on its slot, it stays cordoned, and it
// finishes by itself when it comes back (L2, L3).
func TestLost(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	a := f.machines["a"]
	a.stayDown = true
	c, _ := f.control(func(o *controller.Options) {
		o.Policy.Deadlines.Reboot, o.Policy.Deadlines.Return = 3*time.Second, 30*time.Second
		o.Policy.MaxStaging = 1
	})
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("b is updated", f.machines["b"].updatedTo(v2))
	f.until("c is updated", f.machines["c"].updatedTo(v2))
	assert.Assert(t, a.node().Spec.Unschedulable)
	f.until("a is Lost", func() bool {
		out, err := c.Plan(t.Context())
		return err == nil && slices.ContainsFunc(out.Nodes, func(n plan.Decision) bool {
			return n.Node == "a" && n.Phase == intent.PhaseLost && n.Reason == plan.ReasonLost
		})
	})
	a.host.Boot()
	a.powerOn()
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, !a.node().Spec.Unschedulable)
	assert.Equal(t, a.rebooted(), 1)
}

// A PodDisruptionBudget that stands in the way only once the drain has begun holds it up for as long as it stands, the
// node says which pod, and nothing reboots meanwhile (S2, S9).
func TestBudgetBlocksDrain(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.pod("a", "web")
	f.budget("web")
	f.control(func(o *controller.Options) { o.Policy.Eviction.Predict = false })
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a says what blocks it", func() bool {
		w := a.marks().Waiting
		return w != nil && w.Reason == string(plan.ReasonEvictionBlocked) && strings.Contains(w.Message, "default/web")
	})
	assert.Equal(t, a.rebooted(), 0)
	assert.NilError(t, f.client.PolicyV1().PodDisruptionBudgets("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	f.until("a is updated", a.updatedTo(v2))
	f.until("b is updated", f.machines["b"].updatedTo(v2))
}

// A drain that can't finish never leads to a reboot: past its deadline the attempt is abandoned with a
// failure, schedulable, and the others go on (S2, L3).
func TestDrainDeadline(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	pod := f.pod("a", "stuck")
	pod.Finalizers = []string{"example.com/stuck"}
	_, err := f.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{})
	assert.NilError(t, err)
	f.control(func(o *controller.Options) { o.Policy.Drain = 2 * time.Second })
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("the attempt on a is abandoned", func() bool {
		m := a.marks()
		return m.Failure != nil && m.Failure.Reason == string(plan.ReasonDrainDeadline)
	})
	f.until("b is updated", f.machines["b"].updatedTo(v2))
	assert.Assert(t, !a.node().Spec.Unschedulable)
	assert.Equal(t, a.rebooted(), 0)
}

// One node's whole update costs at most 16 successful writes to its Node, and an idle fleet none (L4).
func TestWrites(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.control(nil)
	f.until("a is managed", a.updatedTo(v1))
	before := f.writes("a")
	f.release(v2)
	f.until("a is updated", a.updatedTo(v2))
	f.until("b is updated", f.machines["b"].updatedTo(v2))
	after := f.writes("a")
	t.Logf("%d writes to the node for one update", after-before)
	assert.Assert(t, after-before <= 16, "%d writes", after-before)
	rest := f.writes("")
	passBy(t, 5*time.Second)
	assert.Equal(t, f.writes("")-rest, 0, "writes at rest")
}

// Two controllers that both believe they lead never take more than one node at a time (S1).
func TestTwoControllers(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	over := f.watchHands(1)
	f.control(nil)
	f.withoutLease().control(nil)
	f.until("a is managed", f.machines["a"].updatedTo(v1))
	f.release(v2)
	for _, m := range f.machines {
		f.until(m.name+" is updated", m.updatedTo(v2))
		assert.Equal(t, m.rebooted(), 1)
	}
	assert.Equal(t, over(), 0)
}

// Taking the label off gives everything back (Leaving).
func TestLabelRemoved(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	pod := f.pod("a", "stuck")
	pod.Finalizers = []string{"example.com/stuck"}
	_, err := f.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{})
	assert.NilError(t, err)
	f.control(nil)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a drains", func() bool { return a.node().Spec.Unschedulable })
	a.halt()
	f.unlabel("a")
	f.until("the attempt on a is abandoned", func() bool {
		n := a.node()
		return !n.Spec.Unschedulable && n.Annotations[string(marker.KeyDisruption)] == "" && n.Annotations[string(marker.KeyIntentID)] == ""
	})
	f.until("b is updated", f.machines["b"].updatedTo(v2))
}

// A node whose marks can't be read is left alone and said so; the others go on (S8, S9).
func TestUnreadable(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.control(nil)
	f.until("a is managed", a.updatedTo(v1))
	a.halt()
	f.annotate("a", marker.KeyActionWanted, "explode")
	f.release(v2)
	f.until("b is updated", f.machines["b"].updatedTo(v2))
	assert.Equal(t, a.rebooted(), 0)
	f.until("an Event is written", func() bool {
		events, err := f.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=AnnotationUnreadable,involvedObject.name=a"})
		return err == nil && len(events.Items) == 1
	})
}
