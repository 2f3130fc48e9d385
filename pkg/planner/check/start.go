package check

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/budget"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// Start is what it depends on whether an update may be staged on a node, or a node be taken out of service.
type Start struct {
	*lifecycle.View
	Fleet   *Fleet
	Group   *Group
	Version *Version
	// GoesFirst is what the groups before the node's have not done yet.
	GoesFirst plan.Refusal
	// Scopes are those whose budgets the node uses.
	Scopes []*budget.Scope
	// Away: the node is out of service already, by another's doing.
	Away bool
	// OthersFirst: other nodes will be asked that could go before the controller's own.
	OthersFirst func() bool
}

// The checks are in the order in which an administrator wants to read them: what holds for all, for the group, for the
// version, for now, and then for this node.
var (
	mayStart   = []plan.Check[*Start]{fleetMayStart, groupMayStart, versionIsTarget, groupsBeforeAreDone}
	byPolicy   = append(mayStart[:len(mayStart):len(mayStart)], stagingWindow)
	staging    = append(byPolicy[:len(byPolicy):len(byPolicy)], lastWriteSucceeded, roomToStage, alertsQuiet)
	disruption = append(mayStart[:len(mayStart):len(mayStart)], disruptionWindow, writesSucceed, roomLeft, podsHavePlace,
		controllerLast, drainForeseen, alertsQuiet)
)

// Policy says whether the policy and the other groups let an update be staged on the node.
func Policy(s *Start) plan.Refusal { return plan.FirstRefusal(s.Now, s, byPolicy...) }

// Staging says whether an update may be staged on the node now.
func Staging(s *Start) plan.Refusal { return plan.FirstRefusal(s.Now, s, staging...) }

// Disruption says whether the node may be taken out of service.
func Disruption(s *Start) plan.Refusal { return plan.FirstRefusal(s.Now, s, disruption...) }

func fleetMayStart(s *Start) plan.Refusal { return s.Fleet.Stopped }

func groupMayStart(s *Start) plan.Refusal {
	if s.Group.Paused.Refuses() {
		return s.Group.Paused
	}
	return s.Group.Ungrouped
}

func versionIsTarget(s *Start) plan.Refusal {
	lower := s.Lower(s.Version.Name)
	switch {
	case lower.Refuses():
		return lower
	case s.Version.Denied.Refuses():
		return s.Version.Denied
	}
	return s.Version.Young
}

func groupsBeforeAreDone(s *Start) plan.Refusal { return s.GoesFirst }

func stagingWindow(s *Start) plan.Refusal { return s.window(s.Group.Window().Stage) }

func disruptionWindow(s *Start) plan.Refusal { return s.window(s.Group.Window().Disrupt) }

// window is why the calendar holds a node: one that has no workloads yet waits for no window, but a freeze is for all.
func (s *Start) window(r plan.Refusal) plan.Refusal {
	if s.Fresh() && r.Reason != plan.ReasonFrozen {
		return plan.Refusal{}
	}
	return r
}

func lastWriteSucceeded(s *Start) plan.Refusal { return s.Unwritable() }

func writesSucceed(s *Start) plan.Refusal { return s.Mistrust() }

func roomToStage(s *Start) plan.Refusal {
	if f := s.Fleet; f.Staging >= f.MaxStaging {
		return plan.Refuse(plan.ReasonStagingLimit, plan.Messagef("%d nodes stage at once already", f.Staging).Dated())
	}
	return plan.Refusal{}
}

// roomLeft looks for a budget that is full.
func roomLeft(s *Start) plan.Refusal {
	for _, scope := range s.Scopes {
		r := scope.Refuses(s.Node, s.Away, s.Slot)
		if !r.Refuses() {
			continue
		}
		// More telling than that others are out, and it is not looked at again before there is room.
		if o := s.Obstacle(); o.Refuses() {
			return o
		}
		return r
	}
	return plan.Refusal{}
}

// podsHavePlace is why a node's pods keep it in service: no other node could take them.
func podsHavePlace(s *Start) plan.Refusal {
	switch {
	case s.LeftInPlace():
	case s.Alone:
		return plan.Refuse(plan.ReasonOnlySchedulableNode, plan.Messagef(
			"it is the only node of the cluster: set singleNode: allow in the policy to update it with its workloads in place"))
	case !s.Unschedulable && !s.Fresh() && s.Fleet.Schedulable <= 1:
		return plan.Refuse(plan.ReasonOnlySchedulableNode, plan.Messagef("no other schedulable node could take its pods"))
	}
	return plan.Refusal{}
}

func controllerLast(s *Start) plan.Refusal {
	if !s.ControllerHere || s.Slot || !s.OthersFirst() {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonControllerLast, plan.Messagef("the leading controller runs here, so the other nodes go first"))
}

func drainForeseen(s *Start) plan.Refusal { return s.Obstructed() }

func alertsQuiet(s *Start) plan.Refusal { return s.Fleet.Alerts }
