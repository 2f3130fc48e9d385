package apiserver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// object is what is stored. Once stored it is never changed.
type object interface {
	metav1.Object
	runtime.Object
}

// resource is all objects of one kind, the log of their changes, and what is special about the kind.
type resource struct {
	strategy

	objects map[string]object
	// keys are those of objects, sorted as in etcd.
	keys []string
	// log are the changes that aren't compacted away; the first is number base.
	log  []change
	base int
}

// change is one write. before is nil for a creation, after for a deletion; last is then what the deletion
// shows to watches.
type change struct {
	revision            int64
	at                  time.Time
	before, after, last object
}

// strategy is what is special about a kind, after the strategies of the real server's registries.
type strategy struct {
	plural     schema.GroupResource
	kind       schema.GroupVersionKind
	namespaced bool
	// unconditional updates carry no resourceVersion; createOnUpdate lets an update create.
	unconditional, createOnUpdate bool
	// graceful deletions take time.
	graceful bool

	// empty and shallow return a new object, and one that shares what it refers to.
	empty   func() object
	shallow func(object) object
	// create prepares a new object, update one that replaces old; the parts that the request must not
	// touch are taken from old.
	create func(object)
	update func(obj, old object, status bool) field.ErrorList
	// same reports whether nothing differs of what the request may touch outside of the metadata.
	same func(a, b object, status bool) bool
	// round cuts times to what is stored of them.
	round func(object)
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func keyOf(o object) string { return key(o.GetNamespace(), o.GetName()) }

// put stores o, or removes what is there if o is nil.
func (r *resource) put(k string, o object) {
	_, had := r.objects[k]
	switch {
	case o == nil:
		delete(r.objects, k)
		i := sort.SearchStrings(r.keys, k)
		r.keys = slices.Delete(r.keys, i, i+1)
	case had:
		r.objects[k] = o
	default:
		r.objects[k] = o
		i := sort.SearchStrings(r.keys, k)
		r.keys = slices.Insert(r.keys, i, k)
	}
}

// inNamespace are the sorted keys of one namespace, or all.
func (r *resource) inNamespace(namespace string) []string {
	if namespace == "" {
		return r.keys
	}
	from := sort.SearchStrings(r.keys, namespace+"/")
	to := from
	for to < len(r.keys) && strings.HasPrefix(r.keys[to], namespace+"/") {
		to++
	}
	return r.keys[from:to]
}

func group(plural string) string {
	for _, s := range strategies {
		if s.plural.Resource == plural {
			return s.plural.Group
		}
	}
	return ""
}

func second(t metav1.Time) metav1.Time {
	if t.IsZero() {
		return t
	}
	return metav1.NewTime(t.Truncate(time.Second))
}

func secondOf(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	s := second(*t)
	return &s
}

func microOf(t *metav1.MicroTime) *metav1.MicroTime {
	if t == nil {
		return nil
	}
	m := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &m
}

// strategies are the simulated kinds. Their order is of no meaning.
var strategies = []strategy{
	nodeStrategy, podStrategy, configMapStrategy, leaseStrategy, budgetStrategy, daemonSetStrategy,
	replicaSetStrategy, attachmentStrategy, claimStrategy, templateStrategy, secretStrategy,
}

var nodeStrategy = strategy{
	plural: schema.GroupResource{Resource: "nodes"}, kind: corev1.SchemeGroupVersion.WithKind("Node"),
	unconditional: true,
	empty:         func() object { return &corev1.Node{} },
	shallow:       func(o object) object { n := *o.(*corev1.Node); return &n },
	create:        func(object) {},
	update: func(obj, old object, status bool) field.ErrorList {
		n, o := obj.(*corev1.Node), old.(*corev1.Node)
		if status {
			n.Spec = o.Spec
			return nil
		}
		n.Status = o.Status
		var errs field.ErrorList
		if o.Spec.ProviderID != "" && n.Spec.ProviderID != o.Spec.ProviderID {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "providerID"), `node updates may not change providerID except from "" to valid`))
		}
		if len(o.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, o.Spec.PodCIDRs) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "podCIDRs"), `node updates may not change podCIDR except from "" to valid`))
		}
		return errs
	},
	same: func(a, b object, status bool) bool {
		n, o := a.(*corev1.Node), b.(*corev1.Node)
		if status {
			// What differs mostly is cheap to compare.
			return n.Status.NodeInfo.BootID == o.Status.NodeInfo.BootID && equality.Semantic.DeepEqual(&n.Status, &o.Status)
		}
		return n.Spec.Unschedulable == o.Spec.Unschedulable && equality.Semantic.DeepEqual(&n.Spec, &o.Spec)
	},
	round: func(o object) {
		n := o.(*corev1.Node)
		for i := range n.Spec.Taints {
			n.Spec.Taints[i].TimeAdded = secondOf(n.Spec.Taints[i].TimeAdded)
		}
		for i := range n.Status.Conditions {
			c := &n.Status.Conditions[i]
			c.LastHeartbeatTime, c.LastTransitionTime = second(c.LastHeartbeatTime), second(c.LastTransitionTime)
		}
	},
}

