package kube

import corev1 "k8s.io/api/core/v1"

// OwnPod reports whether a pod is the operator's, whose namespace is given: it comes back with its host. The pods of
// plans are too: one that runs on a node is never evicted from under its own attempt.
func OwnPod(namespace string, p *corev1.Pod) bool {
	return p.Namespace == PlansNamespace && p.Labels[PlanLabel] != "" || p.Namespace == namespace && p.Labels["app.kubernetes.io/name"] == "bottlerocket-update-operator"
}
