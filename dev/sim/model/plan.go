package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// MaxNodes and MaxControllers are what a state has room for.
const (
	MaxNodes       = 3
	MaxControllers = 2
)

// drainPause is how long after an eviction pass the next one is worth while.
const drainPause = 200 * time.Millisecond

// holders is a list of slots: four bits for each node, one for each of its UIDs.
type holders uint16

func holder(node int, uid uint8) holders { return 1 << (4*node + int(uid)) }

func nodeName(node int) string           { return fmt.Sprintf("n%d", node+1) }
func nodeUID(node int, uid uint8) string { return fmt.Sprintf("n%d-u%d", node+1, uid) }

func (h holders) list() map[string]string {
	out := map[string]string{}
	for node := range MaxNodes {
		for uid := range uint8(4) {
			if h&holder(node, uid) != 0 {
				out[nodeUID(node, uid)] = nodeName(node)
			}
		}
	}
	return out
}

func holdersOf(uids []string) holders {
	var h holders
	for _, s := range uids {
		h |= holder(int(s[1]-'1'), s[4]-'0')
	}
	return h
}

// viewOf returns the number of what a controller sees of one node.
func (m *Model) viewOf(n fleet.Node) uint32 {
	key := fmt.Sprintf("%+v|%+v|%+v|%+v|%+v", n.Marks.Intent, n.Marks.Report, n.Marks.History, n.Marks.Waiting, n.Problems)
	if d := n.Marks.Disruption; d != nil {
		key += fmt.Sprintf("|d%+v,%v", *d, d.Soak)
	}
	if f := n.Marks.Failure; f != nil {
		key += fmt.Sprintf("|f%+v", *f)
	}
	key += fmt.Sprintf("|%v,%v,%s", n.Marks.Paused, n.Marks.Retry, n.Marks.PausedReason)
	drain := n.Drain != nil
	n.Marks.Intent.ID = ""
	key += fmt.Sprintf("|%s,%s,%v,%v,%s,%s,%s,%v,%v,%v", n.UID, n.Interface, n.Unschedulable, n.Ready, n.ReadySince, n.BootID, n.OSVersion, n.AgentPod, n.AgentReady, drain)
	if id, ok := m.viewNumber[key]; ok {
		return id
	}
	id := uint32(len(m.views))
	m.viewNumber[key] = id
	m.views = append(m.views, nil)
	return id
}

// shown returns the number of what controller with drained sees of a column.
func (m *Model) shown(id uint32, drained, prev bool) uint32 {
	info := m.columns[id]
	at := 0
	if drained {
		at = 1
	}
	if !info.hasView {
		for i, drained := range []bool{false, true} {
			info.shown[i] = m.number(m.seen(info.column, info.cur, drained))
			if info.behind {
				info.shownPrev[i] = m.number(m.seen(info.column, info.prev, drained))
			}
		}
		info.hasView = true
	}
	if prev && info.behind {
		return info.shownPrev[at]
	}
	return info.shown[at]
}

func (m *Model) number(n fleet.Node) uint32 {
	kept := n
	id := m.viewOf(n)
	if m.views[id] == nil {
		m.views[id] = &kept
	}
	return id
}

// planKey is all that a plan is made from.
type planKey struct {
	views [MaxNodes]uint32
	slots holders
	// paused: the policy pauses the fleet as the plan is made, and takes back what is in flight.
	paused bool
}

// planned returns the number of the work that a plan leads to; 0 is none.
func (m *Model) planned(k planKey) uint32 {
	if id, ok := m.plans[k]; ok {
		return id
	}
	s := fleet.Snapshot{Now: now, Slots: k.slots.list(), FirstSeen: seen}
	for i := range m.config.Nodes {
		n := *m.views[k.views[i]]
		if n.UID == "" {
			continue
		}
		n.Name, n.UID = nodeName(i), nodeUID(i, n.UID[0]-'0')
		s.Nodes = append(s.Nodes, n)
	}
	s.Nodes = append(s.Nodes, bystander)
	set := m.settings
	if k.paused {
		set.Pause = &policy.Pause{InFlight: policy.Return}
	}
	out := planner.Plan(s, set)
	m.coverage.plan(out)
	out = m.steady(out)
	id := m.workOf(*plan.NewWork(out))
	m.plans[k] = id
	return id
}

