package planner

import (
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// idle decides if a node may begin to stage an update.
func (p *planner) idle(n *fleet.Node) {
	phase := intent.PhaseIdle
	m := &n.Marks
	if p.fence(n, phase) {
		return
	}
	if p.correctClock(n) {
		return
	}
	answer := m.Report.Answer(m.Intent.ID)
	switch {
	case m.Paused:
		p.wait(n, phase, plan.ReasonPaused, plan.Say("paused: {s}").With(orNoReason(m.PausedReason)))
	case !n.AgentReady && n.BootID != "" && n.OSVersion == "":
		p.wait(n, phase, plan.ReasonInterfaceUnsupported, plan.Say("the kubelet does not call its host Bottlerocket: take the label off"))
	case !n.AgentReady:
		p.wait(n, phase, plan.ReasonAgentNotReady, plan.Say("no agent pod is Ready on the node"))
	case answer == marker.StateError:
		p.agentError(n, phase)
	case answer != marker.StateReady || m.Report.Current == "" || m.Report.Protocol < 1:
		p.wait(n, phase, plan.ReasonAgentNotReady, plan.Say("the agent has not reported on its host yet"))
	case n.BootID == m.Report.BootID && n.OSVersion != "" && n.OSVersion != m.Report.Current:
		p.wait(n, phase, plan.ReasonBootUnconfirmed, plan.Say("of the same boot the kubelet says that {s} runs, and the agent that {s2} does: see which is true on the host").With(n.OSVersion, m.Report.Current))
	case m.Report.Available == "" || p.compare(m.Report.Available, m.Report.Current) == 0:
		p.upToDate(n)
	case p.downgrade(m.Report.Current, m.Report.Available).reason != "":
		v := p.downgrade(m.Report.Current, m.Report.Available)
		p.wait(n, phase, v.reason, v.sentence)
	case p.backingOff(n):
		f := m.Failure
		p.wakeAt(f.RetryAfter)
		p.wait(n, phase, plan.ReasonBackingOff, plan.Say("{v} failed here ({n} in a row, last {s}: {s2}); tried again after {t}, or at once with the annotation {s3}").
			After("", m.Report.Available).Count(f.Count).With(f.Reason, f.Message, string(marker.KeyRetry)).At(f.RetryAfter).Over(f.RetryAfter))
	case p.tired(n).reason != "":
		v := p.tired(n)
		p.wait(n, phase, v.reason, v.sentence.After("{v} is available; ", m.Report.Available))
	case p.handsOff(n):
		p.wait(n, phase, plan.ReasonHandsOff, plan.Say("somebody took the operator's cordon away a short while ago; the node is left alone for {d}").
			Lasting(p.set.HandsOff).Over(m.History[len(m.History)-1].Ended.Add(p.set.HandsOff)))
	case !n.Ready:
		p.wait(n, phase, plan.ReasonNodeNotReady, plan.Say("the kubelet says that the node is not Ready"))
	case n.Leaving != "":
		p.wait(n, phase, plan.ReasonBeingRemoved, plan.Say("the node is on its way out of the cluster: {s}").With(n.Leaving))
	default:
		p.toStage = append(p.toStage, p.candidate(n))
	}
}

// downgrade says why a version that is lower than the one that runs is no target.
func (p *planner) downgrade(current, version string) verdict {
	if p.set.Versions.Downgrade || p.compare(version, current) >= 0 {
		return verdict{}
	}
	return verdict{plan.ReasonLowerVersionOffered, plan.Say("runs {s} and is offered the lower {s2}, which is no target unless the policy says so").With(current, version)}
}

// upToDate tells a node that has what is offered from one that is held at a version which isn't offered yet.
func (p *planner) upToDate(n *fleet.Node) {
	current := n.Marks.Report.Current
	if hold := p.set.Versions.Hold; hold != "" && marker.CompareVersions(current, hold) < 0 {
		p.wait(n, intent.PhaseIdle, plan.ReasonHeld, plan.Say("runs {s}; {s2}, at which the policy holds the fleet, is not offered to it yet").With(current, hold))
		return
	}
	p.wait(n, intent.PhaseIdle, plan.ReasonUpToDate, plan.Say("runs {s} and nothing newer is offered").With(current))
}

func (p *planner) agentError(n *fleet.Node, phase intent.Phase) {
	message := n.Marks.Report.Message
	if other, ok := strings.CutPrefix(message, intent.AnotherUpdater); ok {
		s := plan.Say("{s}; a reboot, or taking that back on the host, ends it").With(other)
		if says(n, intent.HasActivated) {
			s = plan.Say("{s}; if it was this operator's, before the Node was made anew or its label taken off, the annotation {s2} undoes it").
				With(other, string(marker.KeyRetry))
		}
		p.wait(n, phase, plan.ReasonAnotherUpdater, s)
		return
	}
	if strings.HasPrefix(message, intent.Unsupported) {
		p.wait(n, phase, plan.ReasonInterfaceUnsupported, plan.Say("{s}; replace the node by one with a newer image, or take the label off").With(message))
		return
	}
	p.wait(n, phase, plan.ReasonHostError, plan.Verbatim(message))
}

// says reports whether the agent's answer is an error that begins so.
func says(n *fleet.Node, beginning string) bool {
	return n.Marks.Report.Answer(n.Marks.Intent.ID) == marker.StateError && strings.HasPrefix(n.Marks.Report.Message, beginning)
}

func orNoReason(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}

// backingOff tells if the offered version has to wait: it failed here or isn't newer than all that did.
func (p *planner) backingOff(n *fleet.Node) bool {
	f := n.Marks.Failure
	if f == nil || !p.Now.Before(f.RetryAfter) {
		return false
	}
	return slices.ContainsFunc(f.Versions, func(failed string) bool {
		return marker.CompareVersions(n.Marks.Report.Available, failed) <= 0
	})
}

// correctClock cuts a wait that a clock which ran ahead wrote far into the future.
func (p *planner) correctClock(n *fleet.Node) bool {
	f := n.Marks.Failure
	if f == nil || !f.RetryAfter.After(p.Now.Add(p.set.RetryMax)) {
		return false
	}
	c := keep(n)
	c.Marks.Failure.RetryAfter = p.Now.Truncate(time.Second).Add(p.set.RetryMax)
	p.step(n, intent.PhaseIdle, intent.ActNote, plan.ReasonClockCorrected, "the time of the next try was implausibly far away", c)
	return true
}

// handsOff tells if a human ended the last attempt a short while ago.
func (p *planner) handsOff(n *fleet.Node) bool {
	h := n.Marks.History
	if len(h) == 0 || h[len(h)-1].Reason != string(plan.ReasonCordonTaken) {
		return false
	}
	end := h[len(h)-1].Ended.Add(p.set.HandsOff)
	p.wakeAt(end)
	return p.Now.Before(end) && !h[len(h)-1].Ended.After(p.Now.Add(p.set.RetryMax))
}
