package planner

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// start hands out what the limits leave.
func (p *planner) start() {
	order(p.toStage)
	order(p.toDisrupt)
	p.zones = p.takenIn()
	for begin, end := 0, 0; begin < len(p.toDisrupt); begin = end {
		for end < len(p.toDisrupt) && p.toDisrupt[end].place == p.toDisrupt[begin].place {
			end++
		}
		alike := p.toDisrupt[begin:end]
		// Where nobody can go it makes no difference who is asked first.
		if !p.fleet.full(false, false) {
			p.spread(alike)
		}
		for i := range alike {
			p.disrupt(&alike[i])
		}
	}
	for i := range p.toStage {
		p.stage(&p.toStage[i])
	}
}

// stateAgain is when a list of slots, or a policy, that can't be read is read again.
const stateAgain = 30 * time.Second

// stopped says why nothing may start anywhere.
func (p *planner) stopped() verdict {
	switch {
	case p.SlotsProblem != "":
		// Nobody tells when it was put right.
		p.wakeAt(p.Now.Add(stateAgain))
		return verdict{plan.ReasonStateUnreadable, plan.Verbatim(p.SlotsProblem)}
	case p.NoPolicy:
		return verdict{plan.ReasonPolicyUnreadable, plan.Say("there is no policy to go by: {s}").With(p.PolicyProblem).Aging()}
	// A new leader doesn't call a node Lost at its first look, and starts nothing that it would regret at
	// its second.
	case p.late > p.maxLost(p.fleet.members):
		return verdict{plan.ReasonTooManyLost, plan.Say("{n} nodes are Lost, more than {n2}: nothing starts until they are back, deleted, or unlabelled").Count(p.late, p.maxLost(p.fleet.members))}
	}
	return verdict{}
}

// question is all that the policy's word on a start depends on.
type question struct {
	part             *part
	version, current string
}

// mayStart says why the policy doesn't let a node go to a version, be it to stage it or to reboot into it. Nodes that
// are alike get the same answer.
func (p *planner) mayStart(c *candidate, version string) verdict {
	q := question{c.part, version, c.Marks.Report.Current}
	v, known := p.answers[q]
	if !known {
		v = p.answer(q)
		p.answers[q] = v
	}
	return v
}

func (p *planner) answer(q question) verdict {
	if v := p.stopped(); v.reason != "" {
		return v
	}
	if v := p.pausedWord(q.part); v.reason != "" {
		return v
	}
	if q.part == p.rest && len(p.groups) > 0 && p.set.Ungrouped == policy.UngroupedWait {
		return verdict{plan.ReasonUngrouped, plan.Say("no group chooses the node, and the policy lets such nodes wait")}
	}
	if v := p.downgrade(q.current, q.version); v.reason != "" {
		return v
	}
	if v := p.target(q.version); v.reason != "" {
		return v
	}
	return p.afterOthers(q)
}

// pausedWord is what people read of a pause of the fleet or the group.
func (p *planner) pausedWord(g *part) verdict {
	if pause := p.paused(g); pause != nil {
		of := theFleet
		if pause != p.set.Pause {
			of = g.of
		}
		return verdict{plan.ReasonPolicyPaused, plan.Say("{s} is paused: {s2}").With(of, orNoReason(pause.Reason)).Aging()}
	}
	for _, part := range []*part{p.fleet, g} {
		if part.rules.MaxUnavailable.None() {
			return verdict{plan.ReasonPolicyPaused, noneOf(part.of)}
		}
	}
	return verdict{}
}

