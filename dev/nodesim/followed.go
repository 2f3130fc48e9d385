package nodesim

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// followed is a pod on one boot of a machine that no process runs for: its newest state alone says what is next.
type followed struct {
	m      *Machine
	ip     string
	pod    atomic.Pointer[corev1.Pod] // as last seen
	news   chan struct{}              // it changed
	ctx    context.Context            // ends with the power or the pod
	cancel context.CancelFunc
	// follow does what the pod's newest state asks for. It is called again after an error, so that an API server that is
	// away delays a pod and nothing more.
	follow func() error
}

func (p *followed) begin(u *uptime, pod *corev1.Pod, n int, follow func() error) {
	p.m, p.ip, p.news, p.follow = u.m, u.m.podIP(n), make(chan struct{}, 1), follow
	p.ctx, p.cancel = context.WithCancel(u.ctx)
	p.see(pod)
}

func (p *followed) see(pod *corev1.Pod) {
	p.pod.Store(pod)
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (p *followed) vanish() { p.cancel() }

func (p *followed) run() {
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
