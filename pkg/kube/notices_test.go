package kube

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A slot that is taken while it is written down that a message was sent doesn't have the message sent again.
func TestRecordingNoticesBesideSlots(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap}})
	k := &Cluster{slots: slots{client: client, namespace: "ns"}}
	conflicts := 2
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, StateConfigMap, nil)
	})
	assert.NilError(t, k.RecordNotices(t.Context(), "", "first"))
	conflicts = 1000
	assert.ErrorIs(t, k.RecordNotices(t.Context(), "first", "second"), ErrConflict)
	assert.Assert(t, conflicts > 900, "%d", conflicts)
}
