package controller_test

import (
	"fmt"
	"maps"
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

// brupop_798: an autoscaler removed nodes that were being drained. From the cordon to the end of the soak autoscalers
// see that a node is being updated, load balancers until it takes pods again; afterwards all of it is as it was (S5).
func TestBrupop_798(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.control(func(o *controller.Options) { o.Policy.Soak, o.Policy.Balancers.Wait = 2*time.Second, time.Second })
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.annotateFor("a", marker.AnnotationDisrupt, "false")
	before := othersMarks(a.node())
	f.release(v2)
	f.until("load balancers are given time", a.waitsFor(plan.ReasonLeavingBalancers))
	n := a.node()
	assert.Assert(t, n.Spec.Unschedulable)
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.LabelExcluded: "true", marker.AnnotationScaleDown: "true", marker.AnnotationDisrupt: "true"})
	f.until("the soak runs", a.waitsFor(plan.ReasonSoaking))
	n = a.node()
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.AnnotationScaleDown: "true", marker.AnnotationDisrupt: "true"})
	assert.Assert(t, !n.Spec.Unschedulable)
	f.until("a is updated", a.updatedTo(v2))
	assert.DeepEqual(t, othersMarks(a.node()), before)
	b := f.machines["b"]
	f.until("b is updated", b.updatedTo(v2))
	assert.Equal(t, len(othersMarks(b.node())), 0)
}

// brupop_28 and brupop_630: nodes stayed cordoned when the controller was restarted in the middle of a drain. The next
// leader undoes all from what stands on it: nothing of ours stays, and what a user wrote meanwhile does.
func TestBrupop_28_brupop_630(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	_, stop := f.control(func(o *controller.Options) { o.Policy.Balancers.Wait = 10 * time.Minute })
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	before := a.node()
	f.release(v2)
	f.until("a is cordoned", a.waitsFor(plan.ReasonLeavingBalancers))
	stop()
	f.annotateFor("a", marker.AnnotationDisrupt, "mine")
	f.annotate("a", marker.KeyPaused, "a human")
	f.control(nil)
	f.until("the attempt on a is abandoned", func() bool { return a.marks().Disruption == nil })
	n := a.node()
	assert.Assert(t, !n.Spec.Unschedulable)
	assert.DeepEqual(t, othersMarks(n), map[string]string{marker.AnnotationDisrupt: "mine"})
	assert.Assert(t, maps.Equal(n.Labels, before.Labels))
}

// SUC_341: what a user did to a node before its update stands after it: the cordon, and the mark for load balancers.
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

// FLUO_118: cordon and record were two writes, and a crash between them left a cordon that was never taken back. Here,
// at every write of a node's way, through the end of one controller and the begin of the next, what we did stands
// together with its record.
func TestFLUO_118(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	a := f.machines["a"]
	list, err := f.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	w, err := f.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a", ResourceVersion: list.ResourceVersion})
	assert.NilError(t, err)
	seen := make(chan string, 1)
	go func() {
		cordons, wrong := 0, ""
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			m, problems := marker.Decode(n.Annotations)
			d := m.Disruption
			ours := d != nil && d.Soak == nil
			if len(problems) > 0 || n.Spec.Unschedulable != ours {
				wrong = fmt.Sprintf("cordoned %t, and the record is %s", n.Spec.Unschedulable, n.Annotations[string(marker.KeyDisruption)])
			}
			for key := range othersMarks(n) {
				if d == nil || !slices.Contains(slices.Collect(maps.Keys(d.Before)), key) {
					wrong = key + " stands without a record"
				}
			}
			if ours {
				cordons++
			}
		}
		if cordons == 0 {
			wrong = "nothing was cordoned"
		}
		seen <- wrong
	}()
	_, stop := f.control(func(o *controller.Options) { o.Policy.Balancers.Wait = time.Minute })
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a is cordoned", a.waitsFor(plan.ReasonLeavingBalancers))
	stop()
	f.control(nil)
	f.until("a is updated", a.updatedTo(v2))
	w.Stop()
	assert.Equal(t, <-seen, "")
}

// kured_63: a node that came back late, after its lock had been given to others, stayed cordoned for ever. Here it is
// uncordoned, and all marks go, whenever it comes back, and whichever controller leads then.
func TestKured_63(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.takesPods()
	a := f.machines["a"]
	a.stayDown = true
	short := func(o *controller.Options) {
		o.Policy.Deadlines.Reboot, o.Policy.Deadlines.Return, o.Policy.MaxStaging = 3*time.Second, 30*time.Second, 1
	}
	_, stop := f.control(short)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("b has gone on a's slot", f.machines["b"].updatedTo(v2))
	f.until("a is Lost", a.waitsFor(plan.ReasonLost))
	n := a.node()
	assert.Assert(t, n.Spec.Unschedulable && len(othersMarks(n)) == 3)
	stop()
	f.control(short)
	a.host.Boot()
	a.powerOn()
	f.until("a is updated", a.updatedTo(v2))
	n = a.node()
	assert.Assert(t, !n.Spec.Unschedulable && len(othersMarks(n)) == 0)
}
