package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner"
)

const (
	runnerPart = "runner"
	// runnerLoops is how many of a runner's loops run: that which looks for trouble, that of the targets, and some of
	// its workers. More of them would only be more to wait for.
	runnerLoops = 5
	// probeEvery is how often a kubelet asks a runner whether it is ready.
	probeEvery = 10 * time.Second
)

// runnerProcess is a pod of the runner: the real runner.Runner. Any number of them act at once, without an election.
type runnerProcess struct {
	w    *world
	name string
	// home is the machine that it runs on; nil: its pod waits for a node. pod is the pod's name.
	home    *machine
	pod     string
	process *process
	// ready is what is stored of it, unready since when it hasn't been; zero: it is.
	ready   bool
	unready time.Time
	// now is when it read its clock last.
	now time.Time
}

func (w *world) newRunner(i int) {
	r := &runnerProcess{w: w, name: fmt.Sprintf("runner-%c", 'a'+i), unready: w.now}
	w.runners = append(w.runners, r)
	r.placed()
}

func (w *world) runnerNamed(name string) *runnerProcess {
	for _, r := range w.runners {
		if r.name == name {
			return r
		}
	}
	return nil
}

// placed is the scheduler, which finds a node for the pod.
func (r *runnerProcess) placed() {
	w := r.w
	if r.home != nil {
		return
	}
	node := w.cluster.schedule()
	m := w.cluster.machineOf(node)
	if m == nil {
		w.after(5*time.Second, r.placed)
		return
	}
	w.cluster.names++
	r.home, r.pod = m, fmt.Sprintf("%s-%d", r.name, w.cluster.names)
	w.cluster.ownPod(r.pod, runnerPart, node)
	w.after(w.between(time.Second, 5*time.Second), r.start)
}

// podGone is what follows from the pod's end: another one.
func (r *runnerProcess) podGone() {
	if r.process != nil {
		r.process.kill()
	}
	r.home, r.pod = nil, ""
	r.w.after(r.w.between(time.Second, 5*time.Second), r.placed)
}

// start starts a new process, with a memory of nothing.
func (r *runnerProcess) start() {
	if r.process.runs() || r.home == nil || !r.home.up || r.w.server.Pod(namespace, r.pod) == nil {
		return
	}
	r.say(false)
	r.process = r.w.newProcess(r.name)
	r.process.spawn(r.w.between(0, time.Second), r.main)
}

// crash kills the process; the kubelet starts it again.
func (r *runnerProcess) crash(back time.Duration) {
	r.process.kill()
	r.say(false)
	r.w.after(back, r.start)
}

func (r *runnerProcess) main(*thread) {
	w, p := r.w, r.process
	watched := map[*informer]runner.Source{}
	var order []*informer
	run := must(runner.New(runner.Config{
		Options: runner.DefaultOptions(), Client: w.server.Client(r.name, p.around),
		Informer: func(s runner.Source) kube.Informer {
			i := newInformer(s.Indexers)
			i.strip, watched[i] = s.Strip, s
			order = append(order, i)
			return i
		},
		Queue: func(limiter workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string] {
			return newQueue(p, limiter)
		},
		Time: runner.Time{
			Now: func() time.Time { r.now = p.now(); return r.now },
			Rest: func(_ context.Context, d time.Duration, woken <-chan struct{}) bool {
				w.running.sleep(d, woken)
				return true
			},
			Within: p.within,
		},
		Random: w.rng.Float64, Metrics: w.runnerMetrics, Log: w.log,
	}))
	for _, i := range order {
		s := watched[i]
		sel := apiserver.Selection{Resource: s.Resource, Namespace: s.Namespace, LabelSelector: s.Selector}
		if s.Name != "" {
			sel.FieldSelector = "metadata.name=" + s.Name
		}
		w.open(p, sel, i)
	}
	for _, loop := range run.Loops()[:runnerLoops] {
		p.spawn(w.between(0, 100*time.Millisecond), func(*thread) { loop(background) })
	}
	r.probe(p, run)
}

