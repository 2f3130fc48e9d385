package kube

import (
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

var autoscalerMarks = marker.AutoscalerMarks()

// stripNode keeps of a Node what a view is made of, so that memory grows with what is managed: a real
// Node is 8 KiB and more, most of it images and managed fields.
func stripNode(n *corev1.Node) *corev1.Node {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
		Labels: interned(n.Labels), Annotations: kept(n.Annotations), DeletionTimestamp: n.DeletionTimestamp,
		CreationTimestamp: n.CreationTimestamp,
	}}
	out.Spec.Unschedulable = n.Spec.Unschedulable
	out.Spec.Taints = keptTaints(n)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	out.Status.NodeInfo.BootID = strings.Clone(n.Status.NodeInfo.BootID)
	out.Status.NodeInfo.OSImage = unique.Make(n.Status.NodeInfo.OSImage).Value()
	if fleet.InterfaceOf(n.Labels) == fleet.InterfacePlan {
		in, to := &n.Status.NodeInfo, &out.Status.NodeInfo
		to.KubeletVersion = unique.Make(in.KubeletVersion).Value()
		to.KernelVersion = unique.Make(in.KernelVersion).Value()
		to.ContainerRuntimeVersion = unique.Make(in.ContainerRuntimeVersion).Value()
	}
	return out
}

// keptTaints are those that say that a node leaves the cluster. Where the taint of new nodes is to be taken off, it is
// all: the list is written as a whole.
func keptTaints(n *corev1.Node) []corev1.Taint {
	if slices.ContainsFunc(n.Spec.Taints, isFresh) {
		return n.DeepCopy().Spec.Taints
	}
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if leavingTaints[t.Key] != "" {
			out = append(out, corev1.Taint{Key: unique.Make(t.Key).Value(), Effect: t.Effect})
		}
	}
	return out
}

// interned keeps each label, and each value, once in memory for all nodes: most nodes share most of them.
func interned(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[unique.Make(k).Value()] = unique.Make(v).Value()
	}
	return out
}

// kept are the operator's own keys, the marks for autoscalers and the answers of hooks, each once in memory for all
// nodes. Values are cloned: they may be slices of the whole response.
func kept(m map[string]string) map[string]string {
	var out map[string]string
	for k, v := range m {
		if strings.HasPrefix(k, marker.Prefix) || slices.Contains(autoscalerMarks, k) || answers(m, k) {
			if out == nil {
				out = map[string]string{}
			}
			out[unique.Make(k).Value()] = strings.Clone(v)
		}
	}
	return out
}

// answers reports whether an annotation is a hook's answer, by its value: which hooks a policy has isn't known here.
func answers(annotations map[string]string, key string) bool {
	id := annotations[string(marker.KeyHookID)]
	return id != "" && annotations[key] == id && !strings.HasPrefix(key, marker.Prefix)
}

// answered are the annotations that are hooks' answers.
func answered(annotations map[string]string) []string {
	var keys []string
	if annotations[string(marker.KeyHookID)] == "" {
		return nil
	}
	for k := range annotations {
		if answers(annotations, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// stripPod keeps of an agent's pod where it is and if it is Ready, and of a runner's what tells it from an agent's.
func stripPod(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		DeletionTimestamp: p.DeletionTimestamp,
	}}
	if isRunner(p) {
		out.Labels = map[string]string{componentLabel: runnerComponent}
	}
	out.Spec.NodeName = p.Spec.NodeName
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return out
}

func transformNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		return stripNode(n), nil
	}
	return obj, nil
}

func transformPod(obj any) (any, error) {
	if p, ok := obj.(*corev1.Pod); ok {
		return stripPod(p), nil
	}
	return obj, nil
}
