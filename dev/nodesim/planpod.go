package nodesim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanRun is what the pod of a plan does to a machine, in place of the image that can't be pulled here.
type PlanRun struct {
	// Runs is how long its container runs.
	Runs time.Duration
	// Kubelet is the version of the kubelet that is started anew as the container ends; empty: it is not.
	Kubelet string
	// Reboots: the machine reboots once the pod is over.
	Reboots bool
	// Status is the container's exit status, and Message its termination message.
	Status  int32
	Message string
}

// planPod is a pod of a plan on one boot of a machine: it runs once, and is over. A machine that loses its power while
// the pod runs starts it no more, as its kubelet doesn't: it reports that the container is gone.
type planPod struct {
	followed
	ran bool
	// began is when the container started; zero in a later boot.
	began metav1.Time
}

func newPlanPod(u *uptime, pod *corev1.Pod, n int) *planPod {
	p := &planPod{}
	p.begin(u, pod, n, p.follow)
	return p
}

func (p *planPod) follow() error {
	pod := p.pod.Load()
	switch {
	case pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds > 0:
		return p.m.removePod(p.ctx, pod)
	case pod.DeletionTimestamp != nil, over(pod), p.ran:
		return nil
	case pod.Status.Phase == corev1.PodRunning:
		// It ran in the boot before.
		p.ran = true
		return p.end(pod, PlanRun{Status: 255, Message: ""}, "ContainerStatusUnknown")
	}
	p.began = metav1.Now()
	running := p.status(pod, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.began}})
	if err := p.m.writePodStatus(p.ctx, pod, running); err != nil {
		return err
	}
	p.ran = true
	does := p.m.config.Plan(pod)
	if !pause(p.ctx, does.Runs) {
		return nil
	}
	if does.Kubelet != "" {
		p.m.setKubelet(does.Kubelet)
		for p.m.reportBoot(p.ctx) != nil {
			if !pause(p.ctx, retryAfter) {
				return nil
			}
		}
	}
	reason := "Completed"
	if does.Status != 0 {
		reason = "Error"
	}
	for p.end(pod, does, reason) != nil {
		if !pause(p.ctx, retryAfter) {
			return nil
		}
	}
	if does.Reboots {
		p.m.onReboot()
	}
	return nil
}

// end reports how the pod's container ended.
func (p *planPod) end(pod *corev1.Pod, does PlanRun, reason string) error {
	phase := corev1.PodSucceeded
	if does.Status != 0 {
		phase = corev1.PodFailed
	}
	return p.m.writePodStatus(p.ctx, pod, p.status(pod, phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: does.Status, Message: does.Message, Reason: reason, StartedAt: p.began, FinishedAt: metav1.Now()}}))
}

func (p *planPod) status(pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: phase, StartTime: pod.Status.StartTime,
		HostIP: p.m.hostIP(), HostIPs: []corev1.HostIP{{IP: p.m.hostIP()}},
		PodIP: p.ip, PodIPs: []corev1.PodIP{{IP: p.ip}},
	}
	if status.StartTime == nil {
		status.StartTime = new(metav1.Now())
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state})
	}
	return status
}

// setKubelet changes the version that the machine's kubelet reports.
func (m *Machine) setKubelet(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kubeletVersion = version
}

func (m *Machine) reportedKubelet() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kubeletVersion
}
