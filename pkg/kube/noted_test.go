package kube

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// When waiting-for was written is what the managed fields say of its writer alone, also after the node was stripped.
func TestNotedAt(t *testing.T) {
	at := func(h int) *metav1.Time { return &metav1.Time{Time: time.Date(2026, 9, 20, h, 0, 0, 0, time.UTC)} }
	wrote := func(h int, key string) metav1.ManagedFieldsEntry {
		f := &metav1.FieldsV1{}
		f.SetRawBytes([]byte(`{"f:metadata":{"f:annotations":{"f:` + key + `":{}}}}`))
		return metav1.ManagedFieldsEntry{Manager: "x", Time: at(h), FieldsV1: f}
	}
	waits := string(marker.KeyWaitingFor)
	for _, tc := range []struct {
		name    string
		waits   string
		entries []metav1.ManagedFieldsEntry
		want    time.Time
	}{
		{"its writer and a later one", "Draining: x", []metav1.ManagedFieldsEntry{wrote(3, waits), wrote(5, "example.com/other")}, at(3).Time},
		{"two writers", "Draining: x", []metav1.ManagedFieldsEntry{wrote(3, waits), wrote(4, waits)}, at(4).Time},
		{"nothing waits", "", []metav1.ManagedFieldsEntry{wrote(3, waits)}, time.Time{}},
		{"not recorded", "Draining: x", nil, time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{waits: tc.waits}, ManagedFields: tc.entries}}
			for _, n := range []*corev1.Node{n, stripNode(n), stripNode(stripNode(n))} {
				assert.Assert(t, NotedAt(n).Equal(tc.want), "%s", NotedAt(n))
			}
		})
	}
}
