package model

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// kind is what makes a move, and what that costs.
type kind uint8

const (
	// system: it comes by itself.
	system kind = iota
	// fault counts against the budget.
	fault
	// human takes back what an earlier fault did, or asks for another try: it costs nothing, and the way
	// to a finished state may not need it.
	human
	// tick lets time pass.
	tick
)

// move is something that happens to one node, but for what controllers do.
type move struct {
	what string
	kind kind
	to   uint32
	// wrote: the Node was written to. ended: another disruption, or none, stands there now.
	wrote, ended bool
	bad          string
}

// moves returns what can happen to a column. Where no fault can come any more, quick, an agent's write
// and a host's command are one step each: only a fault can come between their halves and be told from
// one that came before or after.
func (m *Model) moves(id uint32, quick bool) []move {
	info := m.columns[id]
	at := 0
	if quick {
		at = 1
	}
	if !info.expanded[at] {
		e := expansion{m: m, from: info.column, quick: quick}
		e.all()
		info.moves[at], info.expanded[at] = e.out, true
	}
	return info.moves[at]
}

// expansion collects the moves of one column.
type expansion struct {
	m     *Model
	from  column
	quick bool
	out   []move
}

func (e *expansion) add(k kind, what string, c column, bad string) {
	m := move{what: what, kind: k, bad: bad}
	before, after := e.m.decodings.of(e.from.cur.marks), e.m.decodings.of(c.cur.marks)
	if m.wrote = c.cur != e.from.cur; m.wrote {
		m.ended = before.marks.Disruption == nil || after.marks.Disruption == nil || c.cur.uid != e.from.cur.uid
	}
	if m.bad == "" {
		m.bad = e.m.wrong(&e.from, &c)
	}
	m.to = e.m.intern(c)
	e.m.coverage.move(what)
	e.out = append(e.out, m)
}

// write makes r what stands on the Node. Any other writer meets a conflict, looks again,
// and so is as if it had not begun.
func (m *Model) write(c *column, r record) {
	if r == c.cur {
		return
	}
	c.agentBehind = c.agent.up && c.agent.sent == (report{}) && m.actsOn(c.cur, r)
	c.agent.sent, c.orphan = report{}, report{}
	c.prev, c.behind, c.cur = c.cur, true, r
	if !r.unschedulable && r.exists {
		// The scheduler fills what it may.
		c.pod = true
	}
}

// actsOn reports whether it makes a difference to an agent that it still sees before: it writes nothing from
// there, but it may ask its host for what the intent there wants. A refresh does no harm.
func (m *Model) actsOn(before, after record) bool {
	b, a := m.decodings.of(before.marks).marks, m.decodings.of(after.marks).marks
	answer := b.Report.Answer(b.Intent.ID)
	return b.Intent != a.Intent && b.Intent.ID != "" && b.Intent.Action != marker.ActionStabilize &&
		(answer == marker.StateNone || answer == marker.StateBusy)
}

func (e *expansion) all() {
	e.ofHost()
	e.ofKubelet()
	e.ofAgent()
	e.ofUsers()
}

func (e *expansion) ofHost() {
	c := e.from
	switch {
	case !c.host.up:
		up := c
		up.host.comeUp(false)
		up.adrift = false
		e.m.startAgent(&up)
		e.add(system, "the host comes up", up, "")
		if c.host.state == next.HostReady {
			up := c
			up.host.comeUp(true)
			up.adrift = false
			e.m.startAgent(&up)
			e.add(fault, "the host comes up, rolled back", up, "")
		}
		return
	case c.host.running != "":
		done := c
		done.host.finish(true)
		e.add(system, string(c.host.running)+" ends", done, "")
		if !e.quick {
			failed := c
			failed.host.finish(false)
			e.add(fault, string(c.host.running)+" fails", failed, "")
		}
	}
	gone := c
	gone.host.down()
	e.m.endAgent(&gone)
	if c.host.leaving {
		gone.went = c.host.leavingFor
		e.add(system, "the host goes down", gone, e.m.mayGoDown(&c))
	} else if !e.quick {
		e.add(fault, "the host reboots unplanned", gone, "")
	}
}