// defaultGrace is how long a pod that doesn't say may take to end.
const defaultGrace = int64(corev1.DefaultTerminationGracePeriodSeconds)

var podStrategy = strategy{
	plural: schema.GroupResource{Resource: "pods"}, kind: corev1.SchemeGroupVersion.WithKind("Pod"),
	namespaced: true, unconditional: true, graceful: true,
	empty:   func() object { return &corev1.Pod{} },
	shallow: func(o object) object { p := *o.(*corev1.Pod); return &p },
	create: func(obj object) {
		p := obj.(*corev1.Pod)
		p.Generation = 1
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		if p.Spec.TerminationGracePeriodSeconds == nil {
			grace := defaultGrace
			p.Spec.TerminationGracePeriodSeconds = &grace
		}
	},
	update: updatePod,
	same: func(a, b object, status bool) bool {
		p, q := a.(*corev1.Pod), b.(*corev1.Pod)
		if status {
			return equality.Semantic.DeepEqual(&p.Status, &q.Status)
		}
		return equality.Semantic.DeepEqual(&p.Spec, &q.Spec)
	},
	round: func(o object) {
		p := o.(*corev1.Pod)
		p.Status.StartTime = secondOf(p.Status.StartTime)
		for i := range p.Status.Conditions {
			c := &p.Status.Conditions[i]
			c.LastProbeTime, c.LastTransitionTime = second(c.LastProbeTime), second(c.LastTransitionTime)
		}
	},
}

func updatePod(obj, old object, status bool) field.ErrorList {
	p, o := obj.(*corev1.Pod), old.(*corev1.Pod)
	if status {
		p.Spec, p.OwnerReferences, p.DeletionTimestamp = o.Spec, o.OwnerReferences, nil
		if p.Status.QOSClass == "" {
			p.Status.QOSClass = o.Status.QOSClass
		}
		if p.Status.ObservedGeneration == 0 {
			p.Status.ObservedGeneration = o.Status.ObservedGeneration
		}
		return nil
	}
	p.Status = o.Status
	if p.Spec.TerminationGracePeriodSeconds == nil {
		grace := defaultGrace
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	if equality.Semantic.DeepEqual(&p.Spec, &o.Spec) {
		return nil
	}
	p.Generation++
	// Images may change, and nothing else that a simulation uses. Tolerations that are added and
	// scheduling gates that are taken away aren't simulated.
	munged := o.Spec.DeepCopy()
	if len(munged.Containers) == len(p.Spec.Containers) {
		for i := range munged.Containers {
			munged.Containers[i].Image = p.Spec.Containers[i].Image
		}
	}
	if !equality.Semantic.DeepEqual(munged, &p.Spec) {
		return field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than `spec.containers[*].image`")}
	}
	return nil
}

var configMapStrategy = strategy{
	plural: schema.GroupResource{Resource: "configmaps"}, kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	namespaced: true, unconditional: true,
	empty:   func() object { return &corev1.ConfigMap{} },
	shallow: func(o object) object { c := *o.(*corev1.ConfigMap); return &c },
	create:  func(object) {},
	update: func(obj, old object, _ bool) field.ErrorList {
		if i := old.(*corev1.ConfigMap).Immutable; i != nil && *i {
			panic("apiserver: an update of an immutable ConfigMap isn't simulated")
		}
		return configMapSize(obj)
	},
	same: func(a, b object, _ bool) bool {
		c, d := a.(*corev1.ConfigMap), b.(*corev1.ConfigMap)
		return maps.Equal(c.Data, d.Data) && equality.Semantic.DeepEqual(c.BinaryData, d.BinaryData) && equality.Semantic.DeepEqual(c.Immutable, d.Immutable)
	},
	round: func(object) {},
}

func configMapSize(o object) field.ErrorList {
	c := o.(*corev1.ConfigMap)
	size := 0
	for _, v := range c.Data {
		size += len(v)
	}
	for _, v := range c.BinaryData {
		size += len(v)
	}
	if size > corev1.MaxSecretSize {
		return field.ErrorList{field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize)}
	}
	return nil
}

