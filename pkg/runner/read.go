package runner

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
)

// The reasons where it isn't known how a container ended: the kubelet's, and containerd's, for one that it can't find
// after it was started anew (unknownExitReason in its source).
const (
	unknownStatus  = "ContainerStatusUnknown"
	unknownRuntime = "Unknown"
)

// nodeOf is what a Node shows.
func nodeOf(n *corev1.Node) *next.Node {
	i := n.Status.NodeInfo
	out := next.Node{
		Name: n.Name, UID: string(n.UID), Labelled: fleet.InterfaceOf(n.Labels) == fleet.InterfacePlan, Unschedulable: n.Spec.Unschedulable,
		Info:        fleet.NodeInfo{Kubelet: i.KubeletVersion, OSImage: i.OSImage, Kernel: i.KernelVersion, Runtime: i.ContainerRuntimeVersion},
		Annotations: n.Annotations,
	}
	if marker.ValidToken(i.BootID) {
		out.BootID = i.BootID
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return next.NodeOf(out)
}

// podOf is what a pod shows; false: no runner made it.
func podOf(p *corev1.Pod) (next.Pod, bool) {
	out := next.Pod{
		Name: p.Name, UID: string(p.UID), Plan: p.Labels[kube.PlanLabel], Intent: p.Annotations[kube.PlanIntent], NodeUID: p.Annotations[kube.PlanNodeUID],
		Template: p.Annotations[kube.PlanTemplate], Created: p.CreationTimestamp.Time, Phase: next.Phase(p.Status.Phase), Reason: p.Status.Reason,
		Deleting: p.DeletionTimestamp != nil, Held: slices.Contains(p.Finalizers, kube.PlanFinalizer),
	}
	if out.Intent == "" || out.Name != kube.PlanPodName(out.Plan, out.NodeUID, out.Intent) {
		return next.Pod{}, false
	}
	out.Said = kube.TerminationMessage(p)
	if t := p.Status.StartTime; t != nil {
		out.Taken = t.Time
	}
	// A sidecar is an init container that is ended once the others are over: what they ended with comes first.
	for _, s := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		t := s.State.Terminated
		out.Started = out.Started || s.State.Running != nil || s.RestartCount > 0 || t != nil && (!t.StartedAt.IsZero() || unknownEnd(t))
		if t == nil {
			continue
		}
		if t.FinishedAt.After(out.Ended) {
			out.Ended = t.FinishedAt.Time
		}
		if t.ExitCode != 0 && out.Container == "" {
			out.Container, out.Status, out.Signal, out.Lost = s.Name, int(t.ExitCode), int(t.Signal), unknownEnd(t)
		}
	}
	if out.Over() && out.Ended.IsZero() {
		out.Ended = changed(p)
	}
	return out, true
}

func unknownEnd(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == unknownStatus || t.Reason == unknownRuntime
}

// changed is when the pod's state changed last, where no container tells of an end.
func changed(p *corev1.Pod) time.Time {
	var last time.Time
	for _, c := range p.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}
