package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Plan decides on one snapshot. Nodes that are in progress are looked at first, each by itself; what
// is left of the limits then goes to those that wait, see order.go for who comes first.
func Plan(s fleet.Snapshot, set policy.Settings) plan.Plan {
	if !sorted(s.Nodes) {
		s.Nodes = slices.SortedFunc(slices.Values(s.Nodes), byName)
	}
	p := newPlanner(s, set)
	p.count()
	for i := range p.Nodes {
		if n := &p.Nodes[i]; p.ours(n) {
			p.out.Nodes = append(p.out.Nodes, plan.Decision{})
			p.at = len(p.out.Nodes) - 1
			p.node(n)
		}
	}
	p.start()
	p.release()
	p.stopVersions()
	p.out.PolicyProblem, p.out.Unwalled = s.PolicyProblem, s.Unwalled
	p.out.RecordPolicy = s.PolicyUnrecorded && s.SlotsProblem == ""
	p.warn()
	return p.out
}

func byName(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) }

// sorted looks at nodes where they are: they are large, and thousands.
func sorted(nodes []fleet.Node) bool {
	for i := 1; i < len(nodes); i++ {
		if nodes[i].Name < nodes[i-1].Name {
			return false
		}
	}
	return true
}

type planner struct {
	fleet.Snapshot
	set policy.Settings
	out plan.Plan
	// fleet are all managed nodes, groups parts of them in the policy's order, and rest those in no group.
	fleet  *part
	groups []*part
	rest   *part
	// places are the parts that the nodes of the outcome are in, in its order.
	places []*part
	// both is the fleet, and the group of the node that is being decided on.
	both [2]*part
	// lost and staging are counts of the fleet as the plan leaves it; late are those that are Lost, or will
	// be when this process has passed over them. schedulable are the cluster's nodes that could take pods, and stay.
	// confirming are asked whether what they have staged stands.
	lost, late, staging, confirming, schedulable int
	// staying is how many nodes the cluster has, but for those that are on their way out.
	staying int
	// agents is how many nodes of the plan have a Ready agent.
	agents int
	// failed is on how many nodes each version failed, and names how many name it.
	failed map[string]int
	names  names
	// verdicts, waves, answers and compared are what was found out so far in this plan of versions, of groups, of
	// starts, and of which version is higher, and typically how long updates took, -1 before anybody asked.
	verdicts  map[string]verdict
	waves     map[wave]verdict
	answers   map[question]verdict
	compared  map[[2]string]int
	typically time.Duration
	// toStage and toDisrupt are those who could go if the limits let them, at the place of the node in the outcome.
	toStage, toDisrupt []candidate
	// zones is how many nodes of each zone are in our hands, or go before those that are asked next.
	zones map[string]int
	// at is the place of the node that is being decided on.
	at int
}

func newPlanner(s fleet.Snapshot, set policy.Settings) *planner {
	p := &planner{Snapshot: s, set: set, failed: map[string]int{}, names: names{count: map[string]*int{}}, verdicts: map[string]verdict{}, waves: map[wave]verdict{},
		answers: map[question]verdict{}, compared: map[[2]string]int{}, typically: -1}
	p.fleet = newPart(theFleet, nil, &p.set.Rules)
	p.both[0] = p.fleet
	// What is in no group has no budget but the fleet's.
	p.rest = &part{rules: &p.set.Rules}
	for i := range p.set.Groups {
		g := &p.set.Groups[i]
		p.groups = append(p.groups, newPart("group "+g.Name, g, &g.Rules))
	}
	return p
}

// ours tells if a plan has something to say of a node.
func (p *planner) ours(n *fleet.Node) bool { return p.Managed(n) || n.Marked() }