func (e *expansion) ofKubelet() {
	c := e.from
	r := c.cur
	switch {
	case !c.host.up && r.exists && r.ready:
		r.ready, r.readySince = false, fresh
		e.m.write(&c, r)
		e.add(system, "the node is found NotReady", c, "")
	case c.host.up && !r.exists:
		e.m.write(&c, record{exists: true, uid: r.uid, labelled: true, ready: true, readySince: fresh, boot: c.host.boot, os: c.host.version})
		e.m.startAgent(&c)
		e.add(system, "the kubelet registers", c, "")
	case c.host.up && (!r.ready || r.boot != c.host.boot || r.os != c.host.version):
		r.ready, r.readySince, r.boot, r.os = true, fresh, c.host.boot, c.host.version
		e.m.write(&c, r)
		e.add(system, "the kubelet reports Ready", c, "")
	case c.host.up && !e.quick:
		r.ready, r.readySince = false, fresh
		e.m.write(&c, r)
		e.add(fault, "the kubelet reports NotReady", c, "")
	}
	if d := e.m.decodings.of(e.from.cur.marks).marks.Disruption; d != nil && d.Soak != nil && d.Soak.Equal(now) {
		c := e.from
		r := c.cur
		r.marks = e.m.soaked(r.marks)
		// Time alone writes nothing.
		if c.agent.sent != (report{}) {
			c.agent.sent.marks = e.m.soaked(c.agent.sent.marks)
		}
		if c.orphan != (report{}) {
			c.orphan.marks = e.m.soaked(c.orphan.marks)
		}
		c.cur = r
		mv := move{what: "the soak's time is over", kind: tick, to: e.m.intern(c)}
		e.out = append(e.out, mv)
	}
}

// soaked puts the beginning of the soak into the past.
func (m *Model) soaked(marks string) string {
	d := m.decodings.of(marks)
	c := d.marks
	if c.Disruption == nil || c.Disruption.Soak == nil {
		return marks
	}
	dis, at := *c.Disruption, past
	dis.Soak = &at
	c.Disruption = &dis
	return written(applied(d.annotations, marker.Diff(d.annotations, marker.Encode(c), marker.WriterController)))
}

func (e *expansion) ofUsers() {
	c := e.from
	if !c.cur.exists {
		return
	}
	d := e.m.decodings.of(c.cur.marks)
	change := func(k kind, what string, edit func(c *column, r *record)) {
		if k == fault && e.quick {
			return
		}
		c, r := e.from, e.from.cur
		edit(&c, &r)
		e.m.write(&c, r)
		e.add(k, what, c, "")
	}
	annotate := func(k kind, what string, key marker.Key, value *string) {
		change(k, what, func(_ *column, r *record) {
			r.marks = written(applied(d.annotations, map[marker.Key]*string{key: value}))
		})
	}
	if c.cur.unschedulable {
		change(fault, "a human uncordons", func(c *column, r *record) {
			r.unschedulable, c.theirs = false, false
			c.taken = c.taken || intent.PointOfNoReturn(d.marks)
		})
	} else {
		change(fault, "a human cordons", func(c *column, r *record) {
			r.unschedulable, c.theirs = true, true
			if dis := d.marks.Disruption; dis != nil && dis.Soak == nil && !dis.WasUnschedulable {
				// Our cordon was replaced by another before a controller looked: nothing tells it from ours.
				c.theirs, c.taken = false, true
			}
		})
	}
	if d.marks.Paused {
		annotate(human, "a human ends the pause", marker.KeyPaused, nil)
	} else {
		annotate(fault, "a human pauses the node", marker.KeyPaused, new("p"))
	}
	if !d.marks.Retry && (d.marks.Failure != nil || d.marks.Report.Says(d.marks.Intent.ID, marker.StateError, marker.ReasonUnrequestedActivation)) {
		annotate(human, "a human wants a retry", marker.KeyRetry, new(""))
	}
	if c.cur.labelled {
		change(fault, "the label is removed", func(_ *column, r *record) { r.labelled = false })
	} else {
		change(human, "the label is put back", func(c *column, r *record) {
			r.labelled = true
			if !c.agent.up {
				c.cur.labelled = true
				e.m.startAgent(c)
				c.cur.labelled = false
			}
		})
	}
	change(fault, "the Node is deleted", func(c *column, r *record) {
		*r = record{uid: r.uid + 1}
		c.theirs, c.taken, c.overdue, c.adrift = false, c.host.leaving, false, c.adrift || c.host.activates()
		e.m.endAgent(c)
	})
	if !c.pod && c.cur.unschedulable && d.marks.Disruption != nil && d.marks.Intent.Action.Stages() && !e.quick {
		c := e.from
		c.pod = true
		e.add(fault, "a pod comes late", c, "")
	}
}
