package nodesim

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A process that ends is started again after a pause that doubles from
// firstBackoff to lastBackoff; it starts anew after a good run.
const (
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 5 * time.Second
	goodRun      = 10 * time.Second
)

// podRun runs one pod as a process, for as long as pod and power last.
type podRun struct {
	m         *Machine
	namespace string
	dir       string
	ip        string
	started   metav1.Time

	pod     atomic.Pointer[corev1.Pod] // as last seen
	deleted chan struct{}              // closed when its deletion is asked for
	once    sync.Once
	ctx     context.Context // ends with the power or the pod
	cancel  context.CancelFunc
	wg      sync.WaitGroup // what fills volumes and writes the status

	views      chan containerView
	conditions map[corev1.PodConditionType]corev1.PodCondition // the writer's own

	volumes map[string]string
	filled  []*volume
	news    chan struct{} // a volume changed
	problem atomic.Value  // error of the last token request

	process atomic.Pointer[process.Process] // the last one
}

func newPodRun(u *uptime, pod *corev1.Pod, n int) *podRun {
	r := &podRun{
		m:          u.m,
		namespace:  pod.Namespace,
		dir:        filepath.Join(u.m.dir, string(pod.UID)),
		ip:         u.m.podIP(n),
		started:    metav1.Now(),
		deleted:    make(chan struct{}),
		views:      make(chan containerView, 1),
		conditions: map[corev1.PodConditionType]corev1.PodCondition{},
		news:       make(chan struct{}, 1),
	}
	if pod.Status.StartTime != nil {
		r.started = *pod.Status.StartTime
	}
	for _, c := range pod.Status.Conditions {
		r.conditions[c.Type] = c
	}
	r.ctx, r.cancel = context.WithCancel(u.ctx)
	r.see(pod)
	return r
}

// see takes the pod's newest state.
func (r *podRun) see(pod *corev1.Pod) {
	r.pod.Store(pod)
	if pod.DeletionTimestamp != nil {
		r.once.Do(func() { close(r.deleted) })
	}
}

func (r *podRun) seen() *corev1.Pod { return r.pod.Load() }

// vanish ends a pod that is no longer in the API.
func (r *podRun) vanish() { r.cancel() }

func (r *podRun) volumesChanged() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *podRun) trouble(err error) { r.problem.Store(err.Error()); r.volumesChanged() }

