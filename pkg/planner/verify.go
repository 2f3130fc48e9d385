package planner

import (
	"fmt"
	"maps"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// check asks for a live look unless its answer is there, and all is well. An answer from before since is none.
func (p *planner) check(n *fleet.Node, phase intent.Phase, q plan.Check, since time.Time, waiting plan.Reason) (*fleet.Checked, bool) {
	l := n.Checked
	if l != nil && l.At.Before(since) {
		l = nil
	}
	if l != nil && l.For == q.For && l.Well() {
		return l, true
	}
	r, message := waiting, plan.Say("what must be well is looked at")
	if l != nil && l.For == q.For {
		message = plan.Verbatim(l.Unwell)
		if q.For == fleet.CheckVolumes {
			message = message.Naming()
		}
		if l.Failed != "" {
			r, message = plan.ReasonCheckFailing, plan.Verbatim(l.Failed)
		}
		if p.Now.Before(l.Next) {
			p.wakeAt(l.Next)
			p.wait(n, phase, r, message)
			return nil, false
		}
	}
	p.step(n, phase, intent.ActCheck, r, message.String(), nil).Check = &q
	return nil, false
}

// seenWorkloads are those that a look before the cordon found, if the policy wants to know; empty if there was none.
func (p *planner) seenWorkloads(c *candidate) map[string]int {
	if c.Forecast == nil || c.part.rules.Verify.OnWorkloads != policy.FailOnWorkloads || !p.looksAhead(c) || len(c.Forecast.Workloads) == 0 {
		return nil
	}
	return maps.Clone(c.Forecast.Workloads)
}

// baseline notes, before the first eviction, which workloads have Ready pods on the node, unless that was seen before the
// cordon; false: it is being made. Who takes over in the middle of a drain takes what is left for it, which makes the
// later check weaker, never stricter.
func (p *planner) baseline(n *fleet.Node) bool {
	if p.noted(n) {
		return true
	}
	r := plan.ReasonDraining
	if p.leftInPlace(n) {
		r = plan.ReasonSingleNode
	}
	l, ok := p.check(n, intent.PhaseDraining, plan.Check{For: fleet.CheckBaseline}, time.Time{}, r)
	if !ok {
		return false
	}
	if len(l.Workloads) == 0 {
		return true
	}
	c := keep(n)
	c.Marks.Disruption.Workloads = l.Workloads
	p.step(n, intent.PhaseDraining, intent.ActNote, r, fmt.Sprintf("%d workloads have Ready pods here", len(l.Workloads)), c)
	return false
}

// noted tells if a node needs no baseline any more.
func (p *planner) noted(n *fleet.Node) bool {
	return p.place(n).rules.Verify.OnWorkloads != policy.FailOnWorkloads || n.Marks.Disruption.Workloads != nil || n.Drain != nil
}

// unnoted is why the baseline that a node needs can't be made; empty if nobody knows of anything.
func (p *planner) unnoted(n *fleet.Node) string {
	if l := n.Checked; l != nil && l.For == fleet.CheckBaseline && !p.noted(n) {
		return l.Failed
	}
	return ""
}

// podsUnwell tells if pods that the policy wants on the node itself were seen not to be well there, since some time.
func (p *planner) podsUnwell(n *fleet.Node, since time.Time) bool {
	l := n.Checked
	return len(p.place(n).rules.Verify.Pods) > 0 && l != nil && l.For == fleet.CheckPods && !l.At.Before(since) && !l.Well()
}

// podsAwaited settles a node that is well but for pods that must be Ready on it; false: they are, and were since some
// time.
func (p *planner) podsAwaited(n *fleet.Node, phase intent.Phase, since time.Time) bool {
	v := &p.place(n).rules.Verify
	if len(v.Pods) == 0 {
		return false
	}
	if p.podsUnwell(n, since) && p.isLost(n) {
		what := "is back, but " + n.Checked.Unwell + n.Checked.Failed
		if p.Now.Before(n.Checked.Next) {
			p.wakeAt(n.Checked.Next)
			p.lostNode(n, what)
			return true
		}
		// It is looked at on and on: what ends it is that they are Ready.
		p.step(n, intent.PhaseLost, intent.ActCheck, plan.ReasonLost, n.Name+" "+what, nil).Check = &plan.Check{For: fleet.CheckPods, Pods: v.Pods}
		return true
	}
	_, ok := p.check(n, phase, plan.Check{For: fleet.CheckPods, Pods: v.Pods}, since, plan.ReasonPodsAwaited)
	return !ok
}

// podsAwaitedAgain settles a node whose soak is over as podsAwaited does. Right after a reboot pods are still called
// Ready that the kubelet has not looked at since; after the soak it has.
func (p *planner) podsAwaitedAgain(n *fleet.Node) bool {
	soaked := p.soaked(n)
	if l := n.Checked; l != nil && l.For == fleet.CheckWorkloads && !l.At.Before(soaked) {
		// Workloads are looked at only after these pods were well, and that look has taken the place of theirs.
		return false
	}
	return p.podsAwaited(n, intent.PhaseVerifying, soaked)
}

// soaked is when the soak that runs is over.
func (p *planner) soaked(n *fleet.Node) time.Time {
	return n.Marks.Disruption.Soak.Add(p.place(n).rules.Soak)
}

// workloadsAwaited settles a node whose soak is over but whose workloads are less Ready than before; false: it can end.
func (p *planner) workloadsAwaited(n *fleet.Node) bool {
	r, d := p.place(n).rules, n.Marks.Disruption
	if r.Verify.OnWorkloads != policy.FailOnWorkloads || len(d.Workloads) == 0 || p.workloadsLate(n) {
		return false
	}
	_, ok := p.check(n, intent.PhaseVerifying, plan.Check{For: fleet.CheckWorkloads, Workloads: d.Workloads}, p.soaked(n), plan.ReasonWorkloadsAwaited)
	return !ok
}

// workloadsLate tells if the workloads have had their time, and this process has looked at them since it leads.
func (p *planner) workloadsLate(n *fleet.Node) bool {
	if n.Checked == nil || n.Checked.For != fleet.CheckWorkloads || n.Checked.Well() {
		return false
	}
	return p.past(n, p.soaked(n), p.place(n).rules.Verify.Deadline)
}
