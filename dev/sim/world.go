package sim

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner"
)

// namespace is the operator's own.
const namespace = "bottlerocket"

// world is one run: a cluster, its machines, the operator's processes, users and what goes wrong, on
// one clock. Everything in it runs in one goroutine at a time, in an order that the seed decides.
type world struct {
	scenario Scenario
	settings policy.Settings
	rng      *rand.Rand
	now      time.Time

	server      *apiserver.Server
	repo        *hostsim.Repo
	machines    []*machine
	controllers []*controllerProcess
	runners     []*runnerProcess
	cluster     *cluster
	processes   []*process
	running     *thread
	events      events
	sequence    int

	// calm: nothing goes wrong any more, and nothing but the operator and Kubernetes acts.
	calm      bool
	calmSince time.Time
	// proxyDown is until when no proxy answers, proxyClock how far the proxies' clocks are off.
	proxyDown  time.Time
	proxyClock time.Duration
	apiDown    time.Time

	controllerMetrics *controller.Metrics
	agentMetrics      *agent.Metrics
	runnerMetrics     *runner.Metrics

	restores []*restoring
	// awaited are faults that were put off to a moment.
	awaited []Fault
	checks  checks
	trace   trace
	// transcript is nil unless it is asked for.
	transcript *transcript
	struck     map[Kind]int
	// hadPolicy: something was started by a policy file.
	hadPolicy bool
	// people is the users' client.
	people *apiserver.Client
	// newest is the version published last; releases and renames count.
	newest            string
	releases, renames int
	// wavesOpen is when the last of the releases with waves is open to every host.
	wavesOpen time.Time
	// asked counts the requests for cycles.
	asked int
	// bad are versions that come up on no machine.
	bad     []string
	log     *logrus.Logger
	steps   int
	watches []*feed
	// unreached are nodes, by name, that a controller could not write to.
	unreached map[string]*unreached
	// rounds counts the changes of templates; quota is until when no pod of a plan may be made.
	rounds int
	quota  time.Time
	// plansThere are the plans of the policy with the version plansOf: reading it takes longer than all else at rest.
	plansThere []policy.Plan
	plansOf    string
}

type event struct {
	at    time.Time
	order int
	do    func()
}

// events are what is to happen, as a heap.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	if e[i].at.Equal(e[j].at) {
		return e[i].order < e[j].order
	}
	return e[i].at.Before(e[j].at)
}

// Push is for container/heap.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop is for container/heap.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// after lets do happen in d.
func (w *world) after(d time.Duration, do func()) {
	w.sequence++
	heap.Push(&w.events, event{at: w.now.Add(d), order: w.sequence, do: do})
}

// restore lets do happen in d, or when everything is put right, if that is earlier.
func (w *world) restore(d time.Duration, do func()) {
	r := &restoring{do: do}
	w.restores = append(w.restores, r)
	w.after(d, r.now)
}

type restoring struct{ do func() }

func (r *restoring) now() {
	if do := r.do; do != nil {
		r.do = nil
		do()
	}
}

// between draws a duration.
func (w *world) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// chance draws true once in n.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// step lets the next thing happen; false: nothing is to happen before end.
func (w *world) step(end time.Time) bool {
	var first *thread
	at := end
	for _, p := range w.processes {
		if p.stopped || p.dead {
			continue
		}
		for _, t := range p.threads {
			due := t.due
			if t.woken != nil {
				select {
				case <-t.woken:
					// A process that is told something isn't on the CPU at once.
					t.due, t.woken = w.now.Add(w.between(0, 5*time.Millisecond)), nil
					due = t.due
				default:
				}
			}
			if t.cancelled != nil && t.woken != nil && t.cancelled() && due.After(w.now) {
				t.due, t.woken = w.now, nil
				due = w.now
			}
			if due.Before(at) {
				at, first = due, t
			}
		}
	}
	if len(w.events) > 0 && !w.events[0].at.After(at) {
		if w.events[0].at.After(end) {
			w.now = end
			return false
		}
		e := heap.Pop(&w.events).(event)
		w.advance(e.at)
		e.do()
		w.steps++
		return true
	}
	if first == nil {
		w.advance(end)
		return false
	}
	w.advance(at)
	first.resume()
	w.steps++
	return true
}

// advance moves the clock, never back: what was due while a process was stopped is late.
func (w *world) advance(t time.Time) {
	if t.After(w.now) {
		w.now = t
	}
}

// run lets things happen until end, a violation or too many steps.
func (w *world) run(end time.Time) {
	for w.checks.violation == "" && w.step(end) {
		if w.steps > maxSteps {
			w.violate("L", "the run takes more than %d steps: something goes round in circles", maxSteps)
		}
	}
}

// maxSteps is far beyond what a run takes.
const maxSteps = 2_000_000

func quiet() *logrus.Logger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.PanicLevel)
	return l
}

// strike counts a fault that had an effect.
func (w *world) strike(k Kind) { w.struck[k]++ }

func (w *world) note(actor, format string, args ...any) { w.trace.add(w.now, actor, format, args...) }

func (w *world) violate(promise, format string, args ...any) {
	if w.checks.violation != "" {
		return
	}
	w.checks.violation = promise + ": " + fmt.Sprintf(format, args...)
	w.note("VIOLATION", "%s", w.checks.violation)
}