var leaseStrategy = strategy{
	plural: coordinationv1.Resource("leases"), kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	namespaced: true, createOnUpdate: true,
	empty:   func() object { return &coordinationv1.Lease{} },
	shallow: func(o object) object { l := *o.(*coordinationv1.Lease); return &l },
	create:  func(object) {},
	update:  func(object, object, bool) field.ErrorList { return nil },
	same: func(a, b object, _ bool) bool {
		return equality.Semantic.DeepEqual(&a.(*coordinationv1.Lease).Spec, &b.(*coordinationv1.Lease).Spec)
	},
	round: func(o object) {
		l := o.(*coordinationv1.Lease)
		l.Spec.AcquireTime, l.Spec.RenewTime = microOf(l.Spec.AcquireTime), microOf(l.Spec.RenewTime)
	},
}

var budgetStrategy = strategy{
	plural: policyv1.Resource("poddisruptionbudgets"), kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	namespaced: true,
	empty:      func() object { return &policyv1.PodDisruptionBudget{} },
	shallow:    func(o object) object { b := *o.(*policyv1.PodDisruptionBudget); return &b },
	create: func(obj object) {
		b := obj.(*policyv1.PodDisruptionBudget)
		b.Status = policyv1.PodDisruptionBudgetStatus{}
		b.Generation = 1
	},
	update: func(obj, old object, status bool) field.ErrorList {
		b, o := obj.(*policyv1.PodDisruptionBudget), old.(*policyv1.PodDisruptionBudget)
		if !status {
			b.Status = o.Status
			if !equality.Semantic.DeepEqual(&b.Spec, &o.Spec) {
				b.Generation = o.Generation + 1
			}
			return nil
		}
		b.Spec = o.Spec
		var errs field.ErrorList
		for name, v := range map[string]int32{
			"disruptionsAllowed": b.Status.DisruptionsAllowed, "currentHealthy": b.Status.CurrentHealthy,
			"desiredHealthy": b.Status.DesiredHealthy, "expectedPods": b.Status.ExpectedPods,
		} {
			if v < 0 {
				errs = append(errs, field.Invalid(field.NewPath("status", name), v, "must be greater than or equal to 0"))
			}
		}
		slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
		return errs
	},
	same: func(a, b object, status bool) bool {
		p, q := a.(*policyv1.PodDisruptionBudget), b.(*policyv1.PodDisruptionBudget)
		if status {
			return equality.Semantic.DeepEqual(&p.Status, &q.Status)
		}
		return equality.Semantic.DeepEqual(&p.Spec, &q.Spec)
	},
	round: func(o object) {
		b := o.(*policyv1.PodDisruptionBudget)
		for k, t := range b.Status.DisruptedPods {
			b.Status.DisruptedPods[k] = second(t)
		}
		for i := range b.Status.Conditions {
			b.Status.Conditions[i].LastTransitionTime = second(b.Status.Conditions[i].LastTransitionTime)
		}
	},
}