// count finds out what is taken: the union of the slot list and what the nodes show.
func (p *planner) count() {
	ours, lost, offered, staged := 0, 0, 0, 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Leaving == "" {
			p.staying++
		}
		if !n.Unschedulable && n.Ready && n.Leaving == "" {
			p.schedulable++
		}
		if !p.ours(n) {
			continue
		}
		ours++
		if n.AgentReady {
			p.agents++
		}
		if len(n.Problems) > 0 {
			continue
		}
		late := false
		if n.Disrupted() {
			if p.isLost(n) {
				lost++
			}
			watched := *n
			watched.PassedOver = true
			if late = p.isLost(&watched); late {
				p.late++
			}
		}
		if !late && p.outOfReach(n) {
			lost++
			p.late++
		}
		switch n.Phase() {
		case intent.PhasePreparing:
			// An attempt on a node that isn't ours any more has no deadline: it would keep its place for ever.
			switch {
			case n.Interface != fleet.InterfaceUpdateAPI:
			case p.stuckStaging(n):
			case n.Marks.Intent.Action == marker.ActionConfirmUpdate:
				if p.justAsked(n) {
					p.confirming++
				}
			default:
				p.staging++
			}
		case intent.PhaseIdle:
			if a := n.Marks.Report.Available; a != "" && a != n.Marks.Report.Current {
				offered++
			}
		case intent.PhasePrepared:
			staged++
		}
		p.countFailed(n, late)
		p.names.add(n.OSVersion)
		if a := n.Marks.Report.Available; a != n.OSVersion {
			p.names.add(a)
		}
	}
	p.see()
	p.out.Nodes = make([]plan.Decision, 0, ours)
	p.toStage, p.toDisrupt = make([]candidate, 0, offered), make([]candidate, 0, staged)
	p.lost = lost
	p.places = make([]*part, 0, ours)
	p.countParts(ours)
}

// countParts counts the nodes into the fleet and the groups. Lost nodes lend their places on, as far as the
// policy lets so many.
func (p *planner) countParts(ours int) {
	lending := 0
	unknown := len(p.Slots)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		_, slot := p.Slots[n.UID]
		if slot {
			unknown--
		}
		if !p.ours(n) {
			continue
		}
		held := slot || n.Disrupted()
		if held {
			p.out.InHands++
		}
		if held && len(n.Problems) == 0 && lending < p.lost && (n.Disrupted() && p.isLost(n) || p.outOfReach(n)) {
			lending++
			if lending <= p.maxLost(ours) {
				p.out.Lent++
				held = false
			}
		}
		p.countIn(n, held)
	}
	// Slots of nodes that are gone, or that a late watch doesn't show yet: nobody knows of which group and zone they
	// are, so they count in each, until they are freed.
	p.out.InHands += unknown
	p.fleet.settle(unknown)
	for _, g := range p.groups {
		g.settle(unknown)
	}
	p.out.Limit, p.out.Others = p.fleet.limit, p.fleet.others
}

func (p *planner) maxLost(ours int) int { return p.set.MaxLost.Of(ours) }

func (p *planner) countIn(n *fleet.Node, held bool) {
	capacity := n.Labelled() && n.Leaving == ""
	others, until := p.otherwiseOut(n), p.countsUntil(n)
	p.fleet.add(n, capacity, held, others, until)
	g := p.place(n)
	p.places = append(p.places, g)
	if g != p.rest {
		g.add(n, capacity, held, others, until)
	}
}

// otherwiseOut tells if somebody else has taken a node out of service, or it is not well by itself, and that for
// not too long.
func (p *planner) otherwiseOut(n *fleet.Node) bool {
	_, slot := p.Slots[n.UID]
	if !p.set.CountUnavailable || slot || n.Disrupted() || !n.Labelled() || n.Leaving != "" || n.Ready && !n.Unschedulable {
		return false
	}
	end := p.countsUntil(n)
	p.wakeAt(end)
	return end.IsZero() || p.Now.Before(end)
}