func (p *planner) disrupt(c *candidate) {
	p.at = c.at
	n := c.Node
	held := c.held
	v := p.mayStart(c, n.Marks.Intent.Target)
	if v.reason == "" {
		v = p.windowOf(c.part).disrupt
	}
	if v.reason != "" {
		p.hold(n, v.reason, v.sentence.After("staged; ", ""))
		return
	}
	if p.mistrusted(n) {
		return
	}
	counted := p.otherwiseOut(n)
	for _, part := range p.parts(c) {
		r, s := part.room(n, counted, held)
		if r == "" {
			continue
		}
		if v := p.obstacle(c); v.reason != "" {
			// More telling than that others are out, and it is not looked at again before there is room.
			r, s = v.reason, v.sentence
		}
		if held {
			p.hold(n, r, s.After("staged; ", ""))
		} else {
			p.wait(n, intent.PhasePrepared, r, s.After("staged; ", ""))
		}
		return
	}
	if v := p.nowhereToGo(n); v.reason != "" {
		p.hold(n, v.reason, v.sentence)
		return
	}
	if n.ControllerHere && !held && p.othersFirst() {
		p.wait(n, intent.PhasePrepared, plan.ReasonControllerLast, plan.Say("staged; the controller runs here, so the other nodes go first"))
		return
	}
	if p.obstructed(c) {
		return
	}
	if v, asking := p.alerted(); asking {
		// A slot that it holds stays its own for the moment.
		p.stand(n, intent.PhasePrepared, "", v.reason, v.sentence.After(plan.Staged, ""))
		return
	} else if v.reason != "" {
		p.hold(n, v.reason, v.sentence.After(plan.Staged, ""))
		return
	}
	if p.unseen(c, counted) {
		return
	}
	if !held && p.doubtful(n) {
		p.confirm(n)
		return
	}
	at := p.Now.Truncate(time.Millisecond)
	change := keep(n)
	change.Marks.Intent.RebootFrom = n.BootID
	change.Marks.Disruption = &marker.Disruption{Since: at, WasUnschedulable: n.Unschedulable, Workloads: p.seenWorkloads(c)}
	change.exclude(n, c.part.rules)
	change.protect(n, c.part.rules)
	change.Marks.Waiting = p.drains(n)
	if !n.Unschedulable {
		change.Unschedulable = new(true)
		p.schedulable--
	}
	if !held {
		p.out.InHands++
		if counted {
			p.out.Others--
		}
		for _, part := range p.parts(c) {
			part.take(n, counted)
		}
	}
	p.step(n, intent.PhasePrepared, intent.ActCordon, plan.ReasonCordoned, plan.TakenOut(n.Marks.Intent.Target), change).TakesSlot = true
}

// parts are those whose budgets a node uses.
func (p *planner) parts(c *candidate) []*part {
	if c.part == p.rest {
		return p.both[:1]
	}
	p.both[1] = c.part
	return p.both[:]
}

// othersFirst tells if any other node is about to be staged. That is bounded: each of them either gets
// there or fails and backs off. One that the policy keeps from it, the group of this very node going first
// for example, may wait for ever, and isn't waited for. Those that are staged were asked before the controller's own node in
// this pass; what keeps them back, no other node to take their pods for example, needn't keep it back.
func (p *planner) othersFirst() bool {
	return p.staging+p.confirming > 0 || slices.ContainsFunc(p.toStage, func(c candidate) bool {
		return c.WriteTrouble == nil && p.mayStart(&c, c.Marks.Report.Available).reason == "" && p.windowOf(c.part).stage.reason == ""
	})
}

func (p *planner) stage(c *candidate) {
	p.at = c.at
	n := c.Node
	target := n.Marks.Report.Available
	v := p.mayStart(c, target)
	if v.reason == "" {
		v = p.windowOf(c.part).stage
	}
	if v.reason != "" {
		p.wait(n, intent.PhaseIdle, v.reason, v.sentence.After("{v} is available; ", target))
		return
	}
	if p.unwritable(n) {
		p.unwritten(n, intent.PhaseIdle, "stage "+target)
		return
	}
	if p.staging >= p.set.MaxStaging {
		p.wait(n, intent.PhaseIdle, plan.ReasonStagingLimit, plan.Say("{s} is available; {n} nodes stage at once already").With(target).Count(p.staging))
		return
	}
	if v, _ := p.alerted(); v.reason != "" {
		p.stand(n, intent.PhaseIdle, "", v.reason, v.sentence.After("{v} is available; ", target))
		return
	}
	p.staging++
	change := begin(n, p.Now, marker.ActionPrepareUpdate, p.set.Deadlines.Prepare, plan.ReasonPreparing, "the agent stages "+target)
	change.Marks.Intent.Target, change.Marks.Intent.RebootFrom = target, ""
	p.step(n, intent.PhaseIdle, intent.ActPrepare, plan.ReasonUpdateAvailable, "stage "+target, change)
}
