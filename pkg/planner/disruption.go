package planner

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// draining empties a cordoned node, and asks for the reboot once nothing is left to evict.
func (p *planner) draining(n *fleet.Node) {
	phase, m := intent.PhaseDraining, &n.Marks
	switch {
	case rebooted(n):
		// It counts as the reboot, whoever did it: the agent's answer tells what came of it.
		p.askReboot(n, plan.ReasonRebootedEarly, "the node was rebooted by somebody else after the cordon")
	case !n.Unschedulable:
		p.giveBack(n, phase, plan.ReasonCordonTaken, "somebody uncordoned the node", false)
	case m.Paused:
		p.giveBack(n, phase, plan.ReasonPaused, "paused: "+orNoReason(m.PausedReason), false)
	case p.mustReturn(n).reason != "":
		p.setAside(n, p.mustReturn(n))
	case m.Report.Answer(m.Intent.ID) == marker.StateError:
		p.giveBack(n, phase, plan.ReasonPrepareFailed, m.Report.Message, true)
	case m.Report.Available != m.Intent.Target && m.Report.Current != m.Intent.Target:
		p.giveBack(n, phase, plan.ReasonOfferWithdrawn, withdrawn(m), false)
	case p.agentLost(n):
		p.giveBack(n, phase, plan.ReasonAgentLost, agentLost, p.agents > 0)
	case p.leftInPlace(n):
		p.withoutDrain(n)
	case n.Drain != nil && n.Drain.Failed == "" && n.Drain.Remaining == 0 && n.AgentReady:
		p.drained(n)
	case n.Drain != nil && n.Drain.Failed == "" && n.Drain.Hopeless != "" && (n.Drain.Forced || !p.place(n).rules.Eviction.Force):
		p.giveBack(n, phase, plan.ReasonEvictionRefused, n.Drain.Hopeless, true)
	case late(n):
		p.drainAgain(n)
	case p.unledDrain(n):
		p.giveBackUnled(n)
	case p.pastDrain(n):
		// What could not be written to the node in that time is no failure of its drain.
		p.giveBack(n, phase, plan.ReasonDrainDeadline, p.drainDeadline(n), n.WriteTrouble == nil)
	case p.Now.Before(p.balanced(n)):
		p.leavesBalancers(n)
	case !p.baseline(n):
	case n.Drain == nil || !p.Now.Before(n.Drain.Next):
		r, message := p.drainWait(n)
		s := p.step(n, phase, intent.ActDrain, r, message, nil)
		s.Eviction, s.Force = &p.place(n).rules.Eviction, p.forced(n)
		if s.Most = max(0, s.Eviction.PerHour-n.Evicted); s.Force {
			// What is left at the deadline is deleted, for as long as forceTime.
			s.Most = math.MaxInt
		}
	default:
		p.wakeAt(n.Drain.Next)
		r, message := p.drainWait(n)
		p.wait(n, phase, r, plan.Verbatim(message))
	}
}

// agentPatience is how long a node that serves nothing is kept for an agent that isn't Ready. It is longer than the
// update of the agents or of the proxies takes.
const agentPatience = 2 * time.Minute

var agentLost = fmt.Sprintf("the node is well, and no agent pod has been Ready on it for %s: nothing could be asked of its host", agentPatience)

// agentLost reports whether a node's agent has been away for too long. Without the kubelet's word there is nothing to be
// said of the agent. Where no agent at all is Ready the proxies are away, which is no failure of the node.
func (p *planner) agentLost(n *fleet.Node) bool {
	return n.Ready && !n.AgentReady && !n.AgentLostSince.IsZero() && p.past(n, n.AgentLostSince, agentPatience)
}

// drained goes on with a node that has nothing left to evict.
func (p *planner) drained(n *fleet.Node) {
	if p.volumesAwaited(n) || p.hooked(n, intent.PhaseDraining, afterDrain, p.place(n).rules.Hooks.AfterDrain) {
		return
	}
	p.askReboot(n, plan.ReasonDrained, "nothing is left to evict")
}

