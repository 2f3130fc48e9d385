package controller_test

import (
	"maps"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// othersMarks are what load balancers and autoscalers read of a node.
func othersMarks(n *corev1.Node) map[string]string {
	out := map[string]string{}
	if v, ok := n.Labels[marker.LabelExcluded]; ok {
		out[marker.LabelExcluded] = v
	}
	for _, k := range marker.AutoscalerMarks() {
		if v, ok := n.Annotations[k]; ok {
			out[k] = v
		}
	}
	return out
}

func (f *testFleet) annotateFor(name, key string, value any) {
	f.t.Helper()
	f.patch(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// From the cordon to the end of the soak autoscalers see that a node is in somebody's hands, load balancers until it
// takes pods again; afterwards all of it is as it was (S5, brupop_798).
func TestMarksForOthers(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.control(func(o *controller.Options) { o.Policy.Soak, o.Policy.Balancers.Wait = 2*time.Second, time.Second })
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.annotateFor("a", marker.AnnotationDisrupt, "false")
	before := othersMarks(a.node())
	f.release(v2)
	f.until("load balancers are given time", a.waitsFor(policy.ReasonLeavingBalancers))
	n := a.node()
	assert.Assert(t, n.Spec.Unschedulable)
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.LabelExcluded: "true", marker.AnnotationScaleDown: "true", marker.AnnotationDisrupt: "true"})
	f.until("the soak runs", a.waitsFor(policy.ReasonSoaking))
	n = a.node()
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.AnnotationScaleDown: "true", marker.AnnotationDisrupt: "true"})
	assert.Assert(t, !n.Spec.Unschedulable)
	f.until("a is updated", a.updatedTo(v2))
	assert.DeepEqual(t, othersMarks(a.node()), before)
	b := f.machines["b"]
	f.until("b is updated", b.updatedTo(v2))
	assert.Equal(t, len(othersMarks(b.node())), 0)
}

// A node is given back in the middle of its drain by the next leader, from what stands on it: nothing of ours stays,
// and what somebody wrote meanwhile does (FLUO_118, kured_63, brupop_28, brupop_630).
func TestNeverLeftMarked(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	_, stop := f.control(func(o *controller.Options) { o.Policy.Balancers.Wait = 10 * time.Minute })
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	before := a.node()
	f.release(v2)
	f.until("a is cordoned", a.waitsFor(policy.ReasonLeavingBalancers))
	stop()
	f.annotateFor("a", marker.AnnotationDisrupt, "mine")
	f.annotate("a", marker.KeyPaused, "a human")
	f.control(nil)
	f.until("a is given back", func() bool { return a.marks().Disruption == nil })
	n := a.node()
	assert.Assert(t, !n.Spec.Unschedulable)
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.AnnotationDisrupt: "mine"})
	assert.Assert(t, maps.Equal(n.Labels, before.Labels))
}

// SUC_341: what a human did to a node before its update stands after it: the cordon, and his own mark for load
// balancers.
func TestSUC_341(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	f.control(nil)
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.patch("a", map[string]any{"metadata": map[string]any{"labels": map[string]any{marker.LabelExcluded: ""}}, "spec": map[string]any{"unschedulable": true}})
	f.release(v2)
	f.until("a is updated", a.updatedTo(v2))
	n := a.node()
	assert.Assert(t, n.Spec.Unschedulable)
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.LabelExcluded: ""})
}
