package planner

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// alone tells if a node is the only one in its cluster, but for those that are on their way out.
func (p *planner) alone(n *fleet.Node) bool { return n.Leaving == "" && p.staying == 1 }

// leftInPlace tells if a node is updated without a drain.
func (p *planner) leftInPlace(n *fleet.Node) bool {
	return p.set.SingleNode == policy.SingleNodeAllow && p.alone(n)
}

// nowhereToGo says why a node's pods keep it in service: no other node could take them.
func (p *planner) nowhereToGo(n *fleet.Node) verdict {
	switch {
	case p.leftInPlace(n):
	case p.alone(n):
		return verdict{plan.ReasonOnlySchedulableNode, plan.Say("staged; it is the only node of the cluster: with singleNode: allow in the policy it is updated with its workloads left in place")}
	case !n.Unschedulable && p.schedulable <= 1:
		return verdict{plan.ReasonOnlySchedulableNode, plan.Say("staged; no other node could take this one's pods")}
	}
	return verdict{}
}

const inPlaceMessage = "the only node of the cluster is rebooted with its workloads left in place"

// drains is what people read on a node that was cordoned just now.
func (p *planner) drains(n *fleet.Node) *marker.Waiting {
	if p.leftInPlace(n) {
		return &marker.Waiting{Reason: string(plan.ReasonSingleNode), Message: inPlaceMessage}
	}
	return &marker.Waiting{Reason: string(plan.ReasonDraining), Message: "the node's pods are being evicted"}
}

// withoutDrain asks the only node of a cluster to reboot. Whoever carries it out looks live that it is the only one.
// What is done for a node that goes down is done here too: load balancers, the note of its workloads, hooks.
func (p *planner) withoutDrain(n *fleet.Node) {
	rules := p.place(n).rules
	since, more := p.drainSince(n)
	within := rules.Drain + more
	switch why := p.unnoted(n); {
	case p.Now.Before(p.balanced(n)):
		p.leavesBalancers(n)
	case why != "" && p.past(n, since, within):
		p.giveBack(n, intent.PhaseDraining, plan.ReasonDrainDeadline, fmt.Sprintf("its workloads could not be noted within %s: %s", within, why), true)
	case !n.AgentReady && p.past(n, since, within):
		p.giveBack(n, intent.PhaseDraining, plan.ReasonDrainDeadline, fmt.Sprintf("no agent pod was Ready on the node within %s", within), true)
	case !p.baseline(n):
	case n.AgentReady:
		if !p.hooked(n, intent.PhaseDraining, afterDrain, rules.Hooks.AfterDrain) {
			p.askReboot(n, plan.ReasonSingleNode, inPlaceMessage)
		}
	default:
		p.wait(n, intent.PhaseDraining, plan.ReasonAgentNotReady, plan.Say("no agent pod is Ready on the node"))
	}
}