// steady leaves out of a plan what only tells users what is waited for.
func (m *Model) steady(out plan.Plan) plan.Plan {
	if !m.config.Notes {
		out.Steps = slices.DeleteFunc(out.Steps, func(s plan.Step) bool {
			return s.Act == intent.ActNote && s.Reason != plan.ReasonClockCorrected
		})
	}
	return out
}

// work is what is left of a plan: the next task, and what follows a yes and a no.
type work struct {
	task    plan.Task
	node    int
	step    uint32
	yes, no uint32
	// writes are the nodes that it may still write to, a bit each.
	writes uint8
	text   string

	// local are the tasks that depend on nothing but their node, and rest is the work without them.
	local []localTask
	rest  uint32
	split bool
}

// localTask is a task that every later plan repeats as long as its node stands as it is, so that it
// makes no difference when it was planned: it is planned and carried out in one step.
type localTask struct {
	node int
	step uint32
	text string
	// look: first a live look for pods. drain: an eviction pass, and no write.
	look, drain bool
	// then is what is left once it was written: slots to free.
	then uint32
}

// isLocal reports whether a step depends on nothing but its node: not a cordon, which depends on what others
// do, and not a fence, which depends on the list of slots.
func isLocal(s plan.Step) bool {
	return s.Act != intent.ActCordon && s.Act != intent.ActRelease && s.Reason != plan.ReasonSlotUnused
}

// divide finds a work's local tasks, and what is left without them.
func (m *Model) divide(id uint32) *work {
	if w := &m.works[id]; w.split || id == 0 {
		return w
	}
	w := m.works[id]
	rest := func(id uint32) uint32 { m.divide(id); return m.works[id].rest }
	yes, no := rest(w.yes), rest(w.no)
	w.local = append(w.local, m.works[w.no].local...)
	kind, local := w.task.Kind, isLocal(w.task.Step)
	switch {
	case local && kind == plan.TaskWrite:
		w.local = append(w.local, localTask{node: w.node, step: w.step, text: w.text, then: m.freeing(w.yes)})
		w.rest = no
	case local && kind == plan.TaskLook && w.task.Step.Before == plan.LookEmpty:
		write := m.works[w.yes]
		w.local = append(w.local, localTask{node: w.node, step: write.step, text: "look for pods, " + write.text, look: true, then: m.freeing(write.yes)})
		w.rest = no
	case local && kind == plan.TaskDrain:
		w.local = append(w.local, localTask{node: w.node, text: w.text, drain: true})
		w.rest = no
	default:
		left := w
		left.yes, left.no, left.local, left.split = yes, no, nil, false
		left.writes = m.works[yes].writes | m.works[no].writes
		if kind == plan.TaskWrite {
			left.writes |= 1 << w.node
		}
		w.rest = m.numberOf(left)
		m.works[w.rest].rest, m.works[w.rest].split = w.rest, true
	}
	if id == w.rest {
		w.local = nil
	}
	w.split = true
	m.works[id] = w
	return &m.works[id]
}

// freeing is what is left of a work when all that it would still write is refused.
func (m *Model) freeing(id uint32) uint32 {
	for id != 0 && m.works[id].task.Kind != plan.TaskFreeSlots {
		id = m.works[id].no
	}
	return id
}

