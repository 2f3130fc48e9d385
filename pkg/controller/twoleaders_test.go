package controller_test

import (
	"context"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// policyText puts a policy in force, in place of the one that stood there.
func (f *testFleet) policyText(text string) {
	f.t.Helper()
	maps := f.client.CoreV1().ConfigMaps(f.namespace)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}, Data: map[string]string{kube.PolicyKey: text}}
	if _, err := maps.Update(f.t.Context(), m, metav1.UpdateOptions{}); err != nil {
		_, err = maps.Create(f.t.Context(), m, metav1.CreateOptions{})
		assert.NilError(f.t, err)
	}
}

// SUC_38: more nodes were out at once than the concurrency allowed, for their jobs raced. Here all nodes are staged, two
// controllers both believe that they lead, begin at the same moment and don't agree on which node goes first, and on one
// of the nodes a pod never ends: after no write is more than one node disrupted (S1), and the others are all updated (L1).
func TestSUC_38(t *testing.T) {
	f := newFleet(t, "a", "b", "c", "d")
	a := f.machines["a"]
	stuck := f.pod("a", "web")
	stuck.Finalizers = []string{"example.com/stuck"}
	_, err := f.client.CoreV1().Pods("default").Update(t.Context(), stuck, metav1.UpdateOptions{})
	assert.NilError(t, err)
	// Closed but for a leap day: all are staged, and nothing is cordoned yet.
	f.policyText("version: 1\nwindows: [{schedule: 0 0 29 2 *, duration: 1h}]\n")
	over := f.watchHands(1)
	// Its own node goes last with each of them.
	on := func(node string) func(*controller.Options) {
		return func(o *controller.Options) {
			o.NodeName, o.Policy.Drain = node, 3*time.Second
			o.Policy.RetryBase, o.Policy.RetryMax = time.Hour, time.Hour
		}
	}
	one, _ := f.control(on("b"))
	two, _ := f.withoutLease().control(on("a"))
	for _, m := range f.machines {
		f.until(m.name+" is managed", m.updatedTo(v1))
	}
	f.release(v2)
	for _, m := range f.machines {
		f.until(m.name+" is staged", func() bool { return intent.PhaseOf(m.marks()) == intent.PhaseStaged })
	}
	for _, c := range []*controller.Controller{one, two} {
		_, err := c.Plan(context.Background())
		assert.NilError(t, err, "both lead")
	}
	f.policyText("version: 1\n")
	for _, name := range []string{"b", "c", "d"} {
		f.until(name+" is updated", f.machines[name].updatedTo(v2))
		assert.Equal(t, f.machines[name].rebooted(), 1)
	}
	f.until("the attempt on a is abandoned", func() bool {
		m := a.marks()
		return m.Failure != nil && m.Failure.Reason == string(plan.ReasonDrainDeadline) && m.Disruption == nil && !a.node().Spec.Unschedulable
	})
	assert.Equal(t, a.rebooted(), 0)
	for _, c := range []*controller.Controller{one, two} {
		_, err := c.Plan(context.Background())
		assert.NilError(t, err, "both still lead")
	}
	assert.Equal(t, over(), 0, "more than one was out at once")
}
