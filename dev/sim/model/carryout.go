package model

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// aged is what a change's marks have become when the clock jumped after they were planned.
func (m *Model) aged(k marker.Marks) marker.Marks {
	k.Intent.Time, k.Intent.Until = later(k.Intent.Time), later(k.Intent.Until)
	if k.Disruption != nil {
		d := *k.Disruption
		d.Since = later(d.Since)
		if d.Soak != nil {
			at := later(*d.Soak)
			d.Soak = &at
		}
		k.Disruption = &d
	}
	if k.Failure != nil {
		f := *k.Failure
		f.RetryAfter = later(f.RetryAfter)
		k.Failure = &f
	}
	history := append([]marker.Attempt(nil), k.History...)
	for i := range history {
		history[i].Ended = later(history[i].Ended)
	}
	k.History = history
	return k
}

// successor is a state that one transition leads to. Its text is only made when it is read.
type successor struct {
	to   state
	kind kind
	bad  string
	// What was done: a move of a column, or a controller's task.
	node, controller int
	move             *move
	task             string
	work             uint32
	after            []after
}

func (n *successor) String() string {
	text := n.task
	if n.move != nil {
		text = fmt.Sprintf("%s: %s", nodeName(n.node), n.move.what)
	} else if n.controller >= 0 {
		text = fmt.Sprintf("controller %c: %s", 'A'+n.controller, n.task)
	}
	for _, a := range n.after {
		text += fmt.Sprintf("; then %s: %s", nodeName(a.node), a.end.how)
	}
	return text
}

// controller adds what controller j can do next.
func (m *Model) controller(s *state, j int, add func(*successor)) {
	if s.work[j] == 0 {
		m.pass(s, j, add)
		return
	}
	m.do(s, j, add)
	if m.may(s, controllersFail) {
		m.crash(*s, j, add)
	}
}

// look is one way to gather: which nodes a watch shows as they were.
func (m *Model) look(s *state, j, choice int) (k planKey, t state, possible bool) {
	k.slots = s.cache[j]
	t = *s
	if s.slot(j)&cacheKnown == 0 {
		k.slots, t.cache[j] = s.slots, s.slots
		t.setSlot(j, s.slot(j)|cacheKnown|cacheCurrent)
	}
	for i := range m.config.Nodes {
		prev := choice>>i&1 != 0
		known := s.knows(i, j)
		if prev && known&lags == 0 {
			return k, t, false
		}
		k.views[i] = m.shown(s.columns[i], known&drainMask == drainEmpty, prev)
		if prev {
			t.setKnows(i, j, known&^stands)
		} else {
			t.setKnows(i, j, known&^lags|stands)
		}
	}
	return k, t, true
}

// pass gathers and plans: each Node as it is or, while the watch lags, as it was.
func (m *Model) pass(s *state, j int, add func(*successor)) {
	for choice := range 1 << m.config.Nodes {
		k, t, possible := m.look(s, j, choice)
		if !possible {
			continue
		}
		id := m.planned(k)
		if id == 0 {
			if choice == 0 && s.slot(j)&cacheKnown == 0 {
				// Nothing to do; but from now on the list is known as it is.
				seen := *s
				seen.cache[j], seen.slotted = t.cache[j], t.slotted
				add(&successor{to: seen, kind: tick, controller: j, task: "passes and finds nothing to do"})
			}
			continue
		}
		w := m.divide(id)
		for i := range w.local {
			l := &w.local[i]
			if choice == 0 {
				m.atOnce(&t, j, l, add)
			}
		}
		if w.rest != 0 {
			t.work[j] = w.rest
			task := "plans"
			if choice != 0 {
				task = fmt.Sprintf("plans from an old look (%b)", choice)
				m.coverage.move("a plan from an old look")
			}
			add(&successor{to: t, controller: j, task: task, work: w.rest})
		}
	}
	if m.may(s, controllersFail) {
		m.pause(s, j, add)
	}
}

