package planner

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// preparing waits for the agent to stage, or to confirm what is staged.
func (p *planner) preparing(n *fleet.Node) {
	phase, m := intent.PhasePreparing, &n.Marks
	if p.fence(n, phase) {
		return
	}
	switch {
	case m.Report.Available != m.Intent.Target && m.Report.Current != m.Intent.Target:
		// Also if the agent calls that an error: nothing failed.
		p.giveBack(n, phase, plan.ReasonOfferWithdrawn, withdrawn(m), false)
	case m.Report.Answer(m.Intent.ID) == marker.StateError:
		p.giveBack(n, phase, plan.ReasonPrepareFailed, m.Report.Message, true)
	case m.Paused:
		p.giveBack(n, phase, plan.ReasonPaused, "paused: "+orNoReason(m.PausedReason), false)
	case p.past(n, m.Intent.Time, p.within(m)):
		message := fmt.Sprintf("the agent did not %s %s within %s", wanted(m), m.Intent.Target, p.within(m))
		if m.Report.Answer(m.Intent.ID) == marker.StateBusy && m.Report.Message != "" {
			message += ": " + m.Report.Message
		}
		// What all agents lack is not this node's.
		p.giveBack(n, phase, plan.ReasonPrepareDeadline, message, n.AgentReady || p.agents > 0)
	case !n.AgentReady:
		p.wait(n, phase, plan.ReasonAgentNotReady, plan.Say("to {s} {s2}; no agent pod is Ready on the node").With(wanted(m), m.Intent.Target))
	case m.Intent.Action == marker.ActionConfirmUpdate:
		if p.justAsked(n) {
			p.reserve(n)
		}
		if m.Report.Answer(m.Intent.ID) == marker.StateBusy && m.Report.Message != "" {
			p.wait(n, phase, plan.ReasonHostError, plan.Say("staged; {s}; the host is asked again and again, and the node serves meanwhile").With(m.Report.Message).Aging())
			return
		}
		p.wait(n, phase, plan.ReasonConfirming, confirming(m.Intent.Target))
	default:
		p.wait(n, phase, plan.ReasonPreparing, plan.Say("the agent stages {s}").With(m.Intent.Target))
	}
}

// within is how long the agent of a node may take.
func (p *planner) within(m *marker.Marks) time.Duration {
	if m.Intent.Action == marker.ActionConfirmUpdate {
		return confirmFor
	}
	return p.set.Deadlines.Prepare
}

// wanted is what the agent of a node is to do with the target, as a word.
func wanted(m *marker.Marks) string {
	if m.Intent.Action == marker.ActionConfirmUpdate {
		return "confirm"
	}
	return "stage"
}

// prepared decides if a staged node may be taken out of service.
func (p *planner) prepared(n *fleet.Node) {
	m := &n.Marks
	switch {
	case m.Report.Current == m.Intent.Target:
		p.unstage(n, plan.ReasonAlreadyOnTarget, "the node already runs "+m.Intent.Target)
	case m.Report.Available != m.Intent.Target:
		p.unstage(n, plan.ReasonOfferWithdrawn, withdrawn(m))
	case m.Paused:
		p.hold(n, plan.ReasonPaused, plan.Say("staged; paused: {s}").With(orNoReason(m.PausedReason)))
	case !n.AgentReady:
		p.hold(n, plan.ReasonAgentNotReady, plan.Say("staged; no agent pod is Ready on the node"))
	case !n.Ready:
		p.hold(n, plan.ReasonNodeNotReady, plan.Say("staged; the kubelet says that the node is not Ready"))
	case n.BootID == "" || n.BootID != m.Report.BootID:
		p.hold(n, plan.ReasonBootUnconfirmed, plan.Say("staged; agent and kubelet do not name the same boot yet"))
	case n.Leaving != "":
		p.hold(n, plan.ReasonBeingRemoved, plan.Say("staged; the node is on its way out of the cluster: {s}").With(n.Leaving))
	case p.tired(n).reason != "":
		v := p.tired(n)
		p.hold(n, v.reason, v.sentence.After("staged; ", ""))
	default:
		p.toDisrupt = append(p.toDisrupt, p.candidate(n))
	}
}

// unstage ends an attempt of a staged node that has nothing to go to.
func (p *planner) unstage(n *fleet.Node, r plan.Reason, message string) {
	c := stabilize(n, p.Now, p.set)
	c.remember(n, marker.OutcomeGivenBack, r, p.Now)
	p.step(n, intent.PhasePrepared, intent.ActStabilize, r, message, c).FreesSlot = p.slot(n)
}

