package nodesim

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// uptime is the time from one boot to the end of power, and all that runs in it.
type uptime struct {
	m        *Machine
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	reported chan struct{} // closed when the API knows of the boot, or isn't going to

	mu   sync.Mutex
	pods map[types.UID]podLife
	made int
}

// podLife is what the kubelet does for one pod, in a goroutine of its own.
type podLife interface {
	// run returns when the power or the pod is gone.
	run()
	// see takes the pod's newest state.
	see(*corev1.Pod)
	// vanish ends a pod that is no longer in the API.
	vanish()
}

func (m *Machine) newUptime() *uptime {
	u := &uptime{m: m, reported: make(chan struct{}), pods: map[types.UID]podLife{}}
	u.ctx, u.cancel = context.WithCancel(m.ctx)
	u.wg.Go(u.run)
	return u
}

// end is the end of power: everything is killed when it returns.
func (u *uptime) end() {
	u.cancel()
	u.wg.Wait()
}

// run is the kubelet: it reports the boot, then has pods run. One that stays away comes when its fault is gone, and
// isn't awaited.
func (u *uptime) run() {
	reported := sync.OnceFunc(func() { close(u.reported) })
	for u.m.neverReady() {
		reported()
		if !pause(u.ctx, retryAfter) {
			return
		}
	}
	if !pause(u.ctx, u.m.fleet.config.KubeletStart) {
		return
	}
	if !u.persist(u.m.renewLease) || !u.persist(u.m.reportBoot) {
		return
	}
	reported()
	u.wg.Go(u.beat)
	selector := fields.OneTermEqualSelector("spec.nodeName", u.m.name)
	watch(u.ctx, &u.wg, u.m.kubelet.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, selector, u.seePod)
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

// seePod gives each pod on the machine its life.
func (u *uptime) seePod(_, pod *corev1.Pod, gone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	life := u.pods[pod.UID]
	switch {
	case gone && life != nil:
		life.vanish()
		delete(u.pods, pod.UID)
	case life != nil:
		life.see(pod)
	case !gone && u.ctx.Err() == nil && (!over(pod) || pod.DeletionTimestamp != nil):
		life = u.newPodLife(pod)
		u.pods[pod.UID] = life
		u.wg.Go(life.run)
	}
}

func (u *uptime) newPodLife(pod *corev1.Pod) podLife {
	n := u.made
	u.made++
	if pod.Namespace == u.m.fleet.config.Namespace {
		return newPodRun(u, pod, n)
	}
	if pod.Namespace == kube.PlansNamespace && u.m.config.Plan != nil {
		return newPlanPod(u, pod, n)
	}
	return newOrdinaryPod(u, pod, n)
}

// over reports whether all containers of a pod have ended for good.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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