// pastDrain tells if a drain has taken too long, the time in which it may use force included.
func (p *planner) pastDrain(n *fleet.Node) bool {
	rules := p.place(n).rules
	since, more := p.drainSince(n)
	if rules.Eviction.Force {
		p.wakeAt(since.Add(rules.Drain + more))
	}
	return p.past(n, since, rules.LongestDrain()+more)
}

// unledDrain reports whether a drain's time was over before this process led: what nothing was there to do is no failure.
func (p *planner) unledDrain(n *fleet.Node) bool {
	since, more := p.drainSince(n)
	end := since.Add(p.place(n).rules.LongestDrain() + more)
	return !p.Now.Before(end) && (!n.PassedOver || n.WatchedSince.After(end))
}

// giveBackUnled gives a node back whose drain nothing led to its end. At the first look nothing is evicted for it, and
// the second one acts, as with any deadline.
func (p *planner) giveBackUnled(n *fleet.Node) {
	if !n.PassedOver {
		p.wakeAt(p.Now.Add(time.Second))
		r, message := p.drainWait(n)
		p.wait(n, intent.PhaseDraining, r, plan.Verbatim(message))
		return
	}
	p.giveBack(n, intent.PhaseDraining, plan.ReasonDrainDeadline, "no controller led when the time of its drain was over", false)
}

// forced tells if a drain deletes what is left.
func (p *planner) forced(n *fleet.Node) bool {
	rules := p.place(n).rules
	since, more := p.drainSince(n)
	return rules.Eviction.Force && p.past(n, since, rules.Drain+more)
}

// rebooted tells if the kubelet names another boot than the one to be left behind. No name is no word.
func rebooted(n *fleet.Node) bool { return n.BootID != "" && n.BootID != n.Marks.Intent.RebootFrom }

func (p *planner) askReboot(n *fleet.Node, r plan.Reason, message string) {
	c := begin(n, p.Now, marker.ActionRebootUpdate, p.set.Deadlines.Reboot, plan.ReasonRebooting, "the agent activates the update and reboots")
	c.unhook()
	g := p.place(n)
	if w := p.windowOf(g); g.rules.WhenClosed == policy.Return && w.Open && !w.Ends.IsZero() && w.Ends.Before(c.Marks.Intent.Until) && !rebooted(n) {
		// Also if nobody is there to take it back then.
		c.Marks.Intent.Until = w.Ends.Truncate(time.Second)
	}
	p.step(n, intent.PhaseDraining, intent.ActReboot, r, message, c).Eviction = &g.rules.Eviction
}

// mustReturn says why a node that was taken out of service, and has not begun to reboot, is given back by the
// policy as it is now.
func (p *planner) mustReturn(n *fleet.Node) verdict {
	g := p.place(n)
	if p.NoPolicy {
		return p.stopped()
	}
	if v := p.downgrade(n.Marks.Report.Current, n.Marks.Intent.Target); v.reason != "" {
		return v
	}
	if v := p.target(n.Marks.Intent.Target); v.reason != "" && v.reason != plan.ReasonVersionTooNew {
		return v
	}
	if pause := p.paused(g); pause != nil && pause.InFlight == policy.Return {
		return p.pausedWord(g)
	}
	if w := p.windowOf(g); !w.Open && g.rules.WhenClosed == policy.Return {
		return w.disrupt
	}
	return verdict{}
}

// setAside gives a node back that keeps what it has staged, and waits with it.
func (p *planner) setAside(n *fleet.Node, v verdict) {
	c := keep(n)
	c.uncordon(n)
	c.unprotect(n)
	c.unhook()
	c.remember(n, marker.OutcomeGivenBack, v.reason, p.Now)
	c.Marks.Disruption, c.Marks.Intent.RebootFrom = nil, ""
	message := v.sentence.String()
	c.Marks.Waiting = v.sentence.After(plan.Staged, "").Mark(v.reason, p.Now)
	p.step(n, intent.PhaseDraining, intent.ActSetAside, v.reason, message, c).FreesSlot = true
}

