package model

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
)

// column is all that there is of one node: its Node object, its host with kubelet, pod and agent, and
// what the checks remember. It can be compared, and it says nothing of which node it is.
type column struct {
	// cur is the Node, and prev what it was before the last write, while a watch may still show that.
	cur, prev record
	behind    bool
	// agentBehind: the agent's watch may still show prev.
	agentBehind bool

	host  host
	agent agent
	// orphan is a write that a dead agent left at the proxy: judged, not yet carried out.
	orphan report
	// pod: the one pod that can be evicted is on the node.
	pod bool

	// What the checks remember.

	// theirs: a cordon stands that is not the operator's.
	theirs bool
	// went is the intent for which the host went down last.
	went string
	// overdue: the clock has jumped since the cordon, so that the node may be Lost.
	overdue bool
	// adrift: our marks went away, by a human's wish, while the host had something activated or was about
	// to. What comes after takes that for another updater's, until the host boots.
	adrift bool
	// taken: the cordon was taken away after the point of no return, or the Node was deleted.
	taken bool
}

// host is one host of the Update API.
type host struct {
	up      bool
	boot    string
	version string
	state   next.HostState
	chosen  string
	staged  string
	last    next.LastCommand
	running next.Command
	// leaving: a shutdown has been asked for, for the intent leavingFor.
	leaving    bool
	leavingFor string
}

// agent is one agent's process.
type agent struct {
	up     bool
	memory next.Memory
	// sent is its write, judged by the proxy and not yet carried out.
	sent report
	// affirmed is the intent for which `busy` was carried out for this very process.
	affirmed string
	// asked is the intent for which this very process asked for a reboot.
	asked string
}

// report is an agent's write on the Node as it stands: what the marks will be.
type report struct {
	marks string
	// busy: it says busy to the intent that stands.
	busy bool
}

// columnInfo is a column and what follows from it, found when it is first asked for.
type columnInfo struct {
	column
	// disrupted and drains: a disruption of ours stands on it; it is in phase Draining.
	disrupted, drains, finished bool
	// sameView: that a controller still sees prev makes no difference.
	sameView bool

	moves    [2][]move
	expanded [2]bool
	// shown is what a controller sees of cur and of prev, after a drain at 1.
	shown, shownPrev [2]uint32
	hasView          bool
	// settled is the column when no watch shows prev any more, and jumped that after a jump of the clock.
	settled, jumped uint32
	// closures at 1 is for a node that holds a slot.
	closures [2]*closure
}

// intern returns the number of the column that c is in its own terms.
func (m *Model) intern(c column) uint32 { return m.internAt(c, moment) }

func (m *Model) internAt(c column, at momentOf) uint32 {
	t := newTerms(at)
	c.cur = m.recordIn(t, c.cur)
	sent := c.agent.sent
	if sent != (report{}) {
		sent.marks = m.in(t, sent.marks)
	}
	if c.orphan != (report{}) {
		c.orphan.marks = m.in(t, c.orphan.marks)
	}
	if c.behind {
		c.prev = m.recordIn(t, c.prev)
		if c.prev == c.cur {
			// It went and came back as it was.
			c.behind, c.agentBehind = false, false
		}
	}
	if !c.behind {
		c.prev, c.agentBehind = record{}, false
	}
	h := &c.host
	h.boot, h.last.Timestamp, h.leavingFor = t.boots.name(h.boot), t.logs.name(h.last.Timestamp), t.ids.name(h.leavingFor)
	if c.agent.up {
		c.agent.memory, c.agent.sent = c.agent.memory.In(t.of()), sent
		c.agent.affirmed, c.agent.asked = t.ids.known(c.agent.affirmed), t.ids.known(c.agent.asked)
	} else {
		c.agent = agent{}
	}
	c.went = t.ids.known(c.went)
	if n, ok := m.columnOf[c]; ok {
		return n
	}
	n := uint32(len(m.columns))
	m.columnOf[c] = n
	d := m.decodings.of(c.cur.marks)
	m.columns = append(m.columns, &columnInfo{column: c, disrupted: d.marks.Disruption != nil, drains: phase(d) == intent.PhaseDraining,
		settled: none, jumped: none, finished: m.finished(c), sameView: !c.behind || m.same(c)})
	return n
}

