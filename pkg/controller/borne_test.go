package controller_test

import (
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Of a node's pods no more are evicted within an hour than the policy lets, also by a pod that is made anew each time,
// and the node says so (S8, S9).
func TestAttackPodThatComesBack(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.pod("a", "web")
	f.control(func(o *controller.Options) { o.Policy.Eviction.PerHour = 3 })
	f.until("a is managed", a.updatedTo(v1))
	made := 1
	f.release(v2)
	f.until("a says that there is an end to it", func() bool {
		pods, err := f.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		assert.NilError(t, err)
		if len(pods.Items) == 0 && a.node().Spec.Unschedulable {
			f.pod("a", "web")
			made++
		}
		return a.waitsFor(policy.ReasonEvictionLimit, "3 pods were evicted from the node within an hour")()
	})
	assert.Equal(t, made, 4)
}
