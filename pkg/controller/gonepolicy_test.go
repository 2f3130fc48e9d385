package controller_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A policy that is pruned in the middle of a freeze lets nothing start, under the leader that knew it and under the next
// one; an empty policy is the way back to the defaults (S6, S8).
func TestPolicyThatIsGoneKeepsNodesFromStarting(t *testing.T) {
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	policies := f.client.CoreV1().ConfigMaps(f.namespace)
	write := func(text string) {
		t.Helper()
		_, err := policies.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap},
			Data: map[string]string{kube.PolicyKey: text}}, metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	says := func(c *controller.Controller, reason plan.Reason, sentence string) func() bool {
		return func() bool {
			out, err := c.Plan(t.Context())
			return err == nil && len(out.Nodes) == 1 && out.Nodes[0].Reason == reason && strings.Contains(out.Nodes[0].Message.String(), sentence)
		}
	}
	write("version: 1\nfreezes: [{from: 2020-01-01T00:00:00Z, to: 2100-01-01T00:00:00Z, reason: the shop is full}]\nstageOutsideWindows: false\n")
	c, stop := f.control(nil)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("a waits for the end of the freeze", says(c, plan.ReasonFrozen, "the shop is full"))

	assert.NilError(t, policies.Delete(t.Context(), kube.PolicyConfigMap, metav1.DeleteOptions{}))
	f.until("a waits for the policy", says(c, plan.ReasonPolicyUnreadable, "update-policy is gone"))
	stop()
	c, _ = f.control(nil)
	f.until("a waits for the policy under the next leader", says(c, plan.ReasonPolicyUnreadable, "update-policy is gone"))
	passBy(t, 3*time.Second)
	assert.Assert(t, a.marks().Disruption == nil && a.marks().Intent.Target == "", "it was started without the policy")
	told := 0
	events, err := f.client.CoreV1().Events(f.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + string(plan.ReasonPolicyUnreadable)})
	assert.NilError(t, err)
	for _, e := range events.Items {
		if strings.Contains(e.Message, "update-policy is gone") {
			told++
		}
	}
	assert.Assert(t, told > 0, "%v", events.Items)

	write("version: 1\n")
	f.until("a is updated", a.updatedTo(v2))
}
