package controller_test

import (
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

func freshTaint() corev1.Taint {
	return corev1.Taint{Key: marker.TaintFresh, Effect: corev1.TaintEffectNoSchedule}
}

// othersTaints are a node's taints without that of new nodes.
func othersTaints(n *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t == freshTaint() })
}

// A new node goes to what another of its group has proven, though its host would choose the version after that, and
// loses its taint with the cordon. Taints of others and the host's setting end as they were (S5).
func TestFreshNode(t *testing.T) {
	f := newFleet(t, "a")
	f.takesPods()
	f.control(func(o *controller.Options) { o.Policy.Versions.Hold = v2 })
	f.release(v2)
	f.until("a is updated", f.machines["a"].updatedTo(v2))
	f.release("1.3.0")

	since := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	b := f.add("b", corev1.Taint{Key: "example.com/startup", Value: "x", Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}, freshTaint(),
		corev1.Taint{Key: marker.TaintFresh, Value: "x", Effect: corev1.TaintEffectPreferNoSchedule})
	others := othersTaints(b.node())
	f.until("b is updated", b.updatedTo(v2))
	f.until("b is unlocked", func() bool { return b.marks().Lock == nil })
	assert.Equal(t, b.rebooted(), 1)
	assert.Equal(t, b.host.Snapshot().Settings.VersionLock, marker.LockLatest)
	n := b.node()
	assert.DeepEqual(t, n.Spec.Taints, others)
	assert.Assert(t, !n.Spec.Unschedulable)
	assert.Equal(t, b.marks().Fresh.Why, string(plan.ReasonUncordoned))
}

// A new node whose agent never comes holds no capacity back for longer than its deadline (L2).
func TestFreshNodeWithoutAgent(t *testing.T) {
	f := newFleet(t)
	f.control(func(o *controller.Options) { o.Policy.FreshNodes.Deadline = 2 * time.Second })
	b := f.add("b", freshTaint())
	b.powerOff()
	f.until("b has lost its taint", func() bool { return len(othersTaints(b.node())) == len(b.node().Spec.Taints) })
	assert.Equal(t, b.marks().Fresh.Why, string(plan.ReasonFreshOverdue))
}