// workOf returns the number of what is left of w. Two that lead to the same requests are one.
func (m *Model) workOf(w plan.Work) uint32 {
	task, more := w.Next()
	if !more {
		return 0
	}
	out := work{task: task, node: -1}
	if task.Step.Node != "" {
		out.node = int(task.Step.Node[1] - '1')
	}
	yes, no := w, w
	yes.Did(true)
	no.Did(false)
	out.yes, out.no = m.workOf(yes), m.workOf(no)
	out.writes = m.works[out.yes].writes | m.works[out.no].writes
	if task.Kind == plan.TaskWrite {
		out.writes |= 1 << out.node
		out.step = m.stepOf(task.Step)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s", task.Kind)
	switch task.Kind {
	case plan.TaskTakeSlots:
		fmt.Fprintf(&b, " %v", task.Take)
	case plan.TaskFreeSlots:
		fmt.Fprintf(&b, " %v", task.Free)
	case plan.TaskWrite:
		fmt.Fprintf(&b, " %s %s %s", task.Step.Node, task.Step.Act, task.Step.Reason)
	default:
		fmt.Fprintf(&b, " %s", task.Step.Node)
	}
	out.text = b.String()
	return m.numberOf(out)
}

func (m *Model) numberOf(w work) uint32 {
	key := fmt.Sprintf("%s|%s|%d|%d|%d", w.text, w.task.Step.UID, w.step, w.yes, w.no)
	if id, ok := m.workNumber[key]; ok {
		return id
	}
	id := uint32(len(m.works))
	m.workNumber[key] = id
	m.works = append(m.works, w)
	return id
}

// stepOf returns the number of what a step writes.
func (m *Model) stepOf(s plan.Step) uint32 {
	c := s.Change
	key := fmt.Sprintf("%s|%s|%v|%v|%v", s.Act, s.Reason, c.DropRetry, c.RemoveAll, c.Unschedulable != nil && *c.Unschedulable)
	key += fmt.Sprintf("|%v|%s|%+v", c.Unschedulable == nil, c.ResourceVersion, written(applied(map[string]string{}, c.Diff(nil))))
	if id, ok := m.stepNumber[key]; ok {
		return id
	}
	id := uint32(len(m.steps))
	m.stepNumber[key] = id
	m.steps = append(m.steps, s)
	return id
}

// appliedKey is a step on a column.
type appliedKey struct {
	column, step uint32
	jumped       bool
}

// outcome is what a controller's write makes of a column.
type outcome struct {
	to     uint32
	wrote  bool
	ended  bool
	counts bool
	// cordons: the write makes a cordon of ours, or a record of one.
	cordons bool
	bad     string
}

// apply carries a step's change out on the column that it was planned from.
func (m *Model) apply(k appliedKey) outcome {
	if o, ok := m.outcomes[k]; ok {
		return o
	}
	c := m.columns[k.column].column
	step := m.steps[k.step]
	d := m.decodings.of(c.cur.marks)
	change := *step.Change
	r := c.cur
	diff := change.Diff(d.annotations)
	if k.jumped {
		change.Marks = m.aged(change.Marks)
		diff = change.Diff(d.annotations)
	}
	after := applied(d.annotations, diff)
	r.marks = written(after)
	if change.Unschedulable != nil {
		r.unschedulable = *change.Unschedulable
	}
	o := outcome{to: k.column, wrote: len(diff) > 0 || change.Unschedulable != nil}
	if o.wrote {
		from := c
		if r == c.cur {
			// An empty change all the same bumps the resourceVersion.
			c.agent.sent, c.orphan = report{}, report{}
		}
		m.write(&c, r)
		a := m.decodings.of(r.marks).marks
		o.ended = (d.marks.Disruption == nil) != (a.Disruption == nil)
		o.cordons = d.marks.Disruption == nil && a.Disruption != nil || change.Unschedulable != nil && *change.Unschedulable && d.marks.Disruption == nil
		if o.ended {
			c.overdue = false
			c.taken = c.taken && c.host.leaving
		}
		if step.Act == intent.ActLeave {
			c.taken = c.taken || from.overdue
			c.adrift = c.adrift || c.host.activates() || d.marks.Intent.Action == marker.ActionRebootUpdate
		}
		step.Change = &change
		o.counts = m.countsFailure(&from, step)
		if o.bad = m.wrong(&from, &c); o.bad == "" {
			o.bad = m.mayWrite(&from, &c, step)
		}
		o.to = m.intern(c)
		m.coverage.act(step)
	}
	m.outcomes[k] = o
	return o
}
