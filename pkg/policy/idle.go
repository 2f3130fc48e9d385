package policy

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// idle decides if a node may begin to stage an update.
func (p *planner) idle(n fleet.Node) {
	phase := intent.PhaseIdle
	m := n.Marks
	if p.fence(n, phase) {
		return
	}
	if p.correctClock(n) {
		return
	}
	answer := m.Report.Answer(m.Intent.ID)
	switch {
	case m.Paused:
		p.wait(n, phase, ReasonPaused, "paused: %s", orNoReason(m.PausedReason))
	case !n.AgentReady:
		p.wait(n, phase, ReasonAgentNotReady, "no agent pod is Ready on the node")
	case answer == marker.StateError:
		p.agentError(n, phase)
	case answer != marker.StateReady || m.Report.Current == "" || m.Report.Protocol < 1:
		p.wait(n, phase, ReasonAgentNotReady, "the agent has not reported on its host yet")
	case m.Report.Available == "" || marker.CompareVersions(m.Report.Available, m.Report.Current) == 0:
		p.wait(n, phase, ReasonUpToDate, "runs %s and nothing newer is offered", m.Report.Current)
	case marker.CompareVersions(m.Report.Available, m.Report.Current) < 0:
		p.wait(n, phase, ReasonLowerVersionOffered, "runs %s and is offered the lower %s, which is never a target",
			m.Report.Current, m.Report.Available)
	case p.backingOff(n):
		f := m.Failure
		p.wakeAt(f.RetryAfter)
		p.wait(n, phase, ReasonBackingOff, "%s failed here (%d in a row, last %s: %s); tried again after %s, or at once with the annotation %s",
			m.Report.Available, f.Count, f.Reason, f.Message, f.RetryAfter.UTC().Format("2006-01-02 15:04:05 MST"), marker.KeyRetry)
	case p.handsOff(n):
		p.wait(n, phase, ReasonHandsOff, "somebody took the operator's cordon away a short while ago; the node is left alone for %s", p.set.HandsOff)
	case !n.Ready:
		p.wait(n, phase, ReasonNodeNotReady, "the kubelet says that the node is not Ready")
	default:
		p.toStage = append(p.toStage, n)
	}
}

func (p *planner) agentError(n fleet.Node, phase intent.Phase) {
	message := n.Marks.Report.Message
	if len(message) >= len(intent.AnotherUpdater) && message[:len(intent.AnotherUpdater)] == intent.AnotherUpdater {
		p.wait(n, phase, ReasonAnotherUpdater, "%s", message[len(intent.AnotherUpdater):])
		return
	}
	p.wait(n, phase, ReasonHostError, "%s", message)
}

func orNoReason(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}

// backingOff tells if the offered version has to wait: it failed here or isn't newer than all that did.
func (p *planner) backingOff(n fleet.Node) bool {
	f := n.Marks.Failure
	if f == nil || !p.Now.Before(f.RetryAfter) {
		return false
	}
	return slices.ContainsFunc(f.Versions, func(failed string) bool {
		return marker.CompareVersions(n.Marks.Report.Available, failed) <= 0
	})
}

// correctClock cuts a wait that a clock which ran ahead wrote far into the future.
func (p *planner) correctClock(n fleet.Node) bool {
	f := n.Marks.Failure
	if f == nil || !f.RetryAfter.After(p.Now.Add(p.set.RetryMax)) {
		return false
	}
	c := keep(n)
	c.Marks.Failure.RetryAfter = p.Now.Truncate(time.Second).Add(p.set.RetryMax)
	p.step(n, intent.PhaseIdle, intent.ActNote, ReasonClockCorrected, "the time of the next try was implausibly far away", c)
	return true
}

// handsOff tells if a human ended the last attempt a short while ago.
func (p *planner) handsOff(n fleet.Node) bool {
	h := n.Marks.History
	if len(h) == 0 || h[len(h)-1].Reason != string(ReasonCordonTaken) {
		return false
	}
	end := h[len(h)-1].Ended.Add(p.set.HandsOff)
	p.wakeAt(end)
	return p.Now.Before(end) && !h[len(h)-1].Ended.After(p.Now.Add(p.set.RetryMax))
}