func (p *planner) drainDeadline(n *fleet.Node) string {
	why, within := p.unnoted(n), p.place(n).rules.Drain
	if d := n.Drain; d != nil {
		why = cmp.Or(d.Failed, d.Hopeless, d.Blocked, d.Awaited, d.Waiting)
		if n.Evicted >= p.place(n).rules.Eviction.PerHour {
			why = p.evictionLimit(n)
		}
		if why == "" && d.Remaining == 0 {
			return fmt.Sprintf("drained, but no agent pod was Ready on the node within %s", within)
		}
	}
	if why == "" {
		return fmt.Sprintf("not drained within %s", within)
	}
	return fmt.Sprintf("not drained within %s: %s", within, why)
}

func (p *planner) drainWait(n *fleet.Node) (plan.Reason, string) {
	switch d := n.Drain; {
	case d == nil:
		return plan.ReasonDraining, "the node's pods are being evicted"
	case d.Failed != "":
		return plan.ReasonDrainFailing, d.Failed
	case d.Remaining > 0 && !d.Forced && n.Evicted >= p.place(n).rules.Eviction.PerHour:
		return plan.ReasonEvictionLimit, p.evictionLimit(n)
	case cmp.Or(d.Hopeless, d.Blocked) != "":
		return plan.ReasonEvictionBlocked, cmp.Or(d.Hopeless, d.Blocked)
	case d.Remaining == 0:
		return plan.ReasonAgentNotReady, "drained; no agent pod is Ready on the node"
	case d.Awaited != "":
		return plan.ReasonPodAwaited, d.Awaited
	default:
		return plan.ReasonDraining, cmp.Or(d.Waiting, "the node's pods are being evicted")
	}
}

// evictionLimit says that as many pods were evicted from a node as may be, as they are if one comes back each time.
func (p *planner) evictionLimit(n *fleet.Node) string {
	p.wakeAt(n.EvictedUntil)
	return fmt.Sprintf("%d pods were evicted from the node within an hour, and no more may be: look for one that is made anew there, or raise drain.evictionsPerHour", n.Evicted)
}

// rebooting waits for the agent. Before busy the intent can be taken back; after it only the boot ID
// or the agent's own late error decides.
func (p *planner) rebooting(n *fleet.Node) {
	phase, m := intent.PhaseRebooting, n.Marks
	if !intent.PointOfNoReturn(m) && !rebooted(n) {
		switch {
		case !n.Unschedulable:
			p.giveBack(n, phase, plan.ReasonCordonTaken, "somebody uncordoned the node", false)
			return
		case m.Paused:
			p.giveBack(n, phase, plan.ReasonPaused, "paused: "+orNoReason(m.PausedReason), false)
			return
		case p.mustReturn(n).reason != "":
			v := p.mustReturn(n)
			p.giveBack(n, phase, v.reason, v.sentence.String(), false)
			return
		case p.agentLost(n):
			p.giveBack(n, phase, plan.ReasonAgentLost, agentLost, p.agents > 0)
			return
		case p.past(n, m.Intent.Time, p.set.Deadlines.Reboot):
			p.giveBack(n, phase, plan.ReasonRebootDeadline,
				fmt.Sprintf("the agent did not begin the reboot within %s", p.set.Deadlines.Reboot), true)
			return
		case !n.AgentReady:
			p.wait(n, phase, plan.ReasonAgentNotReady, plan.Say("drained, to reboot into {s}; no agent pod is Ready on the node").With(m.Intent.Target))
			return
		}
		p.wait(n, phase, plan.ReasonRebooting, plan.Say("the agent was asked to reboot into {s}").With(m.Intent.Target))
		return
	}
	if p.isLost(n) {
		p.lostNode(n, missed(n))
		return
	}
	if why, again := strings.CutPrefix(m.Report.Message, intent.ActivatingAgain); again && m.Report.Answer(m.Intent.ID) == marker.StateBusy && m.Report.ActivatedID != m.Intent.ID {
		p.wait(n, phase, plan.ReasonRebooting, plan.Say("the agent activates {s} again and again, since the host says: {s2}").With(m.Intent.Target, why).Aging())
		return
	}
	p.wait(n, phase, plan.ReasonRebooting, plan.Say("the host reboots into {s}").With(m.Intent.Target))
}

