package policy

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Volumes is what is made of volumes of evicted pods that are still attached.
type Volumes struct {
	// Wait is how long they may take; with 0 nobody looks. Default 5 min.
	Wait time.Duration
	// OnTimeout is what becomes of the node then. Default Ignore.
	OnTimeout OnTimeout
}

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
		c.Marks.Waiting = &marker.Waiting{Reason: string(ReasonVolumesAttached), Message: marker.Clip(message, marker.MaxMessage)}
		p.step(n, intent.PhaseDraining, intent.ActNote, ReasonVolumesAttached, message, c)
		return true
	case seen && !n.Checked.Well() && p.past(n, *d.Drained, v.Wait):
		if v.OnTimeout != Abort {
			return false
		}
		p.giveBack(n, intent.PhaseDraining, ReasonVolumesDeadline, n.Checked.Unwell+n.Checked.Failed+", "+v.Wait.String()+" after the drain", true)
		return true
	}
	q := Check{For: fleet.CheckVolumes}
	if seen {
		q.Attachments = n.Checked.Attachments
	}
	since := time.Time{}
	if d.Late != nil {
		since = *d.Late
	}
	_, ok := p.check(n, intent.PhaseDraining, q, since, ReasonVolumesAttached)
	return !ok
}
