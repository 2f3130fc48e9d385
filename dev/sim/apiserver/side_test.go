package apiserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typedpolicy "k8s.io/client-go/kubernetes/typed/policy/v1"
	typedstorage "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
)

type object interface {
	metav1.Object
	runtime.Object
}

// side is one of the two servers, and what was seen of it. UIDs and resourceVersions differ between them;
// they are numbered in the order in which they were seen.
type side struct {
	t         *testing.T
	ctx       context.Context
	client    kubernetes.Interface
	namespace string
	evict     func(context.Context, *policyv1.Eviction) error
	watch     func(sel apiserver.Selection, from string) source

	seen           map[string][]object
	uids, versions map[string]int
	watches        []watching
}

// source returns the next event, and waits for it if it comes over the wire.
type source func() watch.Event

type watching struct {
	selection apiserver.Selection
	next      source
}

func newSide(t *testing.T, namespace string, client kubernetes.Interface) *side {
	return &side{t: t, ctx: t.Context(), client: client, namespace: namespace, seen: map[string][]object{}, uids: map[string]int{}, versions: map[string]int{}}
}

func (s *side) pods() typedcore.PodInterface { return s.client.CoreV1().Pods(s.namespace) }
func (s *side) budgets() typedpolicy.PodDisruptionBudgetInterface {
	return s.client.PolicyV1().PodDisruptionBudgets(s.namespace)
}
func (s *side) leases() typedcoordination.LeaseInterface {
	return s.client.CoordinationV1().Leases(s.namespace)
}

func (s *side) replicaSets() typedapps.ReplicaSetInterface {
	return s.client.AppsV1().ReplicaSets(s.namespace)
}
func (s *side) attachments() typedstorage.VolumeAttachmentInterface {
	return s.client.StorageV1().VolumeAttachments()
}
func (s *side) claims() typedcore.PersistentVolumeClaimInterface {
	return s.client.CoreV1().PersistentVolumeClaims(s.namespace)
}

// node is a name, of a node or what else has no namespace, that other sequences on the same server don't
// use.
func (s *side) node(name string) string { return s.namespace + "-" + name }

func (s *side) newNode(name, role string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.node(name), Labels: map[string]string{"seed": s.namespace, "role": role}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func newPod(name, node, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func newBudget(name, app string) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}
}

func newConfigMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c0"}, Data: map[string]string{"v": value}}
}

func newLease(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l0"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

func newReplicaSet(name, app string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": app}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: newPod("", "", "").Spec},
		},
	}
}

func (s *side) newAttachment(name, node string) *storagev1.VolumeAttachment {
	volume := "v"
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: s.node(name), Labels: map[string]string{"seed": s.namespace}},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
}

func newClaim(name, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"size": size}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "v",
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

func (s *side) eviction(pod string, o *metav1.DeleteOptions) string {
	return s.answer(nil, s.evict(s.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}, DeleteOptions: o}))
}

// evictOnce is an eviction without client-go's retries: it would sit out a Retry-After of ten seconds.
func evictOnce(client kubernetes.Interface) func(context.Context, *policyv1.Eviction) error {
	return func(ctx context.Context, e *policyv1.Eviction) error {
		return client.PolicyV1().RESTClient().Post().AbsPath("/api/v1").MaxRetries(0).
			Namespace(e.Namespace).Resource("pods").Name(e.Name).SubResource("eviction").Body(e).Do(ctx).Error()
	}
}

// old is a state of an object that was seen, or nil.
func (s *side) old(kind, name string, w which) object {
	seen := s.seen[kind+"/"+name]
	switch {
	case len(seen) == 0 || w == none:
		return nil
	case w == newest:
		return seen[len(seen)-1]
	}
	// Far enough back to be of an earlier object of that name sometimes.
	return seen[max(0, len(seen)-4)]
}

// answer is what matters of an answer. It remembers the object.
func (s *side) answer(o object, err error) string {
	if err != nil {
		return failure(err)
	}
	if o == nil {
		return "ok"
	}
	// An update that carries old ones is a write on a real server. Without any the server keeps its own.
	o.SetManagedFields(nil)
	k := kindOf(o) + "/" + o.GetName()
	s.seen[k] = append(s.seen[k], o)
	return s.describe(o)
}

func list[T any](s *side, items []T, err error) string {
	if err != nil {
		return failure(err)
	}
	var out []string
	for i := range items {
		out = append(out, s.answer(any(&items[i]).(object), nil))
	}
	return "[" + strings.Join(out, "; ") + "]"
}

func failure(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "error " + err.Error()
	}
	st := status.Status()
	out := fmt.Sprintf("%d %s", st.Code, st.Reason)
	if st.Details != nil {
		for _, c := range st.Details.Causes {
			if c.Type == policyv1.DisruptionBudgetCause {
				out += fmt.Sprintf(" %s (%s: %s) retry after %d", st.Message, c.Type, c.Message, st.Details.RetryAfterSeconds)
			}
		}
	}
	return out
}

