package kube

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// What is read once shows what a Cluster sees, and nothing is written.
func TestObjectsShowWhatAClusterShows(t *testing.T) {
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Labels: map[string]string{string(marker.KeyInterfaceVersion): "2.0.0"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Annotations: map[string]string{
			string(marker.KeyDisruption): `{"since":"2026-09-20T10:00:00Z"}`, "foreign": "x"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: corev1.PodSpec{NodeName: "b"},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: corev1.PodSpec{NodeName: "nowhere"}},
	)
	objects, err := ReadObjects(t.Context(), client, namespace, "")
	assert.NilError(t, err)
	for _, a := range client.Actions() {
		assert.Equal(t, a.GetVerb(), "list")
	}
	got := objects.Views()
	nodes, err := watching(t, client).Nodes(t.Context())
	assert.NilError(t, err)
	assert.Equal(t, len(got), len(nodes))
	for i := range nodes {
		assert.Assert(t, sameView(got[i], nodes[i]), "%+v\n%+v", got[i], nodes[i])
	}
}
