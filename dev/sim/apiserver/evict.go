package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pkg/errors"
)

// maxDisrupted is how many evictions may be unnoticed by the budget's controller.
const maxDisrupted = 2000

// evict follows pkg/registry/core/pod/storage/eviction.go. The budget is charged before anything looks
// at the preconditions.
func (s *Server) evict(w writing, e *policyv1.Eviction) error {
	pods := s.resources["pods"]
	found, err := s.get(pods, e.Namespace, e.Name)
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	var options metav1.DeleteOptions
	if e.DeleteOptions != nil {
		options = *e.DeleteOptions.DeepCopy()
	}
	if len(options.DryRun) > 0 {
		notSimulated("a dry run of an eviction")
	}
	versionAsked := options.Preconditions != nil && options.Preconditions.ResourceVersion != nil

	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
	if finished || pod.Status.Phase == corev1.PodPending {
		if !finished && !versionAsked {
			atVersion(&options, pod.ResourceVersion)
		}
		return s.markAndRemove(w, pod, options)
	}

	budgets := s.budgetsOf(pod)
	if len(budgets) > 1 {
		return raw(errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
	}
	unhealthy := false
	if len(budgets) == 1 {
		b := budgets[0]
		if !ready(pod) {
			always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
			unhealthy = always || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
		}
		if !unhealthy {
			if err := s.charge(w, b, pod.Name); err != nil {
				return err
			}
		}
	}
	if unhealthy {
		atVersion(&options, pod.ResourceVersion)
	}
	err = s.markAndRemove(w, pod, options)
	if apierrors.IsConflict(err) && unhealthy && !versionAsked {
		return beingProcessed(budgets[0].Name)
	}
	return err
}

func atVersion(o *metav1.DeleteOptions, version string) {
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	o.Preconditions.ResourceVersion = &version
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (s *Server) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, b := range s.PodDisruptionBudgets(pod.Namespace) {
		// One with an invalid selector protects nothing.
		if sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && sel.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

func overBudget(retryAfter int, message string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message})
	return err
}

func beingProcessed(budget string) error {
	return overBudget(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget))
}

// charge takes one disruption from the budget, if there is one.
func (s *Server) charge(w writing, b *policyv1.PodDisruptionBudget, pod string) error {
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return beingProcessed(b.Name)
	case len(b.Status.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), b.Name, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case b.Status.DisruptionsAllowed == 0:
		return overBudget(0, whyNot(b))
	}
	charged := b.DeepCopy()
	charged.Status.DisruptionsAllowed--
	if charged.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&charged.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.InsufficientPodsReason, Status: metav1.ConditionFalse,
			ObservedGeneration: charged.Status.ObservedGeneration, LastTransitionTime: s.second(),
		})
	}
	if charged.Status.DisruptedPods == nil {
		charged.Status.DisruptedPods = map[string]metav1.Time{}
	}
	charged.Status.DisruptedPods[pod] = s.second()
	s.commit(w, s.resources["poddisruptionbudgets"], b, charged)
	return nil
}

func whyNot(b *policyv1.PodDisruptionBudget) string {
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	said := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case said && c.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", b.Name, c.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	case said:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", b.Name, c.Reason, c.Message)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name)
}

// markAndRemove writes the reason on the pod and deletes it.
func (s *Server) markAndRemove(w writing, pod *corev1.Pod, options metav1.DeleteOptions) error {
	pods := s.resources["pods"]
	gr := schema.GroupResource{Resource: "Pod"}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != "" && *p.UID != pod.UID {
			return apierrors.NewConflict(gr, pod.Name, errors.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, pod.UID))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != "" && *p.ResourceVersion != pod.ResourceVersion {
			return apierrors.NewConflict(gr, pod.Name, errors.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, pod.ResourceVersion))
		}
	}
	marked := *pod
	marked.Status.Conditions = condition(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		LastTransitionTime: s.second(),
	})
	if !pods.same(&marked, pod, true) {
		s.commit(w, pods, pod, &marked)
		pod = &marked
	}
	if options.Preconditions != nil && options.Preconditions.ResourceVersion != nil {
		options.Preconditions.ResourceVersion = &pod.ResourceVersion
	}
	return s.remove(w, pods, pod.Namespace, pod.Name, options)
}

// condition returns a copy of the conditions with one of them set.
func condition(old []corev1.PodCondition, c corev1.PodCondition) []corev1.PodCondition {
	out := slices.Clone(old)
	i := slices.IndexFunc(out, func(o corev1.PodCondition) bool { return o.Type == c.Type })
	if i < 0 {
		return append(out, c)
	}
	if out[i].Status == c.Status {
		c.LastTransitionTime = out[i].LastTransitionTime
	}
	out[i] = c
	return out
}

// bind puts a pod on a node.
func (s *Server) bind(w writing, namespace, name string, uid types.UID, node string) error {
	pods := s.resources["pods"]
	found, err := s.get(pods, namespace, name)
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	gr := schema.GroupResource{Resource: "pods/binding"}
	switch {
	case uid != "" && uid != pod.UID:
		return apierrors.NewConflict(pods.plural, name, uidMismatch(uid, pod.UID))
	case pod.DeletionTimestamp != nil:
		return apierrors.NewConflict(gr, name, errors.Errorf("pod %s is being deleted, cannot be assigned to a host", name))
	case pod.Spec.NodeName != "":
		return apierrors.NewConflict(gr, name, errors.Errorf("pod %v is already assigned to node %q", name, pod.Spec.NodeName))
	}
	bound := *pod
	bound.Spec.NodeName = node
	bound.Status.Conditions = condition(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: s.second(),
	})
	s.commit(w, pods, pod, &bound)
	return nil
}
