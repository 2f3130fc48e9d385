package apiserver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Server is the API server. Make one with New.
type Server struct {
	now      func() time.Time
	revision int64
	// compacted is the oldest revision that can be read.
	compacted int64
	uids      int64

	resources map[string]*resource
	// byNode are the pods of each node, sorted by key: what lists by spec.nodeName ask for.
	byNode    map[string][]*corev1.Pod
	selectors map[string]*selector
	// qualified are names of labels and annotations that were found valid.
	qualified map[string]bool

	onWrite   func(actor string, r Request, before, after runtime.Object)
	onRequest func(actor string, r Request, err error)
	admit     func(actor string, r Request, obj runtime.Object) error
	logs      func(namespace, name string) (string, error)
}

// New returns an empty server whose time is what now says.
func New(now func() time.Time) *Server {
	s := &Server{
		now: now, revision: 1, compacted: 1,
		resources: map[string]*resource{}, byNode: map[string][]*corev1.Pod{},
		selectors: map[string]*selector{}, qualified: map[string]bool{},
	}
	for _, kind := range strategies {
		s.resources[kind.plural.Resource] = &resource{strategy: kind, objects: map[string]object{}}
	}
	return s
}

// OnWrite makes f what is called after each write: with the actor, its request, and the object before and
// after it; before is nil for a creation, after for a deletion. One request may be several writes: an
// eviction is one of the budget and two of the pod, a deletion without grace marks the pod first. The
// objects are read only. f may look at the server but not write to it.
func (s *Server) OnWrite(f func(actor string, r Request, before, after runtime.Object)) {
	s.onWrite = f
}

// OnRequest makes f what is called after each request of a client, with its answer as the client sees it.
func (s *Server) OnRequest(f func(actor string, r Request, err error)) { s.onRequest = f }

// OnCreate makes f the admission of each object that is to be created, dry runs too: it sees the object with its
// creationTimestamp, and what it returns is the answer.
func (s *Server) OnCreate(f func(actor string, r Request, obj runtime.Object) error) { s.admit = f }

// OnLogs makes f what answers requests for the log of a pod.
func (s *Server) OnLogs(f func(namespace, name string) (string, error)) { s.logs = f }

// Revision is that of the last write. Every write has one of its own.
func (s *Server) Revision() int64 { return s.revision }

// Compact forgets how things were before a revision. A list or a watch from an older one is answered
// with 410 from then on, and so ends a watch that hasn't yet seen what came before it.
func (s *Server) Compact(revision int64) {
	revision = min(revision, s.revision)
	if revision <= s.compacted {
		return
	}
	s.compacted = revision
	for _, r := range s.resources {
		n, _ := slices.BinarySearchFunc(r.log, revision+1, func(c change, rev int64) int { return cmp.Compare(c.revision, rev) })
		r.log = slices.Clone(r.log[n:])
		r.base += n
	}
}

// writing is which actor writes, by which request.
type writing struct {
	actor   string
	request Request
}

// commit stores a write: before is nil for a creation, after for a deletion.
func (s *Server) commit(w writing, r *resource, before, after object) {
	s.revision++
	version := strconv.FormatInt(s.revision, 10)
	c := change{revision: s.revision, at: s.now(), before: before, after: after}
	if after != nil {
		after.SetResourceVersion(version)
		r.put(keyOf(after), after)
	} else {
		c.last = r.shallow(before)
		c.last.SetResourceVersion(version)
		r.put(keyOf(before), nil)
	}
	if r.plural.Resource == "pods" {
		s.index(before, after)
	}
	r.log = append(r.log, c)
	if s.onWrite != nil {
		s.onWrite(w.actor, w.request, plain(before), plain(after))
	}
}

// plain keeps a nil object a nil interface.
func plain(o object) runtime.Object {
	if o == nil {
		return nil
	}
	return o
}

func (s *Server) index(before, after object) {
	find := func(p *corev1.Pod) (int, bool) {
		return slices.BinarySearchFunc(s.byNode[p.Spec.NodeName], keyOf(p), func(q *corev1.Pod, k string) int { return cmp.Compare(keyOf(q), k) })
	}
	if before != nil {
		p := before.(*corev1.Pod)
		if i, ok := find(p); ok {
			node := p.Spec.NodeName
			if after != nil && after.(*corev1.Pod).Spec.NodeName == node {
				s.byNode[node][i] = after.(*corev1.Pod)
				return
			}
			s.byNode[node] = slices.Delete(s.byNode[node], i, i+1)
			if len(s.byNode[node]) == 0 {
				delete(s.byNode, node)
			}
		}
	}
	if after == nil {
		return
	}
	if p := after.(*corev1.Pod); p.Spec.NodeName != "" {
		i, _ := find(p)
		s.byNode[p.Spec.NodeName] = slices.Insert(s.byNode[p.Spec.NodeName], i, p)
	}
}

