package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// statefulSet makes one with a Ready pod on a node. No controller makes another when it is evicted: ready does.
func (f *testFleet) statefulSet(node, name string, replicas, ready int) {
	f.t.Helper()
	labels := map[string]string{"app": name + "-0"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	template.Spec.Containers = []corev1.Container{{Name: name, Image: name}}
	s, err := f.client.AppsV1().StatefulSets("default").Create(context.Background(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	f.ready(name, ready)
	p := f.pod(node, name+"-0")
	body := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":%q,"uid":%q,"controller":true}]}}`, name, s.UID)
	_, err = f.client.CoreV1().Pods("default").Patch(context.Background(), p.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	assert.NilError(f.t, err)
}

// ready is the word of a StatefulSet's controller.
func (f *testFleet) ready(name string, ready int) {
	f.t.Helper()
	body := fmt.Sprintf(`{"status":{"replicas":%d,"readyReplicas":%d}}`, ready, ready)
	_, err := f.client.AppsV1().StatefulSets("default").Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	assert.NilError(f.t, err)
}

// The slot is held until what ran on the node is as Ready as before, also by a controller that comes later; what was
// broken before holds nothing up.
func TestWorkloadsAreAwaited(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	f.statefulSet("a", "web", 2, 2)
	f.statefulSet("a", "ill", 3, 1)
	_, stop := f.control(nil)
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("the baseline is noted", func() bool { d := a.marks().Disruption; return d != nil && d.Workloads != nil })
	assert.DeepEqual(t, a.marks().Disruption.Workloads, map[string]int{"StatefulSet/default/web": 2, "StatefulSet/default/ill": 1})
	f.ready("web", 1)
	f.until("workloads are awaited", a.waitsFor(plan.ReasonWorkloadsAwaited))
	assert.Assert(t, !a.node().Spec.Unschedulable)
	stop()
	f.control(nil)
	passBy(t, 3*time.Second)
	assert.Assert(t, a.marks().Disruption != nil, "done before they are back")
	writes := f.writes("a")
	passBy(t, 2*time.Second)
	assert.Equal(t, f.writes("a"), writes, "a wait writes nothing (L4)")
	f.ready("web", 2)
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, a.marks().Failure == nil)
}

// Workloads that don't come back end the attempt as failed, on a node that is in service.
func TestWorkloadsDoNotComeBack(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	f.statefulSet("a", "web", 2, 2)
	f.control(func(o *controller.Options) { o.Policy.Verify.Deadline = time.Second })
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("the baseline is noted", func() bool { d := a.marks().Disruption; return d != nil && d.Workloads != nil })
	f.ready("web", 1)
	f.until("a is done", a.updatedTo(v2))
	m := a.marks()
	assert.Equal(t, m.Failure.Reason, string(plan.ReasonWorkloadsNotReady))
	assert.Equal(t, m.Failure.Message, "StatefulSet default/web has 1 Ready pods, and had 2 before the drain")
	assert.DeepEqual(t, m.Failure.Broken, []string{v2})
	assert.Equal(t, m.History[len(m.History)-1].Outcome, marker.OutcomeFailed)
	assert.Assert(t, !a.node().Spec.Unschedulable && len(othersMarks(a.node())) == 0)
}

// A node takes no pods before those that it needs itself are Ready on it; without them it is Lost, and it goes on when
// they are.
func TestPodsOnTheNodeAreAwaited(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	f.control(func(o *controller.Options) {
		o.Policy.Verify.Pods = []policy.PodSelector{{Namespace: f.namespace, Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"cni"}}}}}
		o.Policy.Deadlines.Reboot, o.Policy.Deadlines.Return, o.Policy.Verify.Deadline = 5*time.Second, time.Second, time.Second
	})
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("pods are awaited", a.waitsFor(plan.ReasonPodsNotReady))
	assert.Assert(t, a.node().Spec.Unschedulable)
	f.until("a is Lost", a.waitsFor(plan.ReasonLost))
	_, err := f.client.CoreV1().Pods(f.namespace).Patch(context.Background(), "agent-a", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"cni"}}}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	f.until("a is updated", a.updatedTo(v2))
	assert.Assert(t, !a.node().Spec.Unschedulable)
}