// countsUntil is until when a node that the operator didn't take out of service uses up budgets; zero if this process
// doesn't know since when it is.
func (p *planner) countsUntil(n *fleet.Node) time.Time {
	if n.UnavailableSince.IsZero() {
		return time.Time{}
	}
	return n.UnavailableSince.Add(p.set.IgnoreAfter)
}

// step settles a node by an act, unless that is a write and those fail. An act that the table doesn't allow is a defect
// in this package; the node then waits, which is always safe.
func (p *planner) step(n *fleet.Node, phase intent.Phase, act intent.Act, r plan.Reason, message string, c *change) *plan.Step {
	if act != intent.ActLeave && act != intent.ActRelease {
		if _, err := intent.Lookup(act, n.Phase()); err != nil {
			p.stand(n, phase, "", r, plan.Verbatim(err.Error()))
			return &plan.Step{}
		}
	}
	if c != nil && p.unwritable(n) {
		p.unwritten(n, phase, message)
		return &plan.Step{}
	}
	p.stand(n, phase, act, r, plan.Verbatim(message))
	p.out.Steps = append(p.out.Steps, plan.Step{Node: n.Name, UID: n.UID, Act: act, Reason: r, Message: message})
	if c != nil {
		p.out.Steps[len(p.out.Steps)-1].Change = &c.Change
	}
	return &p.out.Steps[len(p.out.Steps)-1]
}

func (p *planner) stand(n *fleet.Node, phase intent.Phase, act intent.Act, r plan.Reason, s plan.Message) {
	p.out.Nodes[p.at] = plan.Decision{Node: n.Name, UID: n.UID, Phase: phase, Version: n.Marks.Report.Current,
		Target: n.Marks.Intent.Target, Act: act, Reason: r, Message: s, NotBefore: s.Until()}
}

// wait leaves a node as it is. On a node in progress people can read the reason on the node itself,
// which is written again only when the reason changes, or what a sentence names that does nothing else.
func (p *planner) wait(n *fleet.Node, phase intent.Phase, r plan.Reason, s plan.Message) {
	inProgress := phase != intent.PhaseIdle && phase != intent.PhaseNew && phase != intent.PhaseUnreadable && n.Labelled()
	if inProgress && !reads(n, r, s) && !p.stillLost(n) && !(r.Troubling() && p.unwritable(n)) {
		message := s.String()
		c := keep(n)
		c.Marks.Waiting = s.Mark(r, p.Now)
		p.step(n, phase, intent.ActNote, r, message, c)
		if p.out.Nodes[p.at].Act != "" {
			p.out.Nodes[p.at].NotBefore = s.Until()
		}
		return
	}
	p.stand(n, phase, "", r, s)
}

// reads tells if people read on a node itself what it waits for.
func reads(n *fleet.Node, r plan.Reason, s plan.Message) bool {
	w := n.Marks.Waiting
	return w != nil && w.Reason == string(r) && (!s.Exact() || w.Message == marker.Clip(s.String(), marker.MaxMessage))
}

// stillLost tells if a node that is called Lost will be called so by this process too, once it has passed over it. A
// new leader doesn't take the word back meanwhile.
func (p *planner) stillLost(n *fleet.Node) bool {
	if n.PassedOver || n.Marks.Waiting == nil || n.Marks.Waiting.Reason != string(plan.ReasonLost) {
		return false
	}
	watched := *n
	watched.PassedOver = true
	return p.isLost(&watched)
}

// wakeAt asks for another plan at t.
func (p *planner) wakeAt(t time.Time) {
	if t.After(p.Now) && (p.out.Wake.IsZero() || t.Before(p.out.Wake)) {
		p.out.Wake = t
	}
}

// past tells if a deadline that began at since has gone by. It fires only after this process has
// passed over the node in this phase; a beginning implausibly far in the future has gone by too.
func (p *planner) past(n *fleet.Node, since time.Time, d time.Duration) bool {
	end := since.Add(d)
	if p.Now.Before(end) && !since.After(p.Now.Add(p.set.RetryMax)) {
		p.wakeAt(end)
		return false
	}
	if !n.PassedOver {
		p.wakeAt(p.Now.Add(time.Second))
		return false
	}
	return true
}

