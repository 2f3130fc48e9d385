package kube

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// Taking a slot that is held already changes the object, so that a leader who is about to free it from
// an older look meets a conflict. An update that changes nothing would leave the resourceVersion as it is.
func TestTakingASlotAlwaysWrites(t *testing.T) {
	ctx := t.Context()
	held := map[string]string{"uid-a": "a"}
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap},
		Data: map[string]string{slotsKey: `{"uid-a":"a"}`}})
	k := &Cluster{slots: slots{client: client, namespace: "ns"}}
	data := func() map[string]string {
		t.Helper()
		m, err := client.CoreV1().ConfigMaps("ns").Get(ctx, StateConfigMap, metav1.GetOptions{})
		assert.NilError(t, err)
		return m.Data
	}
	seen := []map[string]string{data()}
	for range 2 {
		got, err := k.Slots(ctx)
		assert.NilError(t, err)
		assert.DeepEqual(t, got, held)
		assert.NilError(t, k.ChangeSlots(ctx, held, nil))
		seen = append(seen, data())
	}
	assert.Assert(t, seen[0][takesKey] != seen[1][takesKey] && seen[1][takesKey] != seen[2][takesKey])
	assert.NilError(t, k.ChangeSlots(ctx, nil, []string{"uid-b"}))
	assert.DeepEqual(t, data(), seen[2])
}
