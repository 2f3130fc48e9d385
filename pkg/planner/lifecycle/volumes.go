package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// awaitVolumes lets volumes of an empty node be detached, for as long as the policy gives them.
func awaitVolumes(in *Input) Next {
	rules, d := &in.Rules.Volumes, in.Marks.Disruption
	// Once hooks are asked volumes have been waited for.
	if rules.Wait == 0 || d.Asked != nil {
		return Next{}
	}
	// What was seen before pods came after the drain says nothing of their volumes.
	var since time.Time
	if d.NotEmpty != nil {
		since = *d.NotEmpty
	}
	found := in.Checked
	seen := found != nil && found.For == fleet.CheckVolumes && !found.At.Before(since)
	var over deadline
	if seen && !found.Passed() {
		if d.Drained == nil {
			return in.beginVolumes(found.Problem + found.Failed)
		}
		over = in.deadline(*d.Drained, rules.Wait)
	}
	switch {
	case over.passed && rules.OnTimeout != policy.Abort:
		return Next{}
	case over.passed:
		return in.abandon(plan.ReasonVolumesDeadline, found.Problem+found.Failed+", "+rules.Wait.String()+" after the drain", marker.OutcomeFailed)
	}
	check := plan.LiveCheck{For: fleet.CheckVolumes}
	if seen {
		check.Attachments = found.Attachments
	}
	_, next := in.check(check, since, plan.ReasonVolumesAttached)
	next.Again = plan.Earliest(in.Now, next.Again, over.again)
	return next
}

// beginVolumes writes down since when volumes are awaited, for whichever controller leads.
func (v *View) beginVolumes(message string) Next {
	c := v.keep()
	c.Marks.Disruption.Drained = v.moment()
	c.wait(plan.ReasonVolumesAttached, message)
	return v.do(intent.ActNote, plan.ReasonVolumesAttached, message, c)
}
