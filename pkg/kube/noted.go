package kube

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// NotedAt returns when the writer of the annotation waiting-for last wrote to a Node, by the API server's clock: what
// the annotation says was so then. It is zero where there is no such annotation, or the API server didn't record it.
func NotedAt(n *corev1.Node) time.Time {
	var at time.Time
	for _, e := range noted(n) {
		if e.Time.After(at) {
			at = e.Time.Time
		}
	}
	return at
}

// noted returns what stripNode keeps of a Node's managed fields: the entries that hold waiting-for, which only nodes in
// progress have, without the fields.
func noted(n *corev1.Node) []metav1.ManagedFieldsEntry {
	if n.Annotations[string(marker.KeyWaitingFor)] == "" {
		return nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, e := range n.ManagedFields {
		if e.Time == nil {
			continue
		}
		// One without fields was stripped already.
		if e.FieldsV1 == nil || strings.Contains(e.FieldsV1.GetRawString(), `"f:`+string(marker.KeyWaitingFor)+`"`) {
			kept = append(kept, metav1.ManagedFieldsEntry{Time: e.Time})
		}
	}
	return kept
}