// pause has a controller plan while the policy pauses the fleet, and no longer: nodes that drain are set aside.
func (m *Model) pause(s *state, j int, add func(*successor)) {
	k, t, _ := m.look(s, j, 0)
	k.paused = true
	id := m.planned(k)
	if id == 0 {
		return
	}
	m.fail(&t)
	w := m.divide(id)
	for i := range w.local {
		l := &w.local[i]
		if l.drain || l.look || m.steps[l.step].Act != intent.ActUncordon {
			continue
		}
		m.atOnce(&t, j, l, func(n *successor) {
			n.kind, n.task = fault, "plans in a pause, "+n.task
			m.coverage.move("a plan in a pause")
			add(n)
		})
	}
}

// atOnce plans and carries out a local task in one step.
func (m *Model) atOnce(s *state, j int, l *localTask, add func(*successor)) {
	t := *s
	if l.drain {
		k := s.knows(l.node, j)
		if k&drainRuns != 0 {
			return
		}
		t.setKnows(l.node, j, k&^drainMask|drainRuns)
		if s.victims&(1<<l.node|controllersFail|clockJumps) == 0 && !m.config.Full {
			m.evict(&t, j, l.node)
		}
		add(&successor{to: t, controller: j, task: l.text})
		return
	}
	if l.look && m.columns[s.columns[l.node]].pod && m.config.Defect != DefectNoLook {
		t.setKnows(l.node, j, s.knows(l.node, j)&^drainMask)
		add(&successor{to: t, controller: j, task: l.text + ", there is one"})
		return
	}
	m.writeStep(s, j, l.node, l.step, l.then, 0, l.text, add)
}

// evict is one eviction pass over a node.
func (m *Model) evict(s *state, j, node int) {
	k := s.knows(node, j)
	c := m.columns[s.columns[node]]
	if c.pod && c.cur.exists {
		s.columns[node] = m.evicted(s.columns[node])
	}
	found := k &^ drainMask
	if k&drainRuns != 0 && c.disrupted {
		found |= drainEmpty
	}
	s.setKnows(node, j, found)
}

// writeStep writes a step's change to its node; yes and no are the works that follow.
func (m *Model) writeStep(s *state, j, node int, step, yes, no uint32, text string, add func(*successor)) {
	t := *s
	o := m.apply(appliedKey{column: s.columns[node], step: step, jumped: s.knows(node, j)&planJumped != 0})
	bad := o.bad
	if o.counts && s.faults == 0 && bad == "" {
		bad = "L1: a failure is counted although nothing went wrong"
	}
	if o.cordons && bad == "" {
		bad = m.mayCordon(s, node)
	}
	t.columns[node], t.work[j] = o.to, yes
	if o.wrote {
		m.wrote(&t, node, j, o.ended)
	}
	add(&successor{to: t, controller: j, task: text, bad: bad})
	if m.may(s, controllersFail) && o.wrote {
		lost := t
		lost.work[j] = no
		m.fail(&lost)
		m.wrote(&lost, node, -1, o.ended)
		m.coverage.move("the answer to a controller's write is lost")
		add(&successor{to: lost, kind: fault, controller: j, task: text + ", and the answer is lost", bad: bad})
	}
}

// do carries out the next task of controller j.
func (m *Model) do(s *state, j int, add func(*successor)) {
	w := &m.works[s.work[j]]
	faulty := m.may(s, controllersFail)
	t := *s
	t.work[j] = w.yes
	refused := *s
	refused.work[j] = w.no
	switch w.task.Kind {
	case plan.TaskTakeSlots, plan.TaskFreeSlots:
		if s.slot(j)&cacheCurrent == 0 && m.config.Defect != DefectBlindSlots {
			refused.setSlot(j, refused.slot(j)&^(cacheKnown|cacheCurrent))
			m.coverage.move("a conflict over the slots")
			add(&successor{to: refused, controller: j, task: w.text + ", a conflict"})
			return
		}
		after := s.cache[j]
		for uid := range w.task.Take {
			after |= holdersOf([]string{uid})
		}
		after &^= holdersOf(w.task.Free)
		if after == s.slots && (len(w.task.Take) == 0 || m.config.Defect == DefectIdleTake) {
			add(&successor{to: t, controller: j, task: w.text})
			return
		}
		t.slots, t.cache[j] = after, after
		for o := range m.config.Controllers {
			if o != j {
				t.setSlot(o, t.slot(o)&^cacheCurrent)
			}
		}
		add(&successor{to: t, controller: j, task: w.text})
		if faulty {
			lost := t
			lost.work[j] = w.no
			lost.setSlot(j, lost.slot(j)&^(cacheKnown|cacheCurrent))
			m.fail(&lost)
			m.coverage.move("the answer to a change of slots is lost")
			add(&successor{to: lost, kind: fault, controller: j, task: w.text + ", and the answer is lost"})
		}
	case plan.TaskLook:
		c := m.columns[s.columns[w.node]]
		if c.cur.exists && nodeUID(w.node, c.cur.uid) == w.task.Step.UID {
			t = refused
		}
		add(&successor{to: t, controller: j, task: w.text})
	case plan.TaskWrite:
		m.writeStep(s, j, w.node, w.step, w.yes, w.no, w.text, add)
	default:
		// The other tasks change nothing that is modelled: see plan.go.
	}
}

