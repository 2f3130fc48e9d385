package controller_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// hold puts a pod on a node. The pod can't be evicted until letGo is called.
func (f *testFleet) hold(node string) (letGo func()) {
	f.t.Helper()
	name := "held-on-" + node
	f.pod(node, name)
	budgets := f.client.PolicyV1().PodDisruptionBudgets("default")
	_, err := budgets.Create(f.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	return func() { assert.NilError(f.t, budgets.Delete(f.t.Context(), name, metav1.DeleteOptions{})) }
}

// drains reports whether a node is cordoned and being drained.
func (m *machine) drains() bool {
	n := m.node()
	marks, _ := marker.Decode(n.Annotations)
	return n.Spec.Unschedulable && intent.PhaseOf(marks) == intent.PhaseDraining
}

// lastAttempt is the newest line of a node's history.
func (m *machine) lastAttempt() marker.Attempt {
	h := m.marks().History
	if len(h) == 0 {
		return marker.Attempt{}
	}
	return h[len(h)-1]
}

func (f *testFleet) slots() string {
	state, err := f.client.CoreV1().ConfigMaps(f.namespace).Get(f.t.Context(), kube.StateConfigMap, metav1.GetOptions{})
	assert.NilError(f.t, err)
	return state.Data["slots"]
}

// The attempt of a node that a user uncordons in the middle of its drain ends at once: no failure is counted, an Event says
// why, others go on, and it is left alone for a while before its turn comes again (S5, S9).
func TestUncordonedInTheMiddleOfADrain(t *testing.T) {
	f := newFleet(t, "a", "b")
	a, b := f.machines["a"], f.machines["b"]
	letGo := f.hold("a")
	f.control(func(o *controller.Options) {
		o.Policy.Eviction.Predict, o.Policy.PauseAfterUncordon = false, 3*time.Second
	})
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a drains", a.drains)
	f.cordon("a", false)
	f.until("a's attempt is abandoned", func() bool { return a.lastAttempt().Outcome == marker.OutcomeUncordoned })
	m := a.marks()
	assert.Assert(t, m.Failure == nil && m.Disruption == nil && m.Intent.RebootFrom == "")
	assert.Equal(t, a.rebooted(), 0)
	f.until("an Event is written", func() bool {
		events, err := f.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=UncordonedByUser,involvedObject.name=a"})
		return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "a user uncordoned the node")
	})
	f.until("b is updated", b.updatedTo(v2))
	f.until("a's turn comes again", a.drains)
	letGo()
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, !a.node().Spec.Unschedulable)
}

// Who then cordons it himself finds it cordoned at the end.
func TestCordonedByItsUserAfterADrainWasEnded(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	letGo := f.hold("a")
	f.control(func(o *controller.Options) {
		o.Policy.PauseAfterUncordon, o.Policy.CountUnavailable, o.Policy.Eviction.Predict = 2*time.Second, false, false
	})
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a drains", a.drains)
	f.cordon("a", false)
	f.until("a's attempt is abandoned", func() bool { return a.lastAttempt().Outcome == marker.OutcomeUncordoned })
	f.cordon("a", true)
	f.until("a's turn comes again", a.drains)
	assert.Assert(t, a.marks().Disruption.WasUnschedulable)
	letGo()
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, a.node().Spec.Unschedulable)
}

// A cordon that a user sets during the soak stays (S5).
func TestCordonedByItsUserDuringTheSoak(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.control(func(o *controller.Options) { o.Policy.Soak = 3 * time.Second })
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a soaks", func() bool { d := a.marks().Disruption; return d != nil && d.Soak != nil })
	f.cordon("a", true)
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, a.node().Spec.Unschedulable)
	assert.Equal(t, a.lastAttempt().Outcome, marker.OutcomeUpdated)
}