var daemonSetStrategy = strategy{
	plural: appsv1.Resource("daemonsets"), kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	namespaced: true, unconditional: true,
	empty:   func() object { return &appsv1.DaemonSet{} },
	shallow: func(o object) object { d := *o.(*appsv1.DaemonSet); return &d },
	create: func(obj object) {
		d := obj.(*appsv1.DaemonSet)
		d.Status = appsv1.DaemonSetStatus{}
		d.Generation = 1
	},
	update: func(object, object, bool) field.ErrorList {
		panic("apiserver: an update of a DaemonSet isn't simulated")
	},
	same: func(a, b object, _ bool) bool {
		return equality.Semantic.DeepEqual(&a.(*appsv1.DaemonSet).Spec, &b.(*appsv1.DaemonSet).Spec)
	},
	round: func(object) {},
}

var replicaSetStrategy = strategy{
	plural: appsv1.Resource("replicasets"), kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
	namespaced: true, unconditional: true,
	empty:   func() object { return &appsv1.ReplicaSet{} },
	shallow: func(o object) object { r := *o.(*appsv1.ReplicaSet); return &r },
	create: func(obj object) {
		r := obj.(*appsv1.ReplicaSet)
		r.Status = appsv1.ReplicaSetStatus{}
		r.Generation = 1
		defaultReplicas(r)
	},
	update: func(obj, old object, status bool) field.ErrorList {
		r, o := obj.(*appsv1.ReplicaSet), old.(*appsv1.ReplicaSet)
		if status {
			r.Spec = o.Spec
			return replicaSetStatus(&r.Status)
		}
		r.Status = o.Status
		defaultReplicas(r)
		if !equality.Semantic.DeepEqual(&r.Spec, &o.Spec) {
			r.Generation = o.Generation + 1
		}
		if !equality.Semantic.DeepEqual(r.Spec.Selector, o.Spec.Selector) {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), r.Spec.Selector, "field is immutable")}
		}
		return nil
	},
	same: func(a, b object, status bool) bool {
		r, o := a.(*appsv1.ReplicaSet), b.(*appsv1.ReplicaSet)
		if status {
			return equality.Semantic.DeepEqual(&r.Status, &o.Status)
		}
		return equality.Semantic.DeepEqual(&r.Spec, &o.Spec)
	},
	round: func(o object) {
		r := o.(*appsv1.ReplicaSet)
		for i := range r.Status.Conditions {
			r.Status.Conditions[i].LastTransitionTime = second(r.Status.Conditions[i].LastTransitionTime)
		}
	},
}

func defaultReplicas(r *appsv1.ReplicaSet) {
	if r.Spec.Replicas == nil {
		one := int32(1)
		r.Spec.Replicas = &one
	}
}

func replicaSetStatus(st *appsv1.ReplicaSetStatus) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status")
	check := func(name string, v, most int32) {
		if v < 0 || v > most {
			errs = append(errs, field.Invalid(path.Child(name), v, fmt.Sprintf("must be between 0 and %d", most)))
		}
	}
	check("replicas", st.Replicas, math.MaxInt32)
	check("fullyLabeledReplicas", st.FullyLabeledReplicas, st.Replicas)
	check("readyReplicas", st.ReadyReplicas, st.Replicas)
	check("availableReplicas", st.AvailableReplicas, min(st.Replicas, st.ReadyReplicas))
	return errs
}

var attachmentStrategy = strategy{
	plural: storagev1.Resource("volumeattachments"), kind: storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"),
	empty:   func() object { return &storagev1.VolumeAttachment{} },
	shallow: func(o object) object { a := *o.(*storagev1.VolumeAttachment); return &a },
	create: func(obj object) {
		obj.(*storagev1.VolumeAttachment).Status = storagev1.VolumeAttachmentStatus{}
	},
	update: func(obj, old object, status bool) field.ErrorList {
		if !status {
			panic("apiserver: an update of a VolumeAttachment isn't simulated")
		}
		a, o := obj.(*storagev1.VolumeAttachment), old.(*storagev1.VolumeAttachment)
		a.Spec = o.Spec
		metav1.ResetObjectMetaForStatus(a, o)
		return nil
	},
	same: func(a, b object, _ bool) bool {
		return equality.Semantic.DeepEqual(&a.(*storagev1.VolumeAttachment).Status, &b.(*storagev1.VolumeAttachment).Status)
	},
	round: func(o object) {
		a := o.(*storagev1.VolumeAttachment)
		for _, e := range []*storagev1.VolumeError{a.Status.AttachError, a.Status.DetachError} {
			if e != nil {
				e.Time = second(e.Time)
			}
		}
	},
}