// crash is the end of a controller's process, and a new one's begin.
func (m *Model) crash(s state, j int, add func(*successor)) {
	s.work[j], s.cache[j] = 0, 0
	s.setSlot(j, 0)
	for i := range m.config.Nodes {
		s.setKnows(i, j, s.knows(i, j)&lags)
	}
	m.fail(&s)
	m.coverage.move("a controller dies and begins again")
	add(&successor{to: s, kind: fault, controller: j, task: "dies and begins again"})
}

// mayCordon checks a cordon as it is written (S1).
func (m *Model) mayCordon(s *state, node int) string {
	c := m.columns[s.columns[node]]
	if s.slots&holder(node, c.cur.uid) == 0 {
		return "S1: a node is cordoned without a slot"
	}
	disrupted, overdue := 1, 0
	for i := range m.config.Nodes {
		if i == node {
			continue
		}
		if o := m.columns[s.columns[i]]; o.disrupted {
			disrupted++
			if o.overdue {
				overdue++
			}
		}
	}
	if limit := m.settings.MaxUnavailable.Of(m.config.Nodes) + min(overdue, m.settings.MaxLost.Of(m.config.Nodes)); disrupted > limit {
		return fmt.Sprintf("S1: %d nodes are disrupted and %d may be", disrupted, limit)
	}
	return ""
}

// expand finds all transitions from s.
func (m *Model) expand(s *state, add func(*successor)) {
	busy := false
	put := func(n *successor) {
		if n.kind == system {
			busy = true
		}
		m.tidy(&n.to)
		if n.bad == "" {
			n.bad = m.holds(&n.to)
		}
		if n.bad != "" {
			add(n)
			return
		}
		m.goOn(n, 0, add)
	}
	for i := range m.config.Nodes {
		quick := !m.may(s, 1<<i|clockJumps) && !m.config.Full
		fails := m.may(s, 1<<i)
		moves := m.moves(s.columns[i], quick)
		for at := range moves {
			mv := &moves[at]
			if mv.kind == fault && !fails {
				continue
			}
			t := *s
			t.columns[i] = mv.to
			if mv.kind == fault {
				m.fail(&t)
			}
			if mv.wrote {
				m.wrote(&t, i, -1, mv.ended)
			}
			put(&successor{to: t, kind: mv.kind, bad: mv.bad, node: i, controller: -1, move: mv})
		}
		for j := range m.config.Controllers {
			if s.knows(i, j)&drainRuns != 0 {
				t := *s
				m.evict(&t, j, i)
				put(&successor{to: t, node: i, controller: j, task: "a pass over " + nodeName(i) + " evicts what is left"})
			}
		}
	}
	for j := range m.config.Controllers {
		m.controller(s, j, put)
	}
	leaving := false
	for i := range m.config.Nodes {
		leaving = leaving || m.columns[s.columns[i]].host.leaving
	}
	if !busy && !m.isFinished(s) {
		t := *s
		for i := range m.config.Nodes {
			m.jumpNode(&t, i)
		}
		put(&successor{to: t, kind: tick, controller: -1, task: "the clock jumps"})
		return
	}
	// A host that was asked to reboot goes down before a deadline passes.
	if m.may(s, clockJumps) && !leaving {
		t := *s
		for i := range m.config.Nodes {
			m.jumpNode(&t, i)
		}
		m.fail(&t)
		put(&successor{to: t, kind: fault, controller: -1, task: "the clock jumps"})
	}
	for i := range m.config.Nodes {
		if m.may(s, 1<<i) && !m.columns[s.columns[i]].host.leaving {
			t := *s
			m.jumpNode(&t, i)
			m.fail(&t)
			m.coverage.move("the deadlines of a node pass")
			put(&successor{to: t, kind: fault, controller: -1, task: "the deadlines of " + nodeName(i) + " pass"})
			for j := range m.config.Controllers {
				m.jumpAfterPlan(s, j, i, put)
			}
		}
	}
}

