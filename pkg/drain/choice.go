package drain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubectldrain "k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/ptr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Pods lists live the pods that a drain must still remove from the node, sorted.
func (d *Drainer) Pods(ctx context.Context, node string, e policy.Eviction) ([]corev1.Pod, error) {
	return d.list(ctx, node, e, true)
}

// list is Pods. Unless fresh, a DaemonSet that existed a moment ago is not read again.
func (d *Drainer) list(ctx context.Context, node string, e policy.Eviction, fresh bool) ([]corev1.Pod, error) {
	leave := func(p corev1.Pod) kubectldrain.PodDeleteStatus {
		if d.stays(p, e) {
			return kubectldrain.MakePodDeleteStatusSkip()
		}
		return kubectldrain.MakePodDeleteStatusOkay()
	}
	h := &kubectldrain.Helper{
		Ctx: ctx, Client: remembering{d.Client, d, fresh},
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
		AdditionalFilters: []kubectldrain.PodFilter{leave},
	}
	list, errs := h.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, errors.Wrapf(errs[0], "listing pods of node %q", node)
	}
	pods := list.Pods()
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

// stays reports whether a drain leaves a pod on the node: the operator's own, one whose containers have ended, and one
// that the policy leaves.
func (d *Drainer) stays(p corev1.Pod, e policy.Eviction) bool {
	if d.Own(&p) || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	return chosen(&p, e.Leave)
}

func chosen(p *corev1.Pod, by []policy.PodSelector) bool {
	return slices.ContainsFunc(by, func(s policy.PodSelector) bool { return s.Matches(p.Namespace, p.Labels) })
}

// protection returns why the policy protects a pod from eviction; empty if it doesn't.
func protection(p *corev1.Pod, e policy.Eviction) string {
	switch {
	case e.EmptyDirData == policy.Block && slices.ContainsFunc(p.Spec.Volumes, isEmptyDir):
		return fmt.Sprintf("%s keeps data in an emptyDir, and the policy does not let such pods be evicted", name(p))
	case e.UnmanagedPods == policy.Block && metav1.GetControllerOf(p) == nil:
		return fmt.Sprintf("%s has no controller that would make it anew, and the policy does not let such pods be evicted",
			name(p))
	}
	return ""
}

func isEmptyDir(v corev1.Volume) bool { return v.EmptyDir != nil }

// The priorities of the classes system-cluster-critical and system-node-critical.
const (
	clusterCritical = 2_000_000_000
	nodeCritical    = clusterCritical + 1000
)

// turn returns the place of a pod in the order of eviction: a higher turn begins when no pod of a lower one is left.
// All priorities of users' own classes share one turn: there may be many, and each turn takes as long as its slowest
// pod.
func turn(p *corev1.Pod) int {
	switch v := priority(p); {
	case v <= 0:
		return 0
	case v < clusterCritical:
		return 1
	case v < nodeCritical:
		return 2
	}
	return 3
}

func priority(p *corev1.Pod) int32 { return ptr.Deref(p.Spec.Priority, 0) }

// first returns the pods of the lowest turn.
func first(pods []corev1.Pod) []corev1.Pod {
	least := 0
	for i := range pods {
		if t := turn(&pods[i]); i == 0 || t < least {
			least = t
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return turn(&p) != least })
}

// name names a pod in messages.
func name(p *corev1.Pod) string {
	return "pod " + types.NamespacedName{Namespace: p.Namespace, Name: p.Name}.String()
}
