package controller_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A pause that was set with the plugin holds while the policy is put back again and again, under the next leader, and
// in the plan by another policy. The plan says who set it. Once it ends the node is updated (S6).
func TestPauseOutlivesThePolicyBeingPutBack(t *testing.T) {
	f := newFleet(t, "a")
	a := f.machines["a"]
	f.takesPods()
	maps := f.client.CoreV1().ConfigMaps(f.namespace)
	write := func(name, key, text string) {
		t.Helper()
		_ = maps.Delete(t.Context(), name, metav1.DeleteOptions{})
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
			Data: map[string]string{key: text}}, metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	putBack := func() { write(kube.PolicyConfigMap, kube.PolicyKey, "version: 1\nsoak: 0s\n") }
	putBack()
	write(kube.PauseConfigMap, kube.PauseKey, `{"fleet": {"reason": "moving", "by": "ann", "at": "2026-01-05T12:00:00Z"}}`)
	c, stop := f.control(nil)
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	paused := func(out plan.Plan, err error) bool {
		return err == nil && len(out.Nodes) == 1 && out.Nodes[0].Reason == plan.ReasonPolicyPaused &&
			strings.Contains(out.Nodes[0].Message.String(), "moving (by ann at 2026-01-05 12:00 UTC, in ConfigMap update-pause)")
	}
	waits := func() bool { return paused(c.Plan(t.Context())) }
	f.until("a waits", waits)
	assert.Assert(t, paused(c.PlanBy(t.Context(), []byte("version: 1\nmaxUnavailable: 2\n"))))
	for range 5 {
		putBack()
		passBy(t, 200*time.Millisecond)
	}
	f.until("a waits beside the policy that was put back", waits)
	stop()
	c, _ = f.control(nil)
	f.until("a waits under the next leader", waits)
	assert.Assert(t, a.marks().Intent.Target == "", "it was started in the pause")

	write(kube.PauseConfigMap, kube.PauseKey, "{}")
	f.until("a is updated", a.updatedTo(v2))
}
