package kube

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Events writes what happened to a Node as Kubernetes Events on it.
type Events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	namespace   string
}

// NewEvents starts to write events until Stop.
func NewEvents(ctx context.Context, client kubernetes.Interface, namespace, host string) *Events {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(onceSink{&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")}})
	return &Events{broadcaster: b, namespace: namespace, recorder: b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "bottlerocket-update-operator", Host: host})}
}

// Event records one. It never blocks; what can't be written in time is dropped.
func (e *Events) Event(node, uid string, warning bool, reason, message string) {
	e.recorder.Event(onNode(node, uid), kind(warning), reason, printable(message))
}

// Once records one of which there is one at most by its id, however many processes record it.
func (e *Events) Once(id, node, uid string, warning bool, reason, message string) {
	e.recorder.AnnotatedEventf(onNode(node, uid), map[string]string{onceID: id}, kind(warning), reason, "%s", printable(message))
}

// Notice records one about the policy, on its ConfigMap, be it there or not.
func (e *Events) Notice(warning bool, reason, message string) {
	e.recorder.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: PolicyConfigMap}, kind(warning), reason, printable(message))
}

// maxMessage is how long the message of an Event may be, in bytes, by the newer API of Events and by the admission
// policy update-operator-controller-creations, less what client-go puts before it once there are many of a kind.
const maxMessage = 1024 - len("(combined from similar events): ")

// printable returns a message as it stands in an Event: it quotes nodes, hosts and the API server.
func printable(message string) string { return plain.Line(message, maxMessage) }

func onNode(name, uid string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(uid)}
}

func kind(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Stop ends the writing.
func (e *Events) Stop() { e.broadcaster.Shutdown() }

// onceID is an annotation by which the sink knows what Once records. It is not written.
const onceID = "id"

// onceSink names the Events that are recorded once after their ids, so that a second one is there already.
type onceSink struct{ record.EventSink }

// Create is for record.EventSink.
func (s onceSink) Create(e *corev1.Event) (*corev1.Event, error) {
	id, once := e.Annotations[onceID]
	if !once {
		return s.EventSink.Create(e)
	}
	named := e.DeepCopy()
	sum := sha256.Sum256([]byte(id))
	named.Name, named.Annotations = fmt.Sprintf("%s.%x", strings.TrimRight(fmt.Sprintf("%.200s", e.InvolvedObject.Name), "-."), sum[:8]), nil
	created, err := s.EventSink.Create(named)
	if apierrors.IsAlreadyExists(err) {
		return named, nil
	}
	return created, err
}
