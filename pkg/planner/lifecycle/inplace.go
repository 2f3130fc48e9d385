package lifecycle

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// drainInPlace asks the only node of a cluster to reboot with its workloads left in place. What else is done for a node
// that goes down is done here too: load balancers, the note of its workloads, hooks.
func drainInPlace(in *Input) Next {
	if !in.LeftInPlace() {
		return Next{}
	}
	return first(in, awaitBalancers, inPlaceOverdue, noteWorkloads, awaitAgentInPlace, awaitAfterDrainHooks, rebootInPlace)
}

func inPlaceOverdue(in *Input) Next {
	why := in.workloadsUnnoted()
	if why == "" && in.AgentReady {
		return Next{}
	}
	since, more := in.drainSince()
	within := in.Rules.Drain + more
	d := in.deadline(since, within)
	switch {
	case !d.passed:
		return none(d.again)
	case why != "":
		return in.abandon(plan.ReasonDrainDeadline, fmt.Sprintf("its workloads could not be noted within %s: %s", within, why), marker.OutcomeFailed)
	}
	return in.abandon(plan.ReasonDrainDeadline, fmt.Sprintf("no agent pod was Ready on the node within %s", within), marker.OutcomeFailed)
}

func awaitAgentInPlace(in *Input) Next {
	if in.AgentReady {
		return Next{}
	}
	return in.wait(intent.PhaseDraining, plan.ReasonAgentNotReady, plan.Messagef("no agent pod is Ready on the node"))
}

func rebootInPlace(in *Input) Next {
	return in.askReboot(plan.LookAlone, plan.ReasonSingleNode, inPlaceMessage)
}
