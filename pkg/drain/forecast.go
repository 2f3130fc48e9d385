package drain

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Forecast looks at the pods of a node that isn't cordoned yet, and at the PodDisruptionBudgets of their namespaces. It
// returns the first thing that would block a drain now, and a sentence on it.
func (d *Drainer) Forecast(ctx context.Context, node string, e policy.Eviction) (fleet.Obstacle, string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	pods, err := d.list(ctx, node, e, false)
	if err != nil {
		return "", "", err
	}
	budgets := map[string][]budget{}
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil {
			// It is terminating already.
			continue
		}
		if chosen(p, e.WaitFor) {
			return fleet.ObstacleAwaited, name(p) + " runs, and the policy waits for its end", nil
		}
		if protected := protection(p, e); protected != "" {
			return fleet.ObstacleProtected, protected, nil
		}
		if _, known := budgets[p.Namespace]; !known {
			if budgets[p.Namespace], err = d.budgets(ctx, p.Namespace); err != nil {
				return "", "", err
			}
		}
		if why := blockedBy(p, budgets[p.Namespace]); why != "" {
			return fleet.ObstacleBudget, why, nil
		}
	}
	return fleet.ObstacleNone, "", nil
}

type budget struct {
	policyv1.PodDisruptionBudget
	selects labels.Selector
}

func (d *Drainer) budgets(ctx context.Context, namespace string) ([]budget, error) {
	list, err := d.Client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, errors.Wrapf(err, "listing PodDisruptionBudgets of namespace %q", namespace)
	}
	valid := make([]budget, 0, len(list.Items))
	for i := range list.Items {
		// A budget with an invalid selector protects nothing.
		if s, err := metav1.LabelSelectorAsSelector(list.Items[i].Spec.Selector); err == nil {
			valid = append(valid, budget{list.Items[i], s})
		}
	}
	return valid, nil
}

// blockedBy returns a sentence on the PodDisruptionBudget that would not allow an eviction now, by the rules of the
// eviction API; empty if none.
func blockedBy(p *corev1.Pod, budgets []budget) string {
	if p.Status.Phase == corev1.PodPending {
		return ""
	}
	var names []string
	var only *policyv1.PodDisruptionBudget
	for i := range budgets {
		if budgets[i].selects.Matches(labels.Set(p.Labels)) {
			only = &budgets[i].PodDisruptionBudget
			names = append(names, only.Name)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) > 1:
		return fmt.Sprintf("%s has several PodDisruptionBudgets (%s), and Kubernetes never evicts a pod with more than one",
			name(p), strings.Join(names, ", "))
	case !podutils.IsPodReady(p) && allowsUnready(only),
		only.Status.DisruptionsAllowed > 0 && only.Status.ObservedGeneration >= only.Generation:
		return ""
	}
	return fmt.Sprintf("PodDisruptionBudget %s/%s would not let %s go: %s",
		only.Namespace, only.Name, name(p), whyNot(only))
}

// allowsUnready reports whether a budget allows the eviction of pods that aren't Ready, whatever it counts.
func allowsUnready(b *policyv1.PodDisruptionBudget) bool {
	return ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow ||
		b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

// whyNot returns why a budget allows no eviction.
func whyNot(b *policyv1.PodDisruptionBudget) string {
	s := b.Status
	if b.Status.ObservedGeneration < b.Generation {
		return "it was changed a moment ago, and its new state is not known yet"
	}
	c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	if c != nil && c.Reason == policyv1.SyncFailedReason {
		return "its state is not known: " + c.Message
	}
	if m := b.Spec.MaxUnavailable; m != nil && (m.String() == "0" || m.String() == "0%") {
		return "its maxUnavailable is " + m.String() + ", so it never lets one go"
	}
	switch {
	case s.ExpectedPods <= 1 && s.DesiredHealthy >= s.ExpectedPods:
		return "it keeps a single replica, so it never lets it go"
	case s.DesiredHealthy >= s.ExpectedPods:
		return fmt.Sprintf("it keeps all of its %d pods, so it never lets one go", s.ExpectedPods)
	}
	return fmt.Sprintf("%d of its %d pods are healthy, and it keeps %d",
		s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy)
}