// run is the pod's life on this boot of the machine.
func (r *podRun) run() {
	defer func() {
		r.cancel()
		r.wg.Wait()
	}()
	r.wg.Go(func() { r.writeStatuses(r.ctx) })
	view := r.resume()
	backoff := firstBackoff
	if err := r.mount(r.ctx); err != nil {
		r.trouble(err)
	}
	for {
		// Also a pod whose deletion was asked for while the power was off.
		if r.isDeleted() {
			r.remove()
			return
		}
		err := r.awaitVolumes(view)
		var p *process.Process
		var c Command
		if err == nil {
			p, c, err = r.start()
		}
		if err != nil {
			view.ready, view.state = false, waiting("CreateContainerError", err.Error())
			r.report(view)
		} else {
			began := time.Now()
			view.phase = corev1.PodRunning
			r.supervise(p, c, &view)
			if r.ctx.Err() != nil {
				return
			}
			if time.Since(began) >= goodRun {
				backoff = firstBackoff
			}
			view.ready, view.last = false, terminated(p, began)
			view.restarts++
			view.state = waiting("CrashLoopBackOff", "the process ended")
			if !r.isDeleted() {
				r.report(view)
			}
		}
		if !r.rest(backoff) {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// resume is where the pod stands: one that ran before this boot was restarted.
func (r *podRun) resume() containerView {
	view := containerView{phase: corev1.PodPending}
	for _, c := range r.seen().Status.ContainerStatuses {
		view.restarts, view.last = c.RestartCount, c.LastTerminationState
		if c.State.Running != nil {
			view.phase = corev1.PodRunning
			view.restarts++
			view.last = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 255, Reason: "Unknown", StartedAt: c.State.Running.StartedAt, FinishedAt: metav1.Now(),
			}}
		}
	}
	return view
}

// awaitVolumes waits until every volume has its files.
func (r *podRun) awaitVolumes(view containerView) error {
	shown := false
	for {
		ready := true
		for _, v := range r.filled {
			ok, err := v.ready()
			if err != nil {
				return err
			}
			ready = ready && ok
		}
		if ready {
			return nil
		}
		if problem, _ := r.problem.Load().(string); problem != "" || !shown {
			shown = true
			view.ready, view.state = false, waiting("ContainerCreating", problem)
			r.report(view)
		}
		select {
		case <-r.ctx.Done():
			return r.ctx.Err()
		case <-r.deleted:
			return errors.New("the pod is deleted")
		case <-r.news:
		}
	}
}

// start starts the pod's process.
func (r *podRun) start() (*process.Process, Command, error) {
	pod := r.seen()
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 {
		return nil, Command{}, errors.New("only pods with one container are simulated")
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, Command{}, errors.Wrap(err, "making a pod's folder")
	}
	c, err := r.m.fleet.config.Command(Pod{Pod: pod, Machine: r.m, Dir: r.dir, Cluster: r.m.fleet.cluster, volumes: r.volumes})
	if err != nil {
		return nil, c, err
	}
	log, err := process.Log(filepath.Join(r.m.fleet.logs, r.m.name+"-"+pod.Name+".log"))
	if err != nil {
		return nil, c, err
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := process.Start(cmd)
	if err == nil {
		r.process.Store(p)
	}
	return p, c, err
}

// supervise watches over a process until it has ended: by itself, because the
// pod is deleted, or with the power.
func (r *podRun) supervise(p *process.Process, c Command, view *containerView) {
	view.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	view.ready = c.Ready == ""
	r.report(*view)
	timer := time.NewTimer(probeUntilReady)
	defer timer.Stop()
	failures := 0
	for {
		select {
		case <-p.Done():
			return
		case <-r.ctx.Done():
			p.Kill()
			return
		case <-r.deleted:
			r.terminate(p)
			return
		case <-timer.C:
		}
		ok := probe(r.ctx, c.Ready)
		if ok {
			failures = 0
		} else {
			failures++
		}
		if ready := ok || view.ready && failures < probeFailures; ready != view.ready {
			view.ready = ready
			r.report(*view)
		}
		next := probeUntilReady
		if view.ready {
			next = probeAfter
		}
		timer.Reset(next)
	}
}

// terminate ends the process of a deleted pod: politely for its grace period.
func (r *podRun) terminate(p *process.Process) {
	grace := time.Duration(0)
	if s := r.seen().DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	stopped := make(chan struct{})
	go func() { p.Stop(grace); close(stopped) }()
	select {
	case <-stopped:
	case <-r.ctx.Done():
		p.Kill()
		<-stopped
	}
}

// remove takes the pod out of the API when nothing of it runs any more.
func (r *podRun) remove() {
	for r.m.removePod(r.ctx, r.seen()) != nil {
		if !pause(r.ctx, retryAfter) {
			return
		}
	}
	_ = os.RemoveAll(r.dir)
}

func (r *podRun) isDeleted() bool {
	select {
	case <-r.deleted:
		return true
	default:
		return false
	}
}

// rest waits before the next look; a deletion ends it early. False: the power or
// the pod is gone.
func (r *podRun) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.ctx.Done():
		return false
	case <-r.deleted:
		return true
	case <-timer.C:
		return true
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(p *process.Process, began time.Time) corev1.ContainerState {
	t := &corev1.ContainerStateTerminated{
		ExitCode: int32(p.ExitCode()), Reason: "Error", StartedAt: metav1.NewTime(began), FinishedAt: metav1.Now(),
	}
	switch {
	case t.ExitCode == 0:
		t.Reason = "Completed"
	case t.ExitCode < 0:
		t.ExitCode = 137
	}
	return corev1.ContainerState{Terminated: t}
}