// returning waits for the second witness.
func (p *planner) returning(n *fleet.Node) {
	phase, m := intent.PhaseReturning, n.Marks
	failed := m.Report.Answer(m.Intent.ID) == marker.StateError
	if failed && m.Report.BootID == m.Intent.RebootFrom && n.BootID == m.Intent.RebootFrom {
		p.giveBack(n, phase, plan.ReasonRebootFailed, m.Report.Message, true)
		return
	}
	confirmed := confirmed(n)
	switch {
	case confirmed && n.Ready && (failed || m.Report.Current == m.Intent.Target) && p.podsAwaited(n, phase, time.Time{}):
	case confirmed && n.Ready && (failed || m.Report.Current == m.Intent.Target) && p.hooked(n, phase, beforeUncordon, p.place(n).rules.Hooks.BeforeUncordon):
	case confirmed && n.Ready && failed:
		r := cameBack(n)
		c := p.returned(n)
		c.fail(m.Intent.Target, r, m.Report.Message, p.Now, p.set)
		c.remember(n, marker.OutcomeFailed, r, p.Now)
		c.Marks.Intent.Target = ""
		p.step(n, phase, intent.ActReturn, r, m.Report.Message, c)
	case confirmed && n.Ready && m.Report.Current == m.Intent.Target:
		p.step(n, phase, intent.ActReturn, plan.ReasonUncordoned, "Ready on its new boot with "+m.Intent.Target, p.returned(n))
	case p.isLost(n):
		p.lostNode(n, missed(n))
	default:
		p.wait(n, phase, plan.ReasonReturning, plan.Verbatim(returnWait(n)))
	}
}

// cameBack is why a node came back from a reboot with an error: it was rolled back if the target had been activated. Else
// it lost its power, or was rebooted by hand, before that, which says nothing about the version (S10). Nor does an error
// of an agent whose kubelet runs the target.
func cameBack(n *fleet.Node) plan.Reason {
	switch m := &n.Marks; {
	case n.OSVersion == m.Intent.Target:
		return plan.ReasonHostError
	case m.Report.ActivatedID != m.Intent.ID:
		return plan.ReasonRebootedEarly
	}
	return plan.ReasonRolledBack
}

// confirmed tells if agent and kubelet name the same new boot and the same version.
func confirmed(n *fleet.Node) bool {
	return rebooted(n) && n.BootID == n.Marks.Report.BootID && n.OSVersion == n.Marks.Report.Current
}

func returnWait(n *fleet.Node) string {
	m := n.Marks
	switch {
	case n.BootID == m.Intent.RebootFrom || n.BootID == "":
		return "the kubelet has not reported the new boot yet"
	case n.BootID != m.Report.BootID:
		return "agent and kubelet do not name the same boot yet"
	case n.OSVersion != m.Report.Current:
		return fmt.Sprintf("the kubelet reports version %q, the agent %q", n.OSVersion, m.Report.Current)
	case n.Ready:
		return fmt.Sprintf("the agent calls %s an update to %s", m.Report.Current, m.Intent.Target)
	}
	return "the kubelet says that the node is not Ready yet"
}

// returned uncordons, asks for fresh facts and lets the soak begin, in one patch.
func (p *planner) returned(n *fleet.Node) *change {
	c := begin(n, p.Now, marker.ActionStabilize, p.set.Deadlines.Prepare, plan.ReasonSoaking, "Ready on its new boot; the soak runs")
	c.uncordon(n)
	c.unhook()
	at := p.Now.Truncate(time.Millisecond)
	d := c.Marks.Disruption
	d.Ready, d.Soak, d.Returned = n.ReadySince, &at, &at
	return c
}

