package check

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Fleet is what holds for every node.
type Fleet struct {
	// Stopped is why nothing may start anywhere.
	Stopped plan.Refusal
	// Alerts is why nothing may start by the alerts of a Prometheus.
	Alerts plan.Refusal
	// Schedulable is how many of the cluster's nodes could take pods, and stay.
	Schedulable int
	// Staging is how many nodes stage at once, and MaxStaging how many may.
	Staging, MaxStaging int
}

// stateAgain is when a list of slots that can't be read is read again: no event comes when it is corrected.
const stateAgain = 30 * time.Second

// Stopped says why nothing may start anywhere. overdue is how many nodes are Lost, or will be once this process has
// passed over them: a new leader doesn't call a node Lost at its first look, and starts nothing that it would regret at
// its second.
func Stopped(s *fleet.Snapshot, overdue, maxLost int) plan.Refusal {
	switch {
	case s.SlotsProblem != "":
		return plan.Refusal{Reason: plan.ReasonStateUnreadable, Message: plan.Text(s.SlotsProblem), Again: s.Now.Add(stateAgain)}
	case s.NoPolicy:
		return NoPolicy(s)
	case overdue > maxLost:
		return plan.Refuse(plan.ReasonTooManyLost, plan.Messagef(
			"%d nodes are Lost, more than %d: nothing starts until they are back, deleted, or unlabelled", overdue, maxLost).Dated())
	}
	return plan.Refusal{}
}

// NoPolicy says why nothing may start where no policy is in force.
func NoPolicy(s *fleet.Snapshot) plan.Refusal {
	if !s.NoPolicy {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonPolicyUnreadable, plan.Messagef("there is no policy to go by: %s", s.PolicyProblem).Dated())
}

// Ungrouped says why nothing may start on a node that no group chooses.
func Ungrouped(set *policy.Settings) plan.Refusal {
	if len(set.Groups) == 0 || set.Ungrouped != policy.UngroupedWait {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonUngrouped, plan.Messagef("no group selects the node, and by the policy such nodes wait"))
}