// jumpNode lets every deadline of a node pass.
func (m *Model) jumpNode(s *state, node int) {
	s.columns[node] = m.jump(s.columns[node])
	for j := range m.config.Controllers {
		if k := s.knows(node, j); k&stands != 0 {
			s.setKnows(node, j, k|planJumped)
		}
	}
}

// jumpAfterPlan lets a node's deadlines pass between a local task's plan and its write.
func (m *Model) jumpAfterPlan(s *state, j, node int, add func(*successor)) {
	if s.work[j] != 0 {
		return
	}
	k, t, _ := m.look(s, j, 0)
	id := m.planned(k)
	if id == 0 {
		return
	}
	w := m.divide(id)
	for i := range w.local {
		if l := &w.local[i]; !l.drain && l.node == node {
			after := t
			m.jumpNode(&after, node)
			m.fail(&after)
			m.atOnce(&after, j, l, func(n *successor) {
				n.kind, n.task = fault, "plans, the deadlines of "+nodeName(node)+" pass, "+n.task
				add(n)
			})
		}
	}
}

// goOn lets nodes whose next steps concern no other node make them, as far as that goes: what others do can
// as well come after. Where there are several ways, it takes all of them.
func (m *Model) goOn(n *successor, from int, add func(*successor)) {
	s := &n.to
	if m.config.Full || m.may(s, clockJumps) {
		add(n)
		return
	}
	for i := from; i < m.config.Nodes; i++ {
		if m.may(s, 1<<i) || m.concerned(s, i) {
			continue
		}
		slot := (s.slots|s.cache[0]|s.cache[1])>>(4*i)&15 != 0
		// Whichever controller is free does what there is to do; if one may die, it matters which.
		free := false
		for j := range m.config.Controllers {
			free = free || s.work[j] == 0 && s.slot(j)&cacheKnown != 0 && !m.may(s, controllersFail)
		}
		ends := m.ends(endKey{s.columns[i], slot, free})
		if len(ends) == 0 {
			continue
		}
		for at := range ends {
			t := *n
			t.to.columns[i] = ends[at].column
			for j := range m.config.Controllers {
				t.to.setKnows(i, j, 0)
			}
			m.tidy(&t.to)
			t.after = append(append([]after(nil), n.after...), after{i, &ends[at]})
			m.goOn(&t, i+1, add)
		}
		return
	}
	add(n)
}

// after is what a node did of itself after a transition.
type after struct {
	node int
	end  *end
}

// concerned reports whether a controller is at work on a node, or may still see an old one.
func (m *Model) concerned(s *state, node int) bool {
	for j := range m.config.Controllers {
		if s.knows(node, j)&^drainEmpty != 0 || m.works[s.work[j]].writes>>node&1 != 0 {
			return true
		}
	}
	return false
}

func (m *Model) evicted(id uint32) uint32 {
	c := m.columns[id].column
	c.pod = false
	return m.intern(c)
}

// holds checks what is true in every state.
func (m *Model) holds(s *state) string {
	for i := range m.config.Nodes {
		if c := m.columns[s.columns[i]]; c.disrupted && s.slots&holder(i, c.cur.uid) == 0 {
			return "S1: a disrupted node holds no slot"
		}
	}
	return ""
}

func (m *Model) isFinished(s *state) bool {
	for i := range m.config.Nodes {
		if !m.columns[s.columns[i]].finished {
			return false
		}
	}
	return s.slots == 0 && s.work == [MaxControllers]uint32{}
}
