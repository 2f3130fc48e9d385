package sim

import (
	"context"
	"iter"
	"time"
)

// process is one that can be killed, stopped (SIGSTOP) and woken between any two of its requests.
type process struct {
	w    *world
	name string
	// ctx is what the process's work runs under; a killed process cancels nothing, it just ends.
	ctx     context.Context
	threads []*thread
	// stopped: none of its threads goes on before the process is woken.
	stopped bool
	dead    bool
	// net is what can go wrong between this process and the servers it asks.
	net network
	// clock is how far its clock is off.
	clock time.Duration
}

func (w *world) newProcess(name string) *process {
	p := &process{w: w, name: name, ctx: context.Background()}
	p.net.p = p
	w.processes = append(w.processes, p)
	return p
}

// runs reports whether it was started, and has not ended.
func (p *process) runs() bool { return p != nil && !p.dead }

func (p *process) now() time.Time { return p.w.now.Add(p.clock) }

// kill ends the process where it stands: what was not written is lost.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.dead = true
	if t := p.w.running; t != nil && t.p == p {
		// It kills itself, a reboot that it asked for takes it along: the scheduler reaps it.
		return
	}
	p.reap()
}

func (p *process) reap() {
	for _, t := range p.threads {
		t.stop()
	}
	p.threads = nil
}

// thread is one line of work in a process: a coroutine that gives control back at each request and each
// wait, so that anything can happen between any two of them, and always in the order of the seed.
type thread struct {
	p    *process
	next func() (struct{}, bool)
	stop func()
	give func(struct{}) bool
	// due is when it goes on, woken what lets it go on earlier, if anything.
	due   time.Time
	woken <-chan struct{}
	// cancelled ends its waits early; nil: nothing does.
	cancelled func() bool
	// deadline is when its requests end, whatever their state; zero: never.
	deadline time.Time
	// judged is by what the writes to Nodes of a thread that a pass began are judged; nil: by what its process decided last.
	judged *judged
	// listed is the revision of its last list of pods or nodes.
	listed int64
}

// killed unwinds the stack of a thread whose process was killed.
type killed struct{}

// spawn starts a thread; it begins to run when it is due.
func (p *process) spawn(after time.Duration, body func(t *thread)) *thread {
	t := &thread{p: p, due: p.w.now.Add(after)}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, is := r.(killed); !is {
					panic(r)
				}
			}
		}()
		t.give = yield
		body(t)
	})
	p.threads = append(p.threads, t)
	return t
}

// pause gives control back for d.
func (t *thread) pause(d time.Duration) {
	t.due = t.p.w.now.Add(d)
	if !t.give(struct{}{}) {
		panic(killed{})
	}
}

// sleep is pause, but ends early when woken is readable or the thread's work is cancelled.
func (t *thread) sleep(d time.Duration, woken <-chan struct{}) {
	t.woken = woken
	if d > forever {
		d = forever
	}
	t.pause(d)
	t.woken = nil
}

// forever is longer than any run.
const forever = 10 * 365 * 24 * time.Hour

// resume lets the thread go on until it gives control back.
func (t *thread) resume() {
	w := t.p.w
	w.running = t
	_, more := t.next()
	w.running = nil
	if t.p.dead {
		t.p.reap()
		return
	}
	if !more {
		for i, other := range t.p.threads {
			if other == t {
				t.p.threads = append(t.p.threads[:i:i], t.p.threads[i+1:]...)
				break
			}
		}
	}
}
