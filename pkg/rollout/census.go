package rollout

import (
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Census is what the nodes of a fleet say about each version.
type Census struct {
	// Managed counts all nodes in the operator's care.
	Managed int
	// Runs counts the nodes that run a version, UnderWay those that are on their way to it, and Awaits those that are
	// still to go and will by themselves. SetAside has the reasons of those that only a user lets go.
	Runs, UnderWay, Awaits map[string]int
	SetAside               map[string]map[plan.Reason]int
	// Waits are the reasons of those that are still to go, or are staged and wait.
	Waits map[string]map[plan.Reason]int
}

// Nodes calls f with each node of a plan, and what the snapshot that it was made from says of the node.
func Nodes(s *fleet.Snapshot, p *plan.Plan, f func(d *plan.Decision, n *fleet.Node)) {
	at := 0
	for i := range p.Nodes {
		d := &p.Nodes[i]
		// Both are in the same order, and the plan's nodes are among the snapshot's.
		for at < len(s.Nodes) && s.Nodes[at].UID != d.UID {
			at++
		}
		if at == len(s.Nodes) {
			return
		}
		f(d, &s.Nodes[at])
	}
}

// Count returns the census of a plan's nodes.
func Count(s *fleet.Snapshot, p *plan.Plan) Census {
	c := Census{Managed: len(p.Nodes), Runs: map[string]int{}, UnderWay: map[string]int{}, Awaits: map[string]int{},
		SetAside: map[string]map[plan.Reason]int{}, Waits: map[string]map[plan.Reason]int{}}
	Nodes(s, p, func(d *plan.Decision, n *fleet.Node) {
		c.Runs[n.OSVersion]++
		goes := d.Goes(&n.Marks)
		switch {
		case underWay(d) && n.Marks.Cycles():
		case underWay(d) && d.Target != "":
			c.UnderWay[d.Target]++
			if d.Phase == intent.PhaseStaged && !d.Starts() {
				one(c.Waits, d.Target, d.Reason)
			}
		case goes == "":
		case waitsForUser(d.Reason):
			one(c.SetAside, goes, d.Reason)
		default:
			c.Awaits[goes]++
			if !d.Starts() {
				one(c.Waits, goes, d.Reason)
			}
		}
	})
	return c
}

func one(of map[string]map[plan.Reason]int, version string, r plan.Reason) {
	if of[version] == nil {
		of[version] = map[plan.Reason]int{}
	}
	of[version][r]++
}

// underWay reports whether a node has been asked for a version, has not come to an end with it, and will by itself: one
// that is staged may wait for a user before it is taken out of service.
func underWay(d *plan.Decision) bool {
	switch d.Phase {
	case intent.PhaseStaged:
		return !waitsForUser(d.Reason)
	case intent.PhaseStaging, intent.PhaseDraining, intent.PhaseRebooting, intent.PhaseReturning, intent.PhaseVerifying:
		return true
	default:
		return false
	}
}

// Moves reports whether some node of a plan is on its way to a version.
func Moves(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Nodes, func(d plan.Decision) bool { return underWay(&d) })
}

// waitsForUser reports whether a node that waits by this reason is no part of a rollout any more: it goes on only after
// a user did something.
func waitsForUser(r plan.Reason) bool {
	return slices.Contains([]plan.Reason{plan.ReasonLost, plan.ReasonPaused, plan.ReasonVersionStopped, plan.ReasonVersionDenied,
		plan.ReasonHeldAtVersion, plan.ReasonLowerVersionOffered, plan.ReasonUngrouped, plan.ReasonAnotherUpdater,
		plan.ReasonAnnotationUnreadable, plan.ReasonInterfaceUnsupported}, r)
}
