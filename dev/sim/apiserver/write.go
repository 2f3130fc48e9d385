package apiserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pkg/errors"
)

// The order of the checks below is that of the real server's generic registry: it decides which of two
// errors a request gets.

const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

func (s *Server) get(r *resource, namespace, name string) (object, error) {
	o, ok := r.objects[key(namespace, name)]
	if !ok {
		return nil, apierrors.NewNotFound(r.plural, name)
	}
	return o, nil
}

// clean makes an object that came from outside one that can be stored. The object must not be shared.
func (r *resource) clean(o object) {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	o.SetManagedFields(nil)
	o.SetSelfLink("")
	r.round(o)
}

// addressed reports whether the object belongs to the request's URL. It fills in the namespace.
func addressed(o object, namespace, name string) error {
	if err := inNamespaceOf(o, namespace); err != nil {
		return err
	}
	if o.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), name))
	}
	return nil
}

// inNamespaceOf makes the object's namespace that of the request.
func inNamespaceOf(o object, namespace string) error {
	switch o.GetNamespace() {
	case namespace:
	case "":
		o.SetNamespace(namespace)
	default:
		if namespace != "" {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		o.SetNamespace("")
	}
	return nil
}

// create stores obj, which is not shared.
func (s *Server) create(w writing, r *resource, namespace string, obj object) (object, error) {
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		notSimulated("generateName")
	}
	if err := inNamespaceOf(obj, namespace); err != nil {
		return nil, err
	}
	obj.SetUID(s.newUID())
	obj.SetCreationTimestamp(s.second())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetGeneration(0)
	r.strategy.create(obj)
	errs := validation.ValidateObjectMetaAccessor(obj, r.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if r.plural.Resource == "configmaps" {
		errs = append(errs, configMapSize(obj)...)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(r.kind.GroupKind(), obj.GetName(), errs)
	}
	if s.admit != nil {
		if err := s.admit(w.actor, w.request, obj); err != nil {
			return nil, err
		}
	}
	if v, err := version(obj); err != nil {
		return nil, raw(err)
	} else if v != 0 {
		return nil, raw(errors.New("resourceVersion should not be set on objects to be created"))
	}
	if old, ok := r.objects[keyOf(obj)]; ok {
		err := apierrors.NewAlreadyExists(r.plural, obj.GetName())
		if old.GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if w.request.DryRun {
		return obj, nil
	}
	s.commit(w, r, nil, obj)
	return obj, nil
}

// version is an object's resourceVersion as a number, 0 if it has none.
func version(o object) (uint64, error) {
	v := o.GetResourceVersion()
	if v == "" {
		return 0, nil
	}
	return strconv.ParseUint(v, 10, 64)
}

// raw is an error that the real server didn't expect: it has no reason.
func raw(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
}

// change is an update or a patch: updated returns the new object, which is not shared, from the one
// that is there. uid, if there is one, is what a PUT carries.
func (s *Server) change(w writing, r *resource, namespace, name string, uid types.UID, updated func(old object) (object, error)) (object, error) {
	old, ok := r.objects[key(namespace, name)]
	if !ok {
		return s.createByUpdate(w, r, namespace, name, uid, updated)
	}
	if uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(r.plural, name, uidMismatch(uid, old.GetUID()))
	}
	obj, err := updated(old)
	if err != nil {
		return nil, err
	}
	v, err := version(obj)
	switch {
	case err != nil:
		return nil, raw(err)
	case v == 0 && r.unconditional:
		obj.SetResourceVersion(old.GetResourceVersion())
	case v == 0:
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: r.plural.Group, Kind: r.plural.Resource}, name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), v, "must be specified for an update"),
		})
	case obj.GetResourceVersion() != old.GetResourceVersion():
		return nil, apierrors.NewConflict(r.plural, name, errors.New(optimisticLock))
	}
	if err := s.beforeUpdate(w, r, obj, old); err != nil {
		return nil, err
	}
	if len(obj.GetFinalizers()) == 0 && old.GetDeletionTimestamp() != nil && deref(old.GetDeletionGracePeriodSeconds()) == 0 {
		// Without the last finalizer the deletion ends.
		s.commit(w, r, old, nil)
		return obj, nil
	}
	if sameMeta(obj, old) && r.same(obj, old, w.request.Subresource == "status") {
		return old, nil
	}
	s.commit(w, r, old, obj)
	return obj, nil
}

