package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// uptime is the time from one boot to the end of power, and all that runs in it.
type uptime struct {
	m        *Machine
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	reported chan struct{} // closed when the API knows of the boot

	mu   sync.Mutex
	pods map[types.UID]*podRun
	made int
}

func (m *Machine) newUptime() *uptime {
	u := &uptime{m: m, reported: make(chan struct{}), pods: map[types.UID]*podRun{}}
	u.ctx, u.cancel = context.WithCancel(m.ctx)
	u.wg.Go(u.run)
	return u
}

// end is the end of power: everything is killed when it returns.
func (u *uptime) end() {
	u.cancel()
	u.wg.Wait()
}

// run is the kubelet: it reports the boot, then has pods run.
func (u *uptime) run() {
	if u.m.neverReady() {
		close(u.reported)
		return
	}
	if !pause(u.ctx, u.m.fleet.config.KubeletStart) {
		return
	}
	if !u.persist(u.m.releaseLease) || !u.persist(u.m.reportBoot) {
		return
	}
	close(u.reported)
	u.wg.Go(u.keepKwok)
	selector := fields.OneTermEqualSelector("spec.nodeName", u.m.name)
	watch(u.ctx, &u.wg, u.m.kubelet.CoreV1().RESTClient(), "pods", u.m.fleet.config.Namespace, selector, u.seePod)
}

// keepKwok runs kwok, again if it ends by itself.
func (u *uptime) keepKwok() {
	for u.ctx.Err() == nil {
		var p *process.Process
		if !u.persist(func(context.Context) (err error) { p, err = u.m.startKwok(); return err }) {
			return
		}
		select {
		case <-u.ctx.Done():
			p.Kill()
			return
		case <-p.Done():
		}
		if !pause(u.ctx, time.Second) || !u.persist(u.m.releaseLease) {
			return
		}
	}
}

// persist tries something until it works; false: the power went first.
func (u *uptime) persist(try func(context.Context) error) bool {
	for {
		if err := try(u.ctx); err == nil {
			return true
		}
		if !pause(u.ctx, retryAfter) {
			return false
		}
	}
}

// seePod gives each pod of the operator's namespace its podRun.
func (u *uptime) seePod(_, pod *corev1.Pod, gone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	run := u.pods[pod.UID]
	if gone {
		if run != nil {
			run.vanish()
			delete(u.pods, pod.UID)
		}
		return
	}
	if run == nil {
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if u.ctx.Err() != nil || over && pod.DeletionTimestamp == nil {
			return
		}
		run = newPodRun(u, pod, u.made)
		u.made++
		u.pods[pod.UID] = run
		u.wg.Go(run.run)
		return
	}
	run.see(pod)
}

// pause waits; false: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
