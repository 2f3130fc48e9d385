package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Plan decides on one snapshot. Nodes that are in progress are looked at first, each by itself; what is left of the
// limits then goes to those that want it, see order.go for which come first.
func Plan(s fleet.Snapshot, set policy.Settings) plan.Plan {
	p := newPlanner(s, set)
	p.proveFresh()
	for i := range p.members {
		p.next(i)
	}
	p.start()
	p.freeGone()
	p.label()
	p.stopVersions()
	p.out.PolicyProblem, p.out.AdmissionProblem = s.PolicyProblem, s.AdmissionProblem
	p.out.RecordPolicy = s.PolicyUnrecorded && s.SlotsProblem == ""
	p.warn()
	return p.out
}

// planner accumulates a plan. Whatever decides returns a value, and the planner takes it in.
type planner struct {
	survey
	out plan.Plan
	// now is what holds for every node, as far as the plan is made.
	now check.Fleet
	// versions and waves are what was found out so far of versions as targets and of groups that go first.
	versions map[aim]*check.Version
	waves    map[wave]plan.Refusal
	// typically is how long updates took, once it is asked for.
	typically *time.Duration
	// toStage and toDisrupt are the nodes that want to be staged, or taken out of service.
	toStage, toDisrupt []candidate
	// asked are nodes that keep their place while they are asked to confirm.
	asked []*member
}

func newPlanner(s fleet.Snapshot, set policy.Settings) *planner {
	if !slices.IsSortedFunc(s.Nodes, byName) {
		s.Nodes = slices.SortedFunc(slices.Values(s.Nodes), byName)
	}
	p := &planner{survey: surveyed(s, set), versions: map[aim]*check.Version{}, waves: map[wave]plan.Refusal{}}
	p.out.Nodes = make([]plan.Decision, len(p.members))
	p.out.Disrupted, p.out.LostUncounted = p.disrupted, p.uncounted
	p.out.Limit, p.out.ByOthers = p.fleet.scope.Limit(), p.fleet.scope.Away()
	p.wakeAt(p.again)
	p.see()
	p.now = check.Fleet{Stopped: check.Stopped(&p.Snapshot, p.overdue, p.maxLost()), Alerts: check.Alerts(&p.set.Alerts, p.Snapshot.Alerts, p.Now),
		Schedulable: p.schedulable, Staging: p.staging, MaxStaging: p.set.MaxStaging}
	for _, g := range append([]*group{p.fleet}, p.groups...) {
		p.judgeGroup(g)
	}
	return p
}

func byName(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) }

// wakeAt asks for another plan at t.
func (p *planner) wakeAt(t time.Time) { p.out.Wake = plan.Earliest(p.Now, p.out.Wake, t) }

// next decides on one node by itself, and notes what it wants.
func (p *planner) next(i int) {
	m := &p.members[i]
	agents := p.agents
	if m.Wish != nil {
		// One runner is the agent of all of these, and agents on other nodes say nothing of it.
		agents = p.runners
	}
	in := lifecycle.Input{View: m.View, AgentsReady: agents > 0, OthersOut: p.outOfService > 1 || p.outOfService == 1 && !m.OutOfService()}
	switch m.Phase() {
	case intent.PhaseDraining:
		if w := m.group.Window(); !m.Fresh() && m.Rules.WhenClosed == policy.Return && w.Open {
			in.Closes = w.Ends
		}
		in.Recall = p.recall(m)
	case intent.PhaseRebooting:
		in.Recall = p.recall(m)
	default:
		// There is nothing to recall.
	}
	next := lifecycle.Of(&in)
	p.take(i, next)
	switch next.Want {
	case lifecycle.WantStaging:
		p.toStage = append(p.toStage, p.candidate(i))
	case lifecycle.WantDisruption:
		p.toDisrupt = append(p.toDisrupt, p.candidate(i))
	case lifecycle.WantNothing:
	}
	if next.KeepsPlace {
		p.asked = append(p.asked, m)
	}
}

func (p *planner) recall(m *member) plan.Refusal {
	target := m.Marks.Intent.Target
	if m.Fresh() {
		return m.group.RecallFresh(&p.now, p.NoPolicy, m.Lower(target), p.version(m.Rules, target))
	}
	if m.Cycles() {
		return m.group.Recall(&p.now, p.NoPolicy, plan.Refusal{}, &check.Version{Name: target})
	}
	return m.group.Recall(&p.now, p.NoPolicy, m.Lower(target), p.version(m.Rules, target))
}

// take takes what was decided on a node into the plan.
func (p *planner) take(i int, next lifecycle.Next) {
	m := &p.members[i]
	next = m.Taint(next)
	p.wakeAt(next.Again)
	d := plan.Decision{Node: m.Name, UID: m.UID, Phase: next.Phase, Version: m.Marks.Report.Current, Target: m.Marks.Intent.Target,
		Reason: next.Reason, Message: next.Message, NotBefore: next.Message.Ends()}
	if next.Step != nil {
		step := *next.Step
		d.Act, step.Phase = step.Act, next.Phase
		p.out.Steps = append(p.out.Steps, step)
	}
	p.out.Nodes[i] = d
}

// freeGone frees slots of nodes that are gone.
func (p *planner) freeGone() {
	if len(p.Slots) == 0 {
		return
	}
	here := make(map[string]bool, len(p.Slots))
	for i := range p.members {
		if m := &p.members[i]; m.Slot {
			here[m.UID] = true
		}
	}
	var gone []string
	for uid := range p.Slots {
		if !here[uid] {
			gone = append(gone, uid)
		}
	}
	slices.Sort(gone)
	for _, uid := range gone {
		p.out.Steps = append(p.out.Steps, plan.Step{Node: p.Slots[uid], UID: uid, Act: intent.ActRelease, Before: plan.LookGone,
			Reason: plan.ReasonNodeGone, Message: "the node that held the slot is gone", FreesSlot: true})
	}
}

// Budgets returns how much of every limit of the settings is used before anything else starts: the fleet's,
// its topologies', those of each group, and the one on staging.
func Budgets(s fleet.Snapshot, set policy.Settings) []plan.Usage { return newPlanner(s, set).budgets() }

func (p *planner) budgets() []plan.Usage {
	var all []plan.Usage
	for _, g := range append([]*group{p.fleet}, p.groups...) {
		all = append(all, g.scope.Usage()...)
	}
	if p.fresh.Members() > 0 {
		all = append(all, p.fresh.Usage()...)
	}
	return append(all, plan.Usage{Of: "staging", Rule: policy.Count(p.set.MaxStaging).String(), Limit: p.set.MaxStaging, Used: p.staging, Disrupted: p.staging})
}