// verifying holds the slot until the node was Ready for the whole soak.
func (p *planner) verifying(n *fleet.Node) {
	phase, m := intent.PhaseVerifying, n.Marks
	d := m.Disruption
	if !n.Ready {
		p.unwell(n)
		return
	}
	if m.Intent.Target != "" && m.Report.Current != m.Intent.Target && n.OSVersion == m.Report.Current && n.BootID == m.Report.BootID {
		message := fmt.Sprintf("fell back to %s during the soak", m.Report.Current)
		c := p.soakAgain(n)
		c.fail(m.Intent.Target, plan.ReasonRolledBack, message, p.Now, p.set)
		c.remember(n, marker.OutcomeFailed, plan.ReasonRolledBack, p.Now)
		c.Marks.Intent.Target = ""
		p.step(n, phase, intent.ActSoak, plan.ReasonRolledBack, message, c)
		return
	}
	if d.Soak == nil || d.Ready != n.ReadySince || d.Soak.After(p.Now.Add(p.set.RetryMax)) {
		p.step(n, phase, intent.ActSoak, plan.ReasonSoakRestarted, "Ready again; the soak starts anew", p.soakAgain(n))
		return
	}
	soak := p.place(n).rules.Soak
	end := p.soaked(n)
	if p.Now.Before(end) {
		p.wakeAt(end)
		if p.isLost(n) {
			phase = intent.PhaseLost
		}
		p.wait(n, phase, plan.ReasonSoaking, plan.Say("Ready on its new boot; the soak of {d} runs").Lasting(soak).Over(end))
		return
	}
	if m.Report.BootID != n.BootID || n.OSVersion != m.Report.Current {
		if p.isLost(n) {
			p.lostNode(n, "agent and kubelet do not agree on its boot")
			return
		}
		p.wait(n, phase, plan.ReasonReturning, plan.Verbatim(returnWait(n)))
		return
	}
	if p.podsAwaitedAgain(n) || p.workloadsAwaited(n) {
		return
	}
	c := keep(n)
	c.include(n)
	c.unprotect(n)
	c.Marks.Disruption, c.Marks.Waiting = nil, nil
	c.Marks.Intent.Target, c.Marks.Intent.RebootFrom = "", ""
	r, message := plan.ReasonVerified, "Ready for the whole soak on the version that it ran before"
	switch {
	case m.Intent.Target != "" && p.workloadsLate(n):
		r, message = plan.ReasonWorkloadsUnwell, n.Checked.Unwell+n.Checked.Failed
		c.fail(m.Intent.Target, r, message, p.Now, p.set)
		if p.workloadsBlameVersion(n) {
			c.blame(m.Intent.Target)
		}
		c.remember(n, marker.OutcomeFailed, r, p.Now)
	case m.Intent.Target != "":
		r, message = plan.ReasonUpdated, "updated to "+m.Intent.Target
		c.succeed(m.Intent.Target)
		c.remember(n, marker.OutcomeUpdated, r, p.Now)
	}
	p.step(n, phase, intent.ActFinish, r, message, c).FreesSlot = true
}

// soakAgain lets the soak start anew and takes back the cordon that an unwell node was given.
func (p *planner) soakAgain(n *fleet.Node) *change {
	c := keep(n)
	at := p.Now.Truncate(time.Millisecond)
	c.Marks.Disruption.Ready, c.Marks.Disruption.Soak = n.ReadySince, &at
	if n.Marks.Disruption.Soak == nil {
		c.uncordon(n)
	}
	c.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonSoaking), Message: "Ready again; the soak runs"}
	return c
}

// unwell cordons a node that became NotReady during its soak, under the same record.
func (p *planner) unwell(n *fleet.Node) {
	if n.Marks.Disruption.Soak == nil {
		if p.isLost(n) {
			p.lostNode(n, "is not Ready after its update")
			return
		}
		p.wait(n, intent.PhaseVerifying, plan.ReasonUnwell, plan.Say("not Ready after its update; cordoned until it is"))
		return
	}
	c := keep(n)
	c.Marks.Disruption.Soak, c.Marks.Disruption.Ready = nil, ""
	// What stands there now is what stood there before this cordon, whatever it was before the first one.
	c.Marks.Disruption.WasUnschedulable = n.Unschedulable
	if !n.Unschedulable {
		c.Unschedulable = new(true)
	}
	c.exclude(n, p.place(n).rules)
	c.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonUnwell), Message: "not Ready after its update; cordoned until it is"}
	p.step(n, intent.PhaseVerifying, intent.ActRecordon, plan.ReasonUnwell, "not Ready after its update: cordoned again", c)
}