func kindOf(o object) string { return strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.") }

func number(of map[string]int, value string) int {
	n, ok := of[value]
	if !ok {
		n = len(of) + 1
		of[value] = n
	}
	return n
}

func (s *side) describe(o object) string {
	out := fmt.Sprintf("%s %s uid=%d version=%d generation=%d labels=%v annotations=%v finalizers=%v owners=%d", kindOf(o), o.GetName(),
		number(s.uids, string(o.GetUID())), number(s.versions, o.GetResourceVersion()), o.GetGeneration(), o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), len(o.GetOwnerReferences()))
	if t := o.GetCreationTimestamp(); t.IsZero() {
		out += " not created"
	}
	if o.GetDeletionTimestamp() != nil {
		out += " deleting"
	}
	if g := o.GetDeletionGracePeriodSeconds(); g != nil {
		out += fmt.Sprintf(" grace=%d", *g)
	}
	switch o := o.(type) {
	case *corev1.Node:
		out += fmt.Sprintf(" unschedulable=%t taints=%v provider=%s phase=%s", o.Spec.Unschedulable, o.Spec.Taints, o.Spec.ProviderID, o.Status.Phase)
		for _, c := range o.Status.Conditions {
			out += fmt.Sprintf(" %s=%s", c.Type, c.Status)
		}
	case *corev1.Pod:
		out += fmt.Sprintf(" node=%s image=%s phase=%s", o.Spec.NodeName, o.Spec.Containers[0].Image, o.Status.Phase)
		for _, c := range o.Status.Conditions {
			out += fmt.Sprintf(" %s=%s(%s)", c.Type, c.Status, c.Reason)
		}
	case *policyv1.PodDisruptionBudget:
		st := o.Status
		out += fmt.Sprintf(" least=%s selector=%v observed=%d allowed=%d current=%d desired=%d", o.Spec.MinAvailable, o.Spec.Selector.MatchLabels,
			st.ObservedGeneration, st.DisruptionsAllowed, st.CurrentHealthy, st.DesiredHealthy)
		for _, p := range []string{"p0", "p1", "p2"} {
			if _, ok := st.DisruptedPods[p]; ok {
				out += " disrupted=" + p
			}
		}
		for _, c := range st.Conditions {
			out += fmt.Sprintf(" %s=%s(%s: %s)@%d", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration)
		}
	case *corev1.ConfigMap:
		out += fmt.Sprintf(" data=%v", o.Data)
	case *corev1.PodTemplate:
		out += fmt.Sprintf(" image=%s annotations=%v", o.Template.Spec.Containers[0].Image, o.Template.Annotations)
	case *corev1.Secret:
		out += fmt.Sprintf(" type=%s data=%s", o.Type, o.Data)
	case *coordinationv1.Lease:
		out += " holder=" + *o.Spec.HolderIdentity
	case *appsv1.ReplicaSet:
		out += fmt.Sprintf(" replicas=%d selector=%v image=%s status=%+v", *o.Spec.Replicas, o.Spec.Selector.MatchLabels, o.Spec.Template.Spec.Containers[0].Image, o.Status)
	case *storagev1.VolumeAttachment:
		out += fmt.Sprintf(" attacher=%s node=%s volume=%s attached=%t attach=%v detach=%v", o.Spec.Attacher, o.Spec.NodeName, *o.Spec.Source.PersistentVolumeName,
			o.Status.Attached, o.Status.AttachError, o.Status.DetachError)
	case *corev1.PersistentVolumeClaim:
		out += fmt.Sprintf(" access=%v volume=%s size=%s phase=%s", o.Spec.AccessModes, o.Spec.VolumeName, o.Spec.Resources.Requests.Storage(), o.Status.Phase)
	}
	return out
}

// version is the resourceVersion that a list has now.
func (s *side) version() string {
	l, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: "seed=" + s.namespace})
	assert.NilError(s.t, err)
	return l.ResourceVersion
}

// watchAll starts the watches that are compared.
func (s *side) watchAll(from string) {
	for _, sel := range []apiserver.Selection{
		{Resource: "nodes", LabelSelector: "seed=" + s.namespace},
		{Resource: "nodes", LabelSelector: "role=a,seed=" + s.namespace},
		{Resource: "nodes", FieldSelector: "metadata.name=" + s.node("n0")},
		{Resource: "pods", Namespace: s.namespace},
		{Resource: "pods", Namespace: s.namespace, LabelSelector: "app=x"},
	} {
		s.watches = append(s.watches, watching{sel, s.watch(sel, from)})
	}
}

// events are what a watch has shown up to the object that ends it.
func (s *side) events(i int) string {
	var out strings.Builder
	for {
		e := s.watches[i].next()
		o, ok := e.Object.(object)
		if !ok {
			return fmt.Sprintf("%s    %s %+v\n", out.String(), e.Type, e.Object)
		}
		fmt.Fprintf(&out, "    %s %s\n", e.Type, s.describe(o))
		if _, end := o.GetAnnotations()["end"]; end {
			return out.String()
		}
	}
}

func inMemory(server *apiserver.Server) func(apiserver.Selection, string) source {
	return func(sel apiserver.Selection, from string) source {
		w, err := server.Watch(sel, from)
		return func() watch.Event {
			if err != nil {
				return watch.Event{Type: watch.Error}
			}
			e, ok := w.Next()
			if !ok {
				return watch.Event{Type: "no event"}
			}
			return watch.Event{Type: e.Type, Object: e.Object}
		}
	}
}

func overTheWire(t *testing.T, client kubernetes.Interface) func(apiserver.Selection, string) source {
	return func(sel apiserver.Selection, from string) source {
		o := metav1.ListOptions{ResourceVersion: from, LabelSelector: sel.LabelSelector, FieldSelector: sel.FieldSelector}
		start := client.CoreV1().Nodes().Watch
		if sel.Resource == "pods" {
			start = client.CoreV1().Pods(sel.Namespace).Watch
		}
		w, err := start(t.Context(), o)
		assert.NilError(t, err)
		t.Cleanup(w.Stop)
		return func() watch.Event {
			select {
			case e := <-w.ResultChan():
				return e
			case <-time.After(30 * time.Second):
				return watch.Event{Type: "no event"}
			}
		}
	}
}
