package nodesim

import (
	"encoding/json"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// A pod may get another address with its machine's next boot. Addresses of one family add up in a merge,
// and a pod with two of them is refused: its status then never changes again.
func TestStatusReplacesThePodsAddress(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}
	before, err := json.Marshal(pod)
	assert.NilError(t, err)
	r := &podRun{m: &Machine{}, ip: "10.0.0.2", conditions: map[corev1.PodConditionType]corev1.PodCondition{}}
	r.pod.Store(pod)
	patch, err := podStatusPatch(pod.UID, r.status(containerView{phase: corev1.PodRunning}))
	assert.NilError(t, err)
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	assert.NilError(t, err)
	var got corev1.Pod
	assert.NilError(t, json.Unmarshal(after, &got))
	assert.Equal(t, got.Status.PodIP, "10.0.0.2")
	assert.DeepEqual(t, got.Status.PodIPs, []corev1.PodIP{{IP: "10.0.0.2"}})
}
