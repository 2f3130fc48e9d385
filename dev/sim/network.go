package sim

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
)

// network is what may happen to the requests of one process. Each kind is in force until its time.
type network struct {
	p *process
	// until and oneIn: until then, one request in so many meets the fault.
	until map[Kind]time.Time
	oneIn map[Kind]int
}

func (n *network) disturb(k Kind, until time.Time, oneIn int) {
	if n.until == nil {
		n.until, n.oneIn = map[Kind]time.Time{}, map[Kind]int{}
	}
	n.until[k], n.oneIn[k] = until, oneIn
}

// meets draws if a request meets the fault.
func (n *network) meets(k Kind) bool {
	w := n.p.w
	if len(n.until) == 0 || w.calm || !w.now.Before(n.until[k]) || !w.chance(n.oneIn[k]) {
		return false
	}
	w.strike(k)
	return true
}

// hop is the time that a message takes.
func (w *world) hop() time.Duration { return w.between(200*time.Microsecond, 8*time.Millisecond) }

// around is the way of each of the process's requests to the API server: it takes time, during which
// all other processes go on, and what comes back may not be what happened.
func (p *process) around(r apiserver.Request, run func() error) error {
	w, t := p.w, p.w.running
	if t == nil || t.p != p {
		panic("sim: a request of " + p.name + " from outside its threads: " + r.String())
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if w.calm && r.Resource == "leases" {
		// Nothing can come between any more, and it is most of what there is to do at rest.
		return run()
	}
	t.pause(w.hop())
	switch {
	case w.now.Before(w.apiDown):
		w.strike(APIServerDown)
		t.pause(w.between(time.Millisecond, 100*time.Millisecond))
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case p.net.meets(SlowRequest):
		if t.pauseUntilDeadline(w.between(time.Second, 20*time.Second)) {
			return context.DeadlineExceeded
		}
	case p.net.meets(LostRequest):
		return apiserver.ConnectionLost(r)
	case p.net.meets(Throttled):
		return apiserver.Throttled(time.Second)
	}
	if !t.deadline.IsZero() && !w.now.Before(t.deadline) {
		return context.DeadlineExceeded
	}
	if r.Verb == "list" && (r.Resource == "pods" || r.Resource == "nodes") {
		t.listed = w.server.Revision()
	}
	if c := w.controllerNamed(p.name); c != nil && r.Verb == "patch" && r.Resource == "nodes" {
		ask := run
		run = func() error { return c.write(t, r, ask) }
	}
	err := run()
	lost := (r.Verb != "get" && r.Verb != "list") && p.net.meets(LostAnswer)
	if lost && err == nil {
		w.note(p.name, "the answer to %s is lost", r)
	}
	t.pause(w.hop())
	switch {
	case lost:
		return apiserver.ConnectionLost(r)
	case p.net.meets(SlowAnswer):
		if t.pauseUntilDeadline(w.between(time.Second, 20*time.Second)) {
			return context.DeadlineExceeded
		}
	}
	return err
}

// pauseUntilDeadline is pause, but reports whether the thread's deadline came first.
func (t *thread) pauseUntilDeadline(d time.Duration) bool {
	if left := t.deadline.Sub(t.p.w.now); !t.deadline.IsZero() && left < d {
		t.pause(max(0, left))
		return true
	}
	t.pause(d)
	return false
}