// within has all requests of the running thread end after d, unless they end earlier.
func (p *process) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	t := p.w.running
	before := t.deadline
	if end := p.w.now.Add(d); before.IsZero() || end.Before(before) {
		t.deadline = end
	}
	return ctx, func() { t.deadline = before }
}

// probe is the kubelet's, on and on.
func (r *runnerProcess) probe(p *process, run *runner.Runner) {
	w := r.w
	if p.dead {
		return
	}
	w.after(w.between(probeEvery/2, probeEvery), func() {
		if !p.dead && r.home.up && !p.stopped {
			r.say(run.Ready() == nil)
		}
		r.probe(p, run)
	})
}

// say is the kubelet's word on the pod.
func (r *runnerProcess) say(ready bool) {
	if r.ready == ready || r.home == nil || !r.home.up {
		return
	}
	if p := r.w.server.Pod(namespace, r.pod); p != nil {
		r.w.cluster.setPodReady(p, ready)
	}
}

// runnersOn are the runners on a machine.
func (w *world) runnersOn(m *machine) []*runnerProcess {
	var out []*runnerProcess
	for _, r := range w.runners {
		if r.home == m {
			out = append(out, r)
		}
	}
	return out
}

// runnerPodWrote is told of each write of the operator's pods.
func (w *world) runnerPodWrote(before, after *corev1.Pod) {
	for _, r := range w.runners {
		if after != nil && r.pod == after.Name || before != nil && r.pod == before.Name {
			ready := after != nil && podReady(after)
			if r.ready && !ready {
				r.unready = w.now
			}
			if r.ready = ready; ready {
				r.unready = time.Time{}
			}
			if after == nil {
				r.podGone()
			}
		}
	}
}

// queue is a workqueue whose workers are threads.
type queue struct {
	p       *process
	limiter workqueue.TypedRateLimiter[string]
	due     []string
	// dirty are those that are due, or were added while a worker had them; taken are those that a worker has.
	dirty, taken map[string]bool
	// later is when those are due that are not yet.
	later map[string]time.Time
	woken chan struct{}
}

func newQueue(p *process, limiter workqueue.TypedRateLimiter[string]) *queue {
	return &queue{p: p, limiter: limiter, dirty: map[string]bool{}, taken: map[string]bool{}, later: map[string]time.Time{}, woken: make(chan struct{}, 1)}
}

func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// Add, and what follows, are for workqueue.TypedRateLimitingInterface.
func (q *queue) Add(name string) {
	if q.dirty[name] {
		return
	}
	q.dirty[name] = true
	if !q.taken[name] {
		q.due = append(q.due, name)
		q.wake()
	}
}

func (q *queue) Get() (string, bool) {
	for len(q.due) == 0 {
		q.p.w.running.sleep(forever, q.woken)
	}
	name := q.due[0]
	if q.due = q.due[1:]; len(q.due) > 0 {
		q.wake()
	}
	delete(q.dirty, name)
	q.taken[name] = true
	return name, false
}

func (q *queue) Done(name string) {
	delete(q.taken, name)
	if q.dirty[name] {
		q.due = append(q.due, name)
		q.wake()
	}
}

func (q *queue) AddAfter(name string, d time.Duration) {
	at := q.p.w.now.Add(d)
	if earlier, waits := q.later[name]; waits && !earlier.After(at) {
		return
	}
	q.later[name] = at
	q.p.w.after(d, func() {
		if q.later[name].Equal(at) && !q.p.dead {
			delete(q.later, name)
			q.Add(name)
		}
	})
}

func (q *queue) AddRateLimited(name string)  { q.AddAfter(name, q.limiter.When(name)) }
func (q *queue) Forget(name string)          { q.limiter.Forget(name) }
func (q *queue) NumRequeues(name string) int { return q.limiter.NumRequeues(name) }
func (q *queue) Len() int                    { return len(q.due) }
func (q *queue) ShutDown()                   {}
func (q *queue) ShutDownWithDrain()          {}
func (q *queue) ShuttingDown() bool          { return false }