var claimStrategy = strategy{
	plural: schema.GroupResource{Resource: "persistentvolumeclaims"}, kind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	namespaced: true, unconditional: true,
	empty:   func() object { return &corev1.PersistentVolumeClaim{} },
	shallow: func(o object) object { c := *o.(*corev1.PersistentVolumeClaim); return &c },
	create: func(obj object) {
		obj.(*corev1.PersistentVolumeClaim).Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	},
	update: func(object, object, bool) field.ErrorList {
		panic("apiserver: an update of a PersistentVolumeClaim isn't simulated")
	},
	same: func(a, b object, _ bool) bool {
		return equality.Semantic.DeepEqual(&a.(*corev1.PersistentVolumeClaim).Spec, &b.(*corev1.PersistentVolumeClaim).Spec)
	},
	round: func(object) {},
}

var templateStrategy = strategy{
	plural: schema.GroupResource{Resource: "podtemplates"}, kind: corev1.SchemeGroupVersion.WithKind("PodTemplate"),
	namespaced: true, unconditional: true,
	empty:   func() object { return &corev1.PodTemplate{} },
	shallow: func(o object) object { t := *o.(*corev1.PodTemplate); return &t },
	create:  func(obj object) { obj.(*corev1.PodTemplate).Generation = 1 },
	update: func(obj, old object, _ bool) field.ErrorList {
		if t, o := obj.(*corev1.PodTemplate), old.(*corev1.PodTemplate); !equality.Semantic.DeepEqual(&t.Template, &o.Template) {
			t.Generation = o.Generation + 1
		}
		return nil
	},
	same: func(a, b object, _ bool) bool {
		return equality.Semantic.DeepEqual(&a.(*corev1.PodTemplate).Template, &b.(*corev1.PodTemplate).Template)
	},
	round: func(object) {},
}

var secretStrategy = strategy{
	plural: schema.GroupResource{Resource: "secrets"}, kind: corev1.SchemeGroupVersion.WithKind("Secret"),
	namespaced: true, unconditional: true,
	empty:   func() object { return &corev1.Secret{} },
	shallow: func(o object) object { s := *o.(*corev1.Secret); return &s },
	create: func(obj object) {
		if s := obj.(*corev1.Secret); s.Type == "" {
			s.Type = corev1.SecretTypeOpaque
		}
	},
	update: func(obj, old object, _ bool) field.ErrorList {
		s, o := obj.(*corev1.Secret), old.(*corev1.Secret)
		if o.Immutable != nil && *o.Immutable {
			panic("apiserver: an update of an immutable Secret isn't simulated")
		}
		if s.Type == "" {
			s.Type = o.Type
		}
		if s.Type != o.Type {
			return field.ErrorList{field.Invalid(field.NewPath("type"), s.Type, "field is immutable")}
		}
		return nil
	},
	same: func(a, b object, _ bool) bool {
		s, t := a.(*corev1.Secret), b.(*corev1.Secret)
		return s.Type == t.Type && equality.Semantic.DeepEqual(s.Data, t.Data) && equality.Semantic.DeepEqual(s.Immutable, t.Immutable)
	},
	round: func(object) {},
}

// sameMeta reports whether nothing differs that a client may change in the metadata, or the server in a deletion.
func sameMeta(a, b object) bool {
	return a.GetGeneration() == b.GetGeneration() &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		slices.Equal(a.GetFinalizers(), b.GetFinalizers()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp()) &&
		equality.Semantic.DeepEqual(a.GetDeletionGracePeriodSeconds(), b.GetDeletionGracePeriodSeconds())
}

func notSimulated(format string, args ...any) {
	panic("apiserver: " + fmt.Sprintf(format, args...) + " isn't simulated")
}