func (p *planner) verifyDeadline(n *fleet.Node) time.Duration {
	return p.place(n).rules.Soak + p.set.Deadlines.Return
}

// isLost tells if a node is past its deadline after the point of no return and hasn't what ends that.
func (p *planner) isLost(n *fleet.Node) bool {
	m := n.Marks
	if m.Disruption == nil || len(n.Problems) > 0 {
		return false
	}
	d := p.set.Deadlines
	switch intent.PhaseOf(m) {
	case intent.PhaseRebooting:
		if !intent.PointOfNoReturn(m) && !rebooted(n) {
			return false
		}
		return p.past(n, m.Intent.Time, d.Reboot)
	case intent.PhaseReturning:
		if m.Report.Answer(m.Intent.ID) == marker.StateError && m.Report.BootID == m.Intent.RebootFrom && n.BootID == m.Intent.RebootFrom {
			return false
		}
		known := m.Report.Answer(m.Intent.ID) == marker.StateError || m.Report.Current == m.Intent.Target
		well := n.Ready && confirmed(n) && known
		switch {
		case !well:
			return p.past(n, m.Intent.Time, d.Reboot+d.Return)
		case p.podsUnwell(n, time.Time{}):
			return p.past(n, m.Intent.Time, d.Reboot+d.Return+p.place(n).rules.Verify.Deadline)
		}
		return p.hookLate(n)
	case intent.PhaseVerifying:
		// A node that comes and goes is never well for a whole soak, and Lost like one that stays away.
		well := n.Ready && n.BootID == m.Report.BootID && n.OSVersion == m.Report.Current
		soak := m.Disruption.Soak
		switch {
		case !well || soak == nil || m.Disruption.Ready != n.ReadySince || p.Now.Before(p.soaked(n)):
			return p.past(n, m.Intent.Time, p.verifyDeadline(n))
		case p.podsUnwell(n, p.soaked(n)):
			return p.past(n, p.soaked(n), p.place(n).rules.Verify.Deadline)
		}
		return false
	}
	return false
}

// missed is what was not seen of a reboot by its deadline.
func missed(n *fleet.Node) string {
	switch m := &n.Marks; {
	case !rebooted(n) && m.Report.BootID != m.Intent.RebootFrom:
		return "is back by its agent's word, and its kubelet has not reported the new boot"
	case !rebooted(n) && n.Ready:
		return "has not begun to reboot"
	case !rebooted(n):
		return "has not come back from its reboot"
	case !n.Ready:
		return "has not become Ready on its new boot"
	}
	return "is Ready on its new boot, and its agent does not say the same of it"
}

func (p *planner) lostNode(n *fleet.Node, what string) {
	s := plan.Say("{s} {s2}; it stays cordoned until it is healthy, deleted, or its label is removed")
	if !n.Unschedulable {
		s = plan.Say("{s} {s2}; it counts as Lost until it is healthy, deleted, or its label is removed")
	}
	p.wait(n, intent.PhaseLost, plan.ReasonLost, s.With(n.Name, what))
}

// leaving gives back a node whose label was removed.
func (p *planner) leaving(n *fleet.Node, phase intent.Phase) {
	if RebootBegun(n) && !p.isLost(n) {
		// Not for ever: taking the label off is what ends a Lost node.
		p.stand(n, phase, "", plan.ReasonLeaving, plan.Say("the label is gone; the reboot that has begun is awaited"))
		return
	}
	if !n.Disrupted() && !p.slot(n) && n.AgentPod {
		p.stand(n, phase, "", plan.ReasonLeaving, plan.Say("the label is gone; the agent's pod has not left yet"))
		return
	}
	if !n.Marked() && p.slot(n) && p.fencedAlready(n, phase) {
		return
	}
	p.step(n, phase, intent.ActLeave, plan.ReasonLeaving, "the label is gone: all that the operator did is taken back", leave(n)).FreesSlot = p.slot(n)
}