func (s *Server) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids))
}

func (s *Server) second() metav1.Time { return second(metav1.NewTime(s.now())) }

// Node is the node of that name as it is now, or nil. Read only.
func (s *Server) Node(name string) *corev1.Node { return stored[*corev1.Node](s, "nodes", "", name) }

// Nodes are all nodes as they are now, by name. Read only.
func (s *Server) Nodes() []*corev1.Node { return all[*corev1.Node](s, "nodes", "") }

// Pod is the pod of that name as it is now, or nil. Read only.
func (s *Server) Pod(namespace, name string) *corev1.Pod {
	return stored[*corev1.Pod](s, "pods", namespace, name)
}

// Pods are all pods of a namespace, or of all if it is empty, as they are now. Read only.
func (s *Server) Pods(namespace string) []*corev1.Pod {
	return all[*corev1.Pod](s, "pods", namespace)
}

// PodsOn are the pods that are bound to a node, sorted. Read only.
func (s *Server) PodsOn(node string) []*corev1.Pod { return slices.Clone(s.byNode[node]) }

// ConfigMap is the one of that name as it is now, or nil. Read only.
func (s *Server) ConfigMap(namespace, name string) *corev1.ConfigMap {
	return stored[*corev1.ConfigMap](s, "configmaps", namespace, name)
}

// PodTemplate is the one of that name as it is now, or nil. Read only.
func (s *Server) PodTemplate(namespace, name string) *corev1.PodTemplate {
	return stored[*corev1.PodTemplate](s, "podtemplates", namespace, name)
}

// Lease is the one of that name as it is now, or nil. Read only.
func (s *Server) Lease(namespace, name string) *coordinationv1.Lease {
	return stored[*coordinationv1.Lease](s, "leases", namespace, name)
}

// PodDisruptionBudgets are all budgets of a namespace, or of all if it is empty, as they are now. Read
// only.
func (s *Server) PodDisruptionBudgets(namespace string) []*policyv1.PodDisruptionBudget {
	return all[*policyv1.PodDisruptionBudget](s, "poddisruptionbudgets", namespace)
}

// ReplicaSet is the one of that name as it is now, or nil. Read only.
func (s *Server) ReplicaSet(namespace, name string) *appsv1.ReplicaSet {
	return stored[*appsv1.ReplicaSet](s, "replicasets", namespace, name)
}

// ReplicaSets are all of a namespace, or of all if it is empty, as they are now. Read only.
func (s *Server) ReplicaSets(namespace string) []*appsv1.ReplicaSet {
	return all[*appsv1.ReplicaSet](s, "replicasets", namespace)
}

// VolumeAttachment is the one of that name as it is now, or nil. Read only.
func (s *Server) VolumeAttachment(name string) *storagev1.VolumeAttachment {
	return stored[*storagev1.VolumeAttachment](s, "volumeattachments", "", name)
}

// VolumeAttachments are all of them as they are now, by name. Read only.
func (s *Server) VolumeAttachments() []*storagev1.VolumeAttachment {
	return all[*storagev1.VolumeAttachment](s, "volumeattachments", "")
}

// PersistentVolumeClaims are all claims of a namespace, or of all if it is empty, as they are now. Read
// only.
func (s *Server) PersistentVolumeClaims(namespace string) []*corev1.PersistentVolumeClaim {
	return all[*corev1.PersistentVolumeClaim](s, "persistentvolumeclaims", namespace)
}

func stored[T object](s *Server, plural, namespace, name string) T {
	o, _ := s.resources[plural].objects[key(namespace, name)].(T)
	return o
}

func all[T object](s *Server, plural, namespace string) []T {
	r := s.resources[plural]
	keys := r.inNamespace(namespace)
	out := make([]T, len(keys))
	for i, k := range keys {
		out[i] = r.objects[k].(T)
	}
	return out
}
