package planner

import (
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// RebootBegun tells if a node is past the point of no return and nobody has seen yet what came of it: its host may go
// down at any moment, whatever is written to the Node.
func RebootBegun(n *fleet.Node) bool {
	m := &n.Marks
	failed := m.Report.Answer(m.Intent.ID) == marker.StateError && m.Report.BootID == n.BootID
	return intent.PointOfNoReturn(*m) && !rebooted(n) && !failed
}

// TakeBack is the change that removes all that is the operator's from a node and undoes what the record of its
// disruption says that we did. What an unreadable record may mean is left as it stands.
func TakeBack(n *fleet.Node) *plan.Change {
	if n.Disrupted() && slices.ContainsFunc(n.Problems, func(p marker.Problem) bool { return p.Key == marker.KeyDisruption }) {
		without := *n
		without.Marks.Disruption = nil
		return &leave(&without).Change
	}
	return &leave(n).Change
}
