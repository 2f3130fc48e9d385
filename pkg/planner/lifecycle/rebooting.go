package lifecycle

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// rebooting is the next step of a node whose agent was asked to reboot. Before the agent says busy the intent can be
// taken back; after it only the boot ID, or the agent's own late error, decides.
func rebooting(in *Input) Next {
	if intent.PointOfNoReturn(in.Marks) || in.rebooted() && in.Marks.Plan == nil {
		return first(in, lostInReboot, awaitReboot)
	}
	return first(in, rebootedEarly, uncordonedOrPaused, requestWithdrawn, planChanged, pinChanged, freshOverdue, recallReboot, agentLost, rebootOverdue, awaitAgent)
}

// planChanged abandons an attempt whose plan is another one by now, or gone. The runner looks at no target but the one
// that it was asked for.
func planChanged(in *Input) Next {
	if in.Marks.Plan == nil || !in.withdrawn() {
		return Next{}
	}
	return in.abandon(plan.ReasonOfferWithdrawn, withdrawn(&in.Marks), marker.OutcomeAbandoned)
}

// recallReboot abandons an attempt that the policy ends.
func recallReboot(in *Input) Next {
	if !in.Recall.Refuses() {
		return none(in.Recall.Again)
	}
	next := in.abandon(in.Recall.Reason, in.Recall.Message.String(), marker.OutcomeAbandoned)
	next.Again = plan.Earliest(in.Now, next.Again, in.Recall.Again)
	return next
}

func rebootOverdue(in *Input) Next {
	within := in.beginTime()
	d := in.deadline(in.Marks.Intent.Time, within)
	if !d.passed {
		return none(d.again)
	}
	missed := "the agent did not begin the reboot"
	if p := in.Marks.Plan; p != nil {
		missed = "the runner did not begin " + described(p, in.Marks.Intent.Target)
	}
	return in.abandon(plan.ReasonRebootDeadline, fmt.Sprintf("%s within %s", missed, within), marker.OutcomeFailed)
}

func awaitAgent(in *Input) Next {
	target := in.Marks.Intent.Target
	switch {
	case in.Marks.Plan != nil && !in.AgentReady:
		return in.wait(intent.PhaseRebooting, plan.ReasonAgentNotReady, plan.Messagef("to run %s; no runner is Ready", described(in.Marks.Plan, target)))
	case in.Marks.Plan != nil:
		return in.wait(intent.PhaseRebooting, plan.ReasonRebooting, plan.Messagef("the runner was asked to run %s", described(in.Marks.Plan, target)))
	case !in.AgentReady:
		return in.wait(intent.PhaseRebooting, plan.ReasonAgentNotReady, plan.Messagef("drained, to reboot into %s; no agent pod is Ready on the node", target))
	}
	return in.wait(intent.PhaseRebooting, plan.ReasonRebooting, plan.Messagef("the agent was asked to reboot into %s", target))
}

// lostInReboot leaves a node as it is that was not seen to come back.
func lostInReboot(in *Input) Next {
	d := in.lost()
	if !d.passed {
		return none(d.again)
	}
	return in.waitLost(in.missed())
}

func awaitReboot(in *Input) Next {
	m := &in.Marks
	if in.says(marker.StateBusy, marker.ReasonRepositoryUnavailable) && m.Report.ActivatedID != m.Intent.ID {
		return in.wait(intent.PhaseRebooting, plan.ReasonRebooting,
			plan.Messagef("the agent activates %s again and again, since the host says: %s", m.Intent.Target, m.Report.Message).Dated())
	}
	if m.Plan != nil {
		return in.wait(intent.PhaseRebooting, plan.ReasonRebooting, plan.Messagef("the runner's pod runs %s", described(m.Plan, m.Intent.Target)))
	}
	return in.wait(intent.PhaseRebooting, plan.ReasonRebooting, plan.Messagef("the host reboots into %s", m.Intent.Target))
}
