package lifecycle

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// stage begins an attempt: the agent is asked to stage what its host is offered.
func (v *View) stage() Next {
	target := v.Goal()
	r, message, waits := plan.ReasonUpdateAvailable, "stage "+target, "the agent stages "+target
	if v.wantsCycle() {
		r, message, waits = plan.ReasonCycleWanted, "begin a cycle on "+target+", as the user asked", asksForCycle(target)
	}
	if v.Wish != nil {
		waits = preparing(&v.Wish.Plan, target)
	}
	c := v.begin(marker.ActionPrepareUpdate, v.Settings.Deadlines.Staging, plan.ReasonStaging, waits)
	c.Marks.Intent.Target, c.Marks.Intent.RebootFrom = target, ""
	if w := v.Wish; w != nil {
		c.Marks.Plan, c.Marks.Intent.Template = new(w.Plan), w.Prepare
	}
	return v.do(intent.ActStage, r, message, c)
}

// staging is the next step of a node whose agent is asked to stage, or to confirm what is staged.
func staging(in *Input) Next {
	return first(in, fence, pinChanged, stagingEnded, stagingOverdue, awaitStaging)
}

// stagingEnded ends an attempt that its agent, its host or its user ended.
func stagingEnded(in *Input) Next {
	m := &in.Marks
	switch {
	case in.withdrawn():
		// Also if the agent calls that an error: nothing failed.
		return in.abandon(plan.ReasonOfferWithdrawn, withdrawn(m), marker.OutcomeAbandoned)
	case in.answer() == marker.StateError:
		return in.abandon(plan.ReasonStagingFailed, m.Report.Message, marker.OutcomeFailed)
	case m.Paused:
		return in.abandon(plan.ReasonPaused, "paused: "+orNoReason(m.PausedReason), marker.OutcomeAbandoned)
	}
	return Next{}
}

func stagingOverdue(in *Input) Next {
	m := &in.Marks
	d := in.deadline(m.Intent.Time, in.stagingTime())
	if !d.passed {
		return none(d.again)
	}
	message := fmt.Sprintf("the agent did not %s %s within %s", wanted(m), m.Intent.Target, in.stagingTime())
	if in.answer() == marker.StateBusy && m.Report.Message != "" {
		message += ": " + m.Report.Message
	}
	// What all agents lack is not this node's.
	return in.abandon(plan.ReasonStagingDeadline, message, failedIf(in.AgentsReady))
}

func awaitStaging(in *Input) Next {
	m := &in.Marks
	switch {
	case m.Plan != nil:
		return in.awaitPrepared()
	case !in.AgentReady:
		return in.wait(intent.PhaseStaging, plan.ReasonAgentNotReady,
			plan.Messagef("to %s %s; no agent pod is Ready on the node", wanted(m), m.Intent.Target))
	case m.Cycles():
		return in.wait(intent.PhaseStaging, plan.ReasonStaging, plan.Text(asksForCycle(m.Intent.Target)))
	case m.Intent.Action != marker.ActionConfirmUpdate:
		return in.wait(intent.PhaseStaging, plan.ReasonStaging, plan.Messagef("the agent stages %s", m.Intent.Target))
	}
	next := in.wait(intent.PhaseStaging, plan.ReasonConfirming, confirming(m.Intent.Target))
	if in.answer() == marker.StateBusy && m.Report.Message != "" {
		next = in.wait(intent.PhaseStaging, plan.ReasonHostError,
			plan.Messagef("staged; %s; the host is asked again and again, and the node serves meanwhile", m.Report.Message).Dated())
	}
	var end time.Time
	next.KeepsPlace, end = in.JustAsked()
	next.Again = plan.Earliest(in.Now, next.Again, end)
	return next
}

// stagingTime is how long the agent of a node may take.
func (v *View) stagingTime() time.Duration {
	if v.Marks.Intent.Action == marker.ActionConfirmUpdate {
		return confirmFor
	}
	if p := v.Marks.Plan; p != nil && v.Marks.Intent.Template != "" {
		return max(v.Settings.Deadlines.Staging, actFor+actGrace+p.Within())
	}
	return v.Settings.Deadlines.Staging
}

// StuckStaging reports whether an attempt to stage is over that can't be ended: the others don't wait for its place.
func (v *View) StuckStaging() bool {
	w := v.WriteTrouble
	return w != nil && !w.Since.IsZero() && !v.Now.Before(v.Marks.Intent.Time.Add(v.stagingTime()))
}
