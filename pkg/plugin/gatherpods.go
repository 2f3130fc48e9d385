package plugin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

const (
	// operatorSelector finds the operator's own pods.
	operatorSelector = "app.kubernetes.io/name=bottlerocket-update-operator"
	componentLabel   = "app.kubernetes.io/component"
	// maxEventPages limits how many pages of Events are read: a namespace may be full of them.
	maxEventPages = 4
	// wordsOf is how much is kept of what was said of one object.
	wordsOf = 8
	// logsOf is of how many pods that aren't Ready the end of the log is read, and logLines how many lines.
	logsOf, logLines, logBytes = 5, 20, 16 << 10
)

// events returns the last warnings on objects of the operator's namespace, as KIND/NAME, the newest first. Those of
// ReplicaSets stand for their Deployment.
func (g *gathering) events(ctx context.Context) (map[string][]preflight.Words, error) {
	var all []corev1.Event
	_, err := eachUpTo(ctx, maxEventPages, "events", metav1.ListOptions{FieldSelector: "type=Warning"},
		g.client.CoreV1().Events(g.namespace).List,
		func(page *corev1.EventList) { all = append(all, page.Items...) })
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return lastOf(&b).Compare(lastOf(&a).Time) })
	said := map[string][]preflight.Words{}
	for _, e := range all {
		about := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
		if e.InvolvedObject.Kind == "ReplicaSet" {
			about = about[:max(strings.LastIndex(about, "-"), 0)]
		}
		if len(said[about]) < wordsOf {
			said[about] = append(said[about], preflight.Words{Reason: e.Reason, Message: e.Message})
		}
	}
	return said, err
}

func lastOf(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time(e.Series.LastObservedTime)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time(e.EventTime)
	}
	return e.CreationTimestamp
}

// pods reads the operator's pods with what the scheduler, the kubelet and they themselves say.
func (g *gathering) pods(ctx context.Context, said map[string][]preflight.Words) ([]preflight.Pod, error) {
	var all []preflight.Pod
	logs := 0
	more, err := each(ctx, "pods in "+g.namespace, metav1.ListOptions{LabelSelector: operatorSelector},
		g.client.CoreV1().Pods(g.namespace).List, func(page *corev1.PodList) {
			for i := range page.Items {
				p := &page.Items[i]
				if p.DeletionTimestamp != nil {
					continue
				}
				out := preflight.Pod{Name: p.Name, Component: p.Labels[componentLabel], Node: cmp.Or(p.Spec.NodeName,
					meantFor(p)), Created: p.CreationTimestamp.Time, Ready: podReady(p)}
				if !out.Ready {
					out.Said = append(wordsIn(p), said["Pod/"+p.Name]...)
					if logs < logsOf && hasRun(p) {
						logs++
						out.Said = append(out.Said, g.lastLines(ctx, p)...)
					}
				}
				all = append(all, out)
			}
		})
	g.cut(more, "pods of the operator")
	return all, err
}

// meantFor is the node that the pod of a DaemonSet is for, before it is scheduled there.
func meantFor(p *corev1.Pod) string {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// wordsIn are those of a pod's status, that of its containers first.
func wordsIn(p *corev1.Pod) []preflight.Words {
	var all []preflight.Words
	add := func(reason, message string) {
		if reason != "" || message != "" {
			all = append(all, preflight.Words{Reason: reason, Message: message})
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			add(w.Reason, w.Message)
		}
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if t != nil {
				add(t.Reason, t.Message)
			}
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			add(c.Reason, c.Message)
		}
	}
	add(p.Status.Reason, p.Status.Message)
	return all
}

func hasRun(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// lastLines are the last of the log of a pod, the newest first, and of the container before this one if that has
// ended. They are left out where they can't be read: the state of the pod is known without them.
func (g *gathering) lastLines(ctx context.Context, p *corev1.Pod) []preflight.Words {
	previous := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Running == nil && c.LastTerminationState.Terminated != nil
	})
	body, err := g.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Previous: previous,
		TailLines: ptr.To(int64(logLines)), LimitBytes: ptr.To(int64(logBytes))}).DoRaw(ctx)
	if err != nil {
		return nil
	}
	var all []preflight.Words
	lines := strings.Split(strings.TrimSpace(string(body)), "\n")
	for _, l := range slices.Backward(lines) {
		if l != "" {
			all = append(all, preflight.Words{Message: l})
		}
	}
	return all
}