// node decides on one node by itself.
func (p *planner) node(n *fleet.Node) {
	phase := n.Phase()
	switch {
	case phase == intent.PhaseUnreadable:
		p.stand(n, phase, "", plan.ReasonMarksUnreadable, plan.Say("annotation {s}; correct or remove it and the node goes on").With(n.Problems[0].String()))
		return
	case !n.Labelled():
		p.leaving(n, phase)
		return
	case n.Marks.Retry && phase == intent.PhaseIdle && says(n, intent.HasActivated):
		c := begin(n, p.Now, marker.ActionResetState, p.set.Deadlines.Prepare, plan.ReasonResetting, resettingMessage)
		c.retry()
		p.step(n, phase, intent.ActReset, plan.ReasonRetryWanted, "what is activated on the host is undone by the user's wish", c)
		return
	case n.Marks.Retry:
		c := keep(n)
		c.retry()
		p.step(n, phase, intent.ActRetry, plan.ReasonRetryWanted, "the failure is forgotten by the user's wish", c)
		return
	case n.Interface != fleet.InterfaceUpdateAPI && !n.Disrupted():
		if p.fence(n, phase) {
			return
		}
		p.stand(n, phase, "", plan.ReasonInterfaceUnsupported,
			plan.Say("labelled for interface \"{s}\", which is not known: label it {s2}=2.0.0").With(string(n.Interface), string(marker.KeyInterfaceVersion)))
		return
	}
	switch phase {
	case intent.PhaseNew:
		p.step(n, phase, intent.ActStabilize, plan.ReasonManaged, "the node is in the operator's care", stabilize(n, p.Now, p.set))
	case intent.PhaseIdle:
		p.idle(n)
	case intent.PhasePreparing:
		p.preparing(n)
	case intent.PhasePrepared:
		p.prepared(n)
	case intent.PhaseDraining:
		p.draining(n)
	case intent.PhaseRebooting:
		p.rebooting(n)
	case intent.PhaseReturning:
		p.returning(n)
	case intent.PhaseVerifying:
		p.verifying(n)
	case intent.PhaseResetting:
		p.resetting(n)
	}
}

// fence frees a slot whose node shows no disruption, after a write that makes any older cordon fail.
func (p *planner) fence(n *fleet.Node, phase intent.Phase) bool {
	if _, slot := p.Slots[n.UID]; !slot || n.Disrupted() {
		return false
	}
	if p.fencedAlready(n, phase) {
		return true
	}
	act, c := intent.ActFence, stabilize(n, p.Now, p.set)
	switch phase {
	case intent.PhaseNew:
		act = intent.ActStabilize
	case intent.PhaseResetting:
		// The host may still have something activated: the wish to undo it stays, under a new id.
		c = begin(n, p.Now, marker.ActionResetState, p.set.Deadlines.Prepare, plan.ReasonResetting, resettingMessage)
	}
	p.step(n, phase, act, plan.ReasonSlotOrphaned, "the node holds a slot that it does not need; it is freed", c).FreesSlot = true
	return true
}

// release frees slots of nodes that are gone; whoever carries it out looks live first.
func (p *planner) release() {
	if len(p.Slots) == 0 {
		return
	}
	here := make(map[string]bool, len(p.Slots))
	for i := range p.Nodes {
		if _, slot := p.Slots[p.Nodes[i].UID]; slot {
			here[p.Nodes[i].UID] = true
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
		p.out.Steps = append(p.out.Steps, plan.Step{Node: p.Slots[uid], UID: uid, Act: intent.ActRelease,
			Reason: plan.ReasonNodeGone, Message: "the node that held the slot is gone", FreesSlot: true})
	}
}