// none is no number of anything.
const none = ^uint32(0)

// same reports whether it makes no difference to a controller that it still sees prev. All that it would write
// to this node fails then, so what counts is what prev does to the plans for others (that it is there, in
// our hands, Lost) and to the list of slots (that it asks for one). The limits on staging and on the last
// schedulable node never bind in the model, and an eviction from an old look takes away what no check
// asks for.
func (m *Model) same(c column) bool {
	prev, cur := m.shadow(m.seen(c, c.prev, false)), m.shadow(m.seen(c, c.cur, false))
	return !prev.asks && prev == cur
}

// shadow is what a node does beyond itself.
type shadow struct {
	uid             string
	disrupted, lost int
	// asks: it would take a slot.
	asks bool
}

func (m *Model) shadow(n fleet.Node) shadow {
	key := m.number(n)
	if known, ok := m.shadows[key]; ok {
		return known
	}
	s := shadow{uid: n.UID}
	if n.UID != "" {
		out := planner.Plan(fleet.Snapshot{Now: now, Nodes: []fleet.Node{n, bystander}, FirstSeen: seen}, m.settings)
		s.disrupted, s.lost = out.Disrupted, out.LostUncounted
		for _, step := range out.Steps {
			s.asks = s.asks || step.Act == intent.ActCordon
		}
	}
	m.shadows[key] = s
	return s
}

// closure tells how far a column goes its own way.
type closure struct {
	// closed: whatever happens to it next concerns no other node. moves: something happens by itself;
	// tasks: a controller has something to do for it.
	closed, moves, tasks bool
}

// closed finds out if all that can happen next to a column changes nothing of what it does beyond itself,
// so that it makes no difference to the rest of the system when it happens: its own moves, and what a
// controller would do for it alone. A human's move may come at any time and is not put off.
func (m *Model) closed(id uint32, slot bool) closure {
	at := 0
	if slot {
		at = 1
	}
	if known := m.columns[id].closures[at]; known != nil {
		return *known
	}
	out := m.closure(id, slot)
	m.columns[id].closures[at] = &out
	return out
}

func (m *Model) closure(id uint32, slot bool) closure {
	c := m.columns[id].column
	if c.behind || !c.cur.exists {
		return closure{}
	}
	out := closure{closed: true}
	mine := m.shadow(m.seen(c, c.cur, false))
	sameShadow := func(to uint32) bool {
		t := m.columns[to].column
		return m.shadow(m.seen(t, t.cur, false)) == mine
	}
	for _, drained := range []bool{false, true} {
		for _, step := range m.single(c, slot, drained) {
			out.tasks = true
			if step.Act == intent.ActDrain {
				continue
			}
			if !isLocal(step) || step.FreesSlot {
				return closure{}
			}
			if o := m.apply(appliedKey{column: id, step: m.stepOf(step)}); o.bad != "" || o.cordons || !sameShadow(o.to) {
				return closure{}
			}
		}
	}
	for _, mv := range m.moves(id, true) {
		switch mv.kind {
		case system, tick:
			if mv.bad != "" || !sameShadow(mv.to) {
				return closure{}
			}
			out.moves = true
		case human:
			return closure{}
		case fault:
		}
	}
	out.closed = out.moves || out.tasks
	return out
}

// end is a column at which another has arrived when it went on by itself as far as that concerns no other
// node, and how.
type end struct {
	column uint32
	how    string
}

type endKey struct {
	column      uint32
	slot, tasks bool
}

