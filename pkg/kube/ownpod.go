package kube

import corev1 "k8s.io/api/core/v1"

// OwnPod reports whether a pod is the operator's, whose namespace is given: it comes back with its host.
func OwnPod(namespace string, p *corev1.Pod) bool {
	return p.Namespace == namespace && p.Labels["app.kubernetes.io/name"] == "bottlerocket-update-operator"
}
