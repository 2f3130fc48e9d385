package lifecycle

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// resetting is the next step of a node whose agent undoes what was activated.
func resetting(in *Input) Next { return first(in, fence, awaitReset) }

func awaitReset(in *Input) Next {
	const phase = intent.PhaseResetting
	switch answer := in.answer(); {
	case answer == marker.StateReady:
		return in.do(intent.ActStabilize, plan.ReasonResetDone, "nothing is activated on the host", in.stabilize())
	case answer == marker.StateError:
		return in.wait(phase, plan.ReasonHostError, plan.Messagef(
			"an update stays activated on the host, and the next reboot would boot it; the agent tries again to undo that: %s", in.Marks.Report.Message))
	case !in.AgentReady:
		return in.wait(phase, plan.ReasonAgentNotReady, plan.Messagef("the host is to be reset; no agent pod is Ready on the node"))
	}
	return in.wait(phase, plan.ReasonResetting, plan.Messagef(resettingMessage))
}
