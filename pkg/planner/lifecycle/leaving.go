package lifecycle

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// leaving is the next step of a node whose label was removed: all that the operator did to it is undone.
func leaving(in *Input) Next {
	if RebootBegun(in.Node) {
		// Not for ever: to take the label off is what ends a Lost node.
		if lost := in.lost(); !lost.passed {
			next := in.stay(plan.ReasonLabelRemoved, plan.Messagef("the label is gone; the reboot that has begun comes to its end first"))
			next.Again = lost.again
			return next
		}
	}
	if in.Marks.Lock != nil {
		return in.leaveLocked()
	}
	if _, stands := in.Labels[string(marker.KeyLocked)]; stands && !in.Labelled() {
		return in.unlocked()
	}
	if !in.Disrupted() && !in.Slot && in.AgentPod && !in.Labelled() {
		return in.stay(plan.ReasonLabelRemoved, plan.Messagef("the label is gone; the agent's pod has not left yet"))
	}
	if !in.Marked() && in.Slot && in.freedByLook() {
		return in.releaseFenced()
	}
	c := in.leave(true)
	if c.Marks.AutoLabelled = in.Marks.AutoLabelled; in.AutoLabels && c.Marks.AutoLabelled == nil {
		// A user took the label off, which autoLabel must not put on again.
		c.Marks.AutoLabelled = in.stamp()
	}
	return in.do(intent.ActLeave, plan.ReasonLabelRemoved, "the label is gone: what the operator changed on the node is undone", c).freeing(in.Slot)
}

// Clean returns the change that removes all that is the operator's from a node and undoes what the record of its
// disruption says that the operator did. What an unreadable record may mean is left as it stands.
func Clean(n *fleet.Node) *plan.Change {
	v := View{Node: n}
	return &v.leave(!n.DisruptionUnreadable()).Change
}