func uidMismatch(want, have types.UID) error {
	return errors.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", want, have)
}

func (s *Server) createByUpdate(w writing, r *resource, namespace, name string, uid types.UID, updated func(old object) (object, error)) (object, error) {
	if !r.createOnUpdate || w.request.Verb != "update" {
		return nil, apierrors.NewNotFound(r.plural, name)
	}
	if uid != "" {
		return nil, apierrors.NewConflict(r.plural, name, uidMismatch(uid, ""))
	}
	obj, err := updated(nil)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion("")
	return s.create(w, r, namespace, obj)
}

func (s *Server) beforeUpdate(w writing, r *resource, obj, old object) error {
	obj.SetGeneration(old.GetGeneration())
	errs := r.strategy.update(obj, old, w.request.Subresource == "status")
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if t := old.GetDeletionTimestamp(); t != nil {
		obj.SetDeletionTimestamp(t)
	}
	if g := old.GetDeletionGracePeriodSeconds(); g != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(g)
	}
	errs = append(errs, s.invalidMeta(obj, old)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.kind.GroupKind(), obj.GetName(), errs)
	}
	return nil
}

// invalidMeta looks at what an update changed in the metadata; the rest was valid before.
func (s *Server) invalidMeta(obj, old object) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata")
	if obj.GetUID() != old.GetUID() {
		errs = append(errs, field.Invalid(path.Child("uid"), obj.GetUID(), validation.FieldImmutableErrorMsg))
	}
	if !obj.GetDeletionTimestamp().Equal(old.GetDeletionTimestamp()) {
		errs = append(errs, field.Invalid(path.Child("deletionTimestamp"), obj.GetDeletionTimestamp(), validation.FieldImmutableErrorMsg))
	}
	if g, h := obj.GetDeletionGracePeriodSeconds(), old.GetDeletionGracePeriodSeconds(); (g == nil) != (h == nil) || deref(g) != deref(h) {
		errs = append(errs, field.Invalid(path.Child("deletionGracePeriodSeconds"), g, validation.FieldImmutableErrorMsg))
	}
	had := old.GetAnnotations()
	size, changed := 0, false
	for k, v := range obj.GetAnnotations() {
		size += len(k) + len(v)
		if o, ok := had[k]; !ok || o != v {
			changed = true
			if !s.isQualified(strings.ToLower(k)) {
				errs = append(errs, field.Invalid(path.Child("annotations"), k, "name part must be valid"))
			}
		}
	}
	if changed && size > validation.TotalAnnotationSizeLimitB {
		errs = append(errs, field.TooLong(path.Child("annotations"), "", validation.TotalAnnotationSizeLimitB))
	}
	had = old.GetLabels()
	for k, v := range obj.GetLabels() {
		if o, ok := had[k]; ok && o == v {
			continue
		}
		if !s.isQualified(k) {
			errs = append(errs, field.Invalid(path.Child("labels"), k, "name part must be valid"))
		}
		for _, m := range utilvalidation.IsValidLabelValue(v) {
			errs = append(errs, field.Invalid(path.Child("labels"), v, m))
		}
	}
	if old.GetDeletionTimestamp() != nil {
		errs = append(errs, validation.ValidateNoNewFinalizers(obj.GetFinalizers(), old.GetFinalizers(), path.Child("finalizers"))...)
	}
	return errs
}

func (s *Server) isQualified(name string) bool {
	ok, known := s.qualified[name]
	if !known {
		ok = len(utilvalidation.IsQualifiedName(name)) == 0
		s.qualified[name] = ok
	}
	return ok
}

