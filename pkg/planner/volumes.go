package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// volumesAwaited settles an empty node whose volumes are not detached yet; false: they are, or have had their time.
func (p *planner) volumesAwaited(n *fleet.Node) bool {
	v, d := p.place(n).rules.Volumes, n.Marks.Disruption
	// Once hooks are asked volumes have been waited for.
	if v.Wait == 0 || d.Asked != nil {
		return false
	}
	// What was seen before pods came late says nothing of their volumes.
	seen := n.Checked != nil && n.Checked.For == fleet.CheckVolumes && (d.Late == nil || !n.Checked.At.Before(*d.Late))
	switch {
	case seen && !n.Checked.Well() && d.Drained == nil:
		// The wait begins, for whoever leads.
		c := keep(n)
		at := p.Now.Truncate(time.Millisecond)
		c.Marks.Disruption.Drained = &at
		message := n.Checked.Unwell + n.Checked.Failed
		c.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonVolumesAttached), Message: marker.Clip(message, marker.MaxMessage)}
		p.step(n, intent.PhaseDraining, intent.ActNote, plan.ReasonVolumesAttached, message, c)
		return true
	case seen && !n.Checked.Well() && p.past(n, *d.Drained, v.Wait):
		if v.OnTimeout != policy.Abort {
			return false
		}
		p.giveBack(n, intent.PhaseDraining, plan.ReasonVolumesDeadline, n.Checked.Unwell+n.Checked.Failed+", "+v.Wait.String()+" after the drain", true)
		return true
	}
	q := plan.Check{For: fleet.CheckVolumes}
	if seen {
		q.Attachments = n.Checked.Attachments
	}
	since := time.Time{}
	if d.Late != nil {
		since = *d.Late
	}
	_, ok := p.check(n, intent.PhaseDraining, q, since, plan.ReasonVolumesAttached)
	return !ok
}
