package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Events tells people what happened to a Node, as Kubernetes Events on it.
type Events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	namespace   string
}

// NewEvents starts to write events until Stop.
func NewEvents(ctx context.Context, client kubernetes.Interface, namespace, host string) *Events {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return &Events{broadcaster: b, namespace: namespace, recorder: b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "bottlerocket-update-operator", Host: host})}
}

// Event records one. It never blocks; what can't be written in time is dropped.
func (e *Events) Event(node, uid string, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	e.recorder.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(uid)}, kind, reason, message)
}

// Notice records one about the policy, on its ConfigMap, be it there or not.
func (e *Events) Notice(warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	e.recorder.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: PolicyConfigMap}, kind, reason, message)
}

// Stop ends the writing.
func (e *Events) Stop() { e.broadcaster.Shutdown() }