func deref(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// remove deletes, or begins to.
func (s *Server) remove(w writing, r *resource, namespace, name string, o metav1.DeleteOptions) error {
	old, ok := r.objects[key(namespace, name)]
	if !ok {
		return apierrors.NewNotFound(r.plural, name)
	}
	if p := o.PropagationPolicy; p != nil && *p != metav1.DeletePropagationBackground {
		notSimulated("deletion with propagation %s", *p)
	}
	//lint:ignore SA1019 older clients may set it
	if o.OrphanDependents != nil || len(o.DryRun) > 0 {
		notSimulated("this deletion: %+v", o)
	}
	if p := o.Preconditions; p != nil {
		gr := schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Kind}
		if p.UID != nil && *p.UID != old.GetUID() {
			return apierrors.NewConflict(gr, name, errors.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, old.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return apierrors.NewConflict(gr, name, errors.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, old.GetResourceVersion()))
		}
	}
	obj := r.shallow(old)
	graceful, pending, period := false, false, int64(0)
	if r.graceful {
		graceful, pending, period = s.grace(obj, o.GracePeriodSeconds)
	}
	if pending {
		return nil
	}
	finalizers := len(old.GetFinalizers()) > 0
	switch {
	case graceful:
		s.commit(w, r, old, obj)
		if finalizers || period > 0 {
			return nil
		}
		old = obj
	case finalizers:
		s.mark(obj)
		if !sameMeta(obj, old) {
			s.commit(w, r, old, obj)
		}
		return nil
	}
	s.commit(w, r, old, nil)
	return nil
}

// grace marks the pod as going. It reports whether that is to be stored, or if the pod is going already and
// nothing changes, and how long it was asked to take.
func (s *Server) grace(obj object, asked *int64) (graceful, pending bool, asking int64) {
	if asked != nil && *asked < 0 {
		one := int64(1)
		asked = &one
	}
	if obj.GetDeletionTimestamp() == nil {
		period := gracePeriod(obj, asked)
		t := second(metav1.NewTime(s.now().Add(time.Duration(period) * time.Second)))
		obj.SetDeletionTimestamp(&t)
		obj.SetDeletionGracePeriodSeconds(&period)
		if obj.GetGeneration() > 0 {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
		return true, false, period
	}
	// On its way already: the grace can only get shorter.
	had := deref(obj.GetDeletionGracePeriodSeconds())
	if had == 0 {
		return false, false, 0
	}
	if asked == nil || *asked >= had {
		return false, true, 0
	}
	period := *asked
	now := metav1.NewTime(s.now())
	t := metav1.NewTime(obj.GetDeletionTimestamp().Add(time.Duration(period-had) * time.Second))
	if t.Before(&now) {
		// The period is over, and still the kubelet has to end the pod.
		t = now
		if period != 0 {
			period = 1
		}
	}
	t = second(t)
	obj.SetDeletionTimestamp(&t)
	obj.SetDeletionGracePeriodSeconds(&period)
	return true, false, *asked
}

// gracePeriod is how long a pod may take that isn't on its way yet.
func gracePeriod(obj object, asked *int64) int64 {
	pod := obj.(*corev1.Pod)
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return 0
	case asked != nil:
		return *asked
	}
	// A negative one counts as the shortest that there is.
	if g := deref(pod.Spec.TerminationGracePeriodSeconds); g >= 0 {
		return g
	}
	return 1
}

// mark shows that an object is going as soon as its finalizers are gone.
func (s *Server) mark(obj object) {
	if obj.GetDeletionTimestamp() == nil && obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	now := s.second()
	if t := obj.GetDeletionTimestamp(); t == nil || t.After(s.now()) {
		obj.SetDeletionTimestamp(&now)
	}
	zero := int64(0)
	obj.SetDeletionGracePeriodSeconds(&zero)
}
