package nodesim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ordinaryPod is a pod outside of the operator's namespace, on one boot of a machine. No process runs for it: it is
// ready as soon as it is seen, and gone a while after its deletion was asked for.
type ordinaryPod struct{ followed }

func newOrdinaryPod(u *uptime, pod *corev1.Pod, n int) *ordinaryPod {
	p := &ordinaryPod{}
	p.begin(u, pod, n, p.follow)
	return p
}

func (p *ordinaryPod) follow() error {
	pod := p.pod.Load()
	switch {
	case pod.DeletionTimestamp != nil:
		if !pause(p.ctx, p.m.fleet.config.PodStop) {
			return nil
		}
		return p.m.removePod(p.ctx, pod)
	case over(pod), Serving(pod):
		return nil
	}
	return p.m.writePodStatus(p.ctx, pod, p.ready(pod))
}

// ready is the status of a pod whose containers all run and are ready.
func (p *ordinaryPod) ready(pod *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: pod.Status.StartTime,
		HostIP: p.m.hostIP(), HostIPs: []corev1.HostIP{{IP: p.m.hostIP()}},
		PodIP: p.ip, PodIPs: []corev1.PodIP{{IP: p.ip}},
	}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
