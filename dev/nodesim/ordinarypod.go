package nodesim

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ordinaryPod is a pod outside of the operator's namespace, on one boot of a machine. No process runs for it: it is
// ready as soon as it is seen, and gone a while after its deletion was asked for.
type ordinaryPod struct {
	m      *Machine
	ip     string
	pod    atomic.Pointer[corev1.Pod] // as last seen
	news   chan struct{}              // it changed
	ctx    context.Context            // ends with the power or the pod
	cancel context.CancelFunc
}

func newOrdinaryPod(u *uptime, pod *corev1.Pod, n int) *ordinaryPod {
	p := &ordinaryPod{m: u.m, ip: u.m.podIP(n), news: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(u.ctx)
	p.see(pod)
	return p
}

func (p *ordinaryPod) see(pod *corev1.Pod) {
	p.pod.Store(pod)
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (p *ordinaryPod) vanish() { p.cancel() }

func (p *ordinaryPod) run() {
	defer p.cancel()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.news:
		}
		for p.follow() != nil {
			if !pause(p.ctx, retryAfter) {
				return
			}
		}
	}
}

// follow does what the pod's newest state asks for. It is called again after an error, so that an API server that is
// away delays a pod and nothing more.
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