// ends finds where a column arrives by itself; none if it has to stay where it is. With tasks there is a
// controller that does what is to be done for it.
func (m *Model) ends(k endKey) []end {
	if known, ok := m.endsOf[k]; ok {
		return known
	}
	var out []end
	seen := map[uint32]bool{}
	var follow func(id uint32, how string)
	follow = func(id uint32, how string) {
		id = m.unseen(id)
		if seen[id] {
			return
		}
		seen[id] = true
		c := m.closed(id, k.slot)
		if !c.closed || c.tasks && !k.tasks {
			if id != k.column {
				out = append(out, end{column: id, how: how})
			}
			return
		}
		if how != "" {
			how += ", "
		}
		for _, mv := range m.moves(id, true) {
			if mv.kind != fault {
				follow(mv.to, how+mv.what)
			}
		}
		if c.tasks {
			m.tasks(id, k.slot, func(to uint32, what string) { follow(to, how+what) })
		}
	}
	follow(k.column, "")
	m.endsOf[k] = out
	return out
}

// unseen is a column whose prev makes no difference any more.
func (m *Model) unseen(id uint32) uint32 {
	if c := m.columns[id]; c.behind && !c.agentBehind && c.sameView {
		return m.settle(id)
	}
	return id
}

// tasks finds what a controller makes of a closed column.
func (m *Model) tasks(id uint32, slot bool, add func(to uint32, what string)) {
	how := ""
	for _, drained := range []bool{false, true} {
		for _, step := range m.single(m.columns[id].column, slot, drained) {
			if step.Act == intent.ActDrain {
				id, how = m.evicted(id), "a controller drains, "
				continue
			}
			if !drained || how != "" {
				add(m.apply(appliedKey{column: id, step: m.stepOf(step)}).to, how+"a controller writes "+string(step.Act)+" "+string(step.Reason))
			}
		}
		if how == "" {
			return
		}
	}
}

// single is what a controller would do for a column alone.
func (m *Model) single(c column, slot, drained bool) []plan.Step {
	n := m.seen(c, c.cur, drained)
	n.Name, n.UID = nodeName(0), nodeUID(0, c.cur.uid)
	snapshot := fleet.Snapshot{Now: now, Nodes: []fleet.Node{n, bystander}, FirstSeen: seen}
	if slot {
		snapshot.Slots = map[string]string{n.UID: n.Name}
	}
	return m.steady(planner.Plan(snapshot, m.settings)).Steps
}

// bystander is another node, which isn't ours and takes the pods of those that are.
var bystander = fleet.Node{Name: "other", UID: "other", Ready: true}

// nothingInTheWay is what every look before a cordon finds: a look changes nothing but when a node is cordoned, which
// may be at any time.
var nothingInTheWay = &fleet.Forecast{At: now}

// seen is a record as a controller gathers it.
func (m *Model) seen(c column, r record, drained bool) fleet.Node {
	if !r.exists {
		return fleet.Node{}
	}
	n := m.view(r)
	n.Forecast = nothingInTheWay
	n.AgentPod, n.AgentReady = c.agent.up || c.cur.labelled && c.cur.exists, c.agent.up
	if n.Marks.Disruption != nil && drained {
		n.Drain = &fleet.Drain{Next: now.Add(drainPause)}
	}
	n.UID = string('0' + rune(r.uid))
	return n
}

// settle returns the column when no watch shows prev any more.
func (m *Model) settle(id uint32) uint32 {
	info := m.columns[id]
	if !info.behind {
		return id
	}
	if info.settled == none {
		c := info.column
		c.behind, c.agentBehind = false, false
		n := m.intern(c)
		m.columns[id].settled = n
	}
	return info.settled
}

// jump returns the column after a jump of the clock.
func (m *Model) jump(id uint32) uint32 {
	info := m.columns[id]
	if info.jumped == none {
		c := info.column
		d := m.decodings.of(c.cur.marks)
		c.overdue = d.marks.Disruption != nil
		told := m.translated
		m.translated = nil
		info.jumped = m.internAt(c, later)
		m.translated = told
	}
	return info.jumped
}