// hold lets a staged node wait; a slot that it holds from an interrupted start is given back first.
func (p *planner) hold(n *fleet.Node, r plan.Reason, s plan.Message) {
	if !p.fence(n, intent.PhasePrepared) {
		p.wait(n, intent.PhasePrepared, r, s)
	}
}

const (
	// confirmAfter is how long after it was asked to stage a node is asked, before its cordon, whether its repository
	// still answers: an activation needs that too, and fails on a drained node if it doesn't.
	confirmAfter = 10 * time.Minute
	// confirmFor is how long an agent may take to answer that, and how long after the question the answer is good. It is
	// longer than an agent's patience with a locked host, so that an answer is never too old as it comes.
	confirmFor = intent.BusyPatience + 5*time.Minute
	// placeFor is how long others leave a node its place while it is asked. An agent that has an answer has it sooner, and
	// one that keeps silent keeps no other waiting.
	placeFor = 2 * time.Minute
	// confirmProtocol is the first protocol that knows the question.
	confirmProtocol = 2
)

// doubtful reports whether a staged node has waited for long since its agent last heard from the repository.
func (p *planner) doubtful(n *fleet.Node) bool {
	after := confirmAfter
	if n.Marks.Intent.Action == marker.ActionConfirmUpdate {
		after = confirmFor
	}
	return n.Marks.Report.Protocol >= confirmProtocol && p.Now.Sub(n.Marks.Intent.Time) > after
}

// justAsked reports whether a node that is asked to confirm what is staged may keep its place.
func (p *planner) justAsked(n *fleet.Node) bool {
	end := n.Marks.Intent.Time.Add(placeFor)
	p.wakeAt(end)
	return p.Now.Before(end) && !n.Marks.Intent.Time.After(p.Now)
}

// confirm asks the agent of a staged node to look once more.
func (p *planner) confirm(n *fleet.Node) {
	p.reserve(n)
	p.confirming++
	message := confirming(n.Marks.Intent.Target).String()
	c := begin(n, p.Now, marker.ActionConfirmUpdate, confirmFor, plan.ReasonConfirming, message)
	p.step(n, intent.PhasePrepared, intent.ActConfirm, plan.ReasonConfirming, message, c)
}

// reserve keeps the place of a node that goes next: no others are asked for it meanwhile.
func (p *planner) reserve(n *fleet.Node) {
	counted := p.otherwiseOut(n)
	p.fleet.take(n, counted)
	if g := p.place(n); g != p.rest {
		g.take(n, counted)
	}
}

func confirming(target string) plan.Message {
	return plan.Say("the agent asks the repository once more for {s} before the node is taken out of service").With(target)
}

func (p *planner) slot(n *fleet.Node) bool {
	_, held := p.Slots[n.UID]
	return held
}

func withdrawn(m *marker.Marks) string {
	if m.Report.Available == "" {
		return fmt.Sprintf("%s is not offered any more", m.Intent.Target)
	}
	return fmt.Sprintf("%s is offered instead of %s", m.Report.Available, m.Intent.Target)
}

// resetting waits until the agent has undone what was activated.
func (p *planner) resetting(n *fleet.Node) {
	phase, m := intent.PhaseResetting, &n.Marks
	if p.fence(n, phase) {
		return
	}
	if m.Report.Answer(m.Intent.ID) == marker.StateReady {
		p.step(n, phase, intent.ActStabilize, plan.ReasonResetDone, "nothing is activated on the host", stabilize(n, p.Now, p.set))
		return
	}
	if m.Report.Answer(m.Intent.ID) == marker.StateError {
		p.wait(n, phase, plan.ReasonHostError, plan.Say("an update is activated on the host, so that any reboot would boot it; the agent could not undo that, and tries again: {s}").With(m.Report.Message))
		return
	}
	if !n.AgentReady {
		p.wait(n, phase, plan.ReasonAgentNotReady, plan.Say("the host is to be reset; no agent pod is Ready on the node"))
		return
	}
	p.wait(n, phase, plan.ReasonResetting, plan.Say(resettingMessage))
}

// giveBack ends an attempt and what it changed on the node.
func (p *planner) giveBack(n *fleet.Node, phase intent.Phase, r plan.Reason, message string, counted bool) {
	c := giveBack(n, p.Now, p.set, r, message, counted)
	p.step(n, phase, intent.ActGiveBack, r, message, c).FreesSlot = n.Disrupted() || p.slot(n)
}