// A node that is deleted in the middle of its update takes its slot along, and another goes; made again under its old
// name it begins anew, as the node that it is (UID).
func TestDeletedNodesHoldNoSlot_kured_478_kured_847(t *testing.T) {
	f := newFleet(t, "a", "b")
	a, b := f.machines["a"], f.machines["b"]
	letGo := f.hold("a")
	f.control(func(o *controller.Options) { o.Policy.Eviction.Predict = false })
	f.until("a is managed", a.updatedTo(v1))
	f.annotateFor("b", string(marker.KeyPaused), "a goes first")
	f.release(v2)
	f.until("a drains", a.drains)
	f.annotateFor("b", string(marker.KeyPaused), nil)
	old := a.node()
	assert.Assert(t, strings.Contains(f.slots(), string(old.UID)))
	f.until("b is staged", func() bool { m := b.marks(); return intent.PhaseOf(m) == intent.PhaseStaged })
	assert.NilError(t, f.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}))
	// There must be somewhere for b's pods to go.
	_, err := f.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{string(marker.KeyInterfaceVersion): "2.0.0"}}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	a.kubelet(true)
	f.until("b is updated", b.updatedTo(v2))
	f.until("the slot of the old node is free", func() bool { return !strings.Contains(f.slots(), string(old.UID)) })
	assert.Assert(t, a.node().UID != old.UID)
	letGo()
	f.until("a is updated", a.updatedTo(v2))
	m := a.marks()
	assert.Assert(t, m.Failure == nil && len(m.History) == 1, "it remembers nothing of the node before: %+v", m.History)
	assert.Equal(t, a.rebooted(), 1)
	assert.Assert(t, !a.node().Spec.Unschedulable)
}

// However often the controller is restarted, each node reboots once for its update.
func TestRestartsMakeNoSecondReboot_CLUO_45(t *testing.T) {
	f := newFleet(t, "a", "b")
	seen := map[intent.Phase]bool{}
	_, stop := f.control(nil)
	for _, m := range f.machines {
		f.until(m.name+" is managed", m.updatedTo(v1))
	}
	f.release(v2)
	all := func(ok func(m *machine) bool) bool {
		for _, m := range f.machines {
			if !ok(m) {
				return false
			}
		}
		return true
	}
	f.until("all are updated", func() bool {
		for _, m := range f.machines {
			marks, _ := marker.Decode(m.node().Annotations)
			if phase := intent.PhaseOf(marks); marks.Disruption != nil && !seen[phase] {
				seen[phase] = true
				stop()
				_, stop = f.control(nil)
			}
		}
		return all(func(m *machine) bool { return m.updatedTo(v2)() })
	})
	assert.Assert(t, len(seen) >= 2, "restarted in %v", seen)
	for _, m := range f.machines {
		assert.Equal(t, m.rebooted(), 1)
		assert.Assert(t, !m.node().Spec.Unschedulable)
	}
}

// A node is never cordoned without the record of it, nor has a record without its cordon before it is back: both are
// one write, so no crash can come between.
func TestCordonAndRecordAreOneWrite_FLUO_118(t *testing.T) {
	f := newFleet(t, "a", "b")
	list, err := f.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	w, err := f.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	assert.NilError(t, err)
	var mu sync.Mutex
	var wrong []string
	cordons := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			m, _ := marker.Decode(n.Annotations)
			d := m.Disruption
			recorded := d != nil && !d.WasUnschedulable && d.Soak == nil && m.Intent.RebootFrom != ""
			mu.Lock()
			if n.Spec.Unschedulable {
				cordons++
			}
			if n.Spec.Unschedulable != recorded {
				wrong = append(wrong, n.Name+" "+n.ResourceVersion)
			}
			mu.Unlock()
		}
	}()
	_, stop := f.control(nil)
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a is cordoned", func() bool { return a.node().Spec.Unschedulable })
	stop()
	f.control(nil)
	for _, m := range f.machines {
		f.until(m.name+" is updated", m.updatedTo(v2))
	}
	w.Stop()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	assert.Assert(t, cordons > 0 && len(wrong) == 0, "%d sights of a cordon, without its record or it without one: %v", cordons, wrong)
}
