package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// unwritable is over while nothing is written to the node, since the last write to it failed, or is under way.
func (v *View) unwritable() deadline {
	w := v.WriteTrouble
	if w == nil || w.InFlight {
		return deadline{over: w != nil}
	}
	return deadline{over: v.Now.Before(w.Until), again: w.Until}
}

// Unwritable is why nothing can be begun on a node for now that has to be written to it; a message says what would be.
func (v *View) Unwritable(message string) (Next, bool) {
	d := v.unwritable()
	if !d.over {
		return none(d.again), false
	}
	return v.unwritten(v.Phase(), message, d.again), true
}

// unwritten leaves a node alone to which something would be written if that didn't fail.
func (v *View) unwritten(phase intent.Phase, message string, again time.Time) Next {
	w := v.WriteTrouble
	lost := v.outOfReach()
	next := v.stay(plan.ReasonWriteFailing, plan.Message{}).as(phase)
	switch {
	case lost.over:
		next.Phase, next.Reason = intent.PhaseLost, plan.ReasonLost
		next.Message = plan.Messagef("%s; no write to the Node has succeeded since %s: it counts as Lost until one does, or it is deleted", w.Message, plan.Clock(w.Since))
	case w.InFlight:
		next.Message = plan.Messagef("%s; a write is under way; what waits: %s", w.Message, message)
	default:
		next.Message = plan.Messagef("%s; the next write is tried after %s; what waits: %s", w.Message, plan.Clock(w.Until), message).Until(w.Until)
	}
	next.Again = plan.Earliest(v.Now, again, lost.again)
	return next
}

// Mistrust refuses to take a staged node out of service whose writes had trouble: a slot that can't be used, nor given
// back, is one that the others miss.
func (v *View) Mistrust() plan.Refusal {
	w := v.WriteTrouble
	if w == nil {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonWriteFailing, Again: w.ClearAt, Silent: true,
		Message: plan.Messagef("%s; if no other write fails the node may be taken out of service after %s", w.Message, plan.Clock(w.ClearAt)).Until(w.ClearAt)}
}

// OutOfReach reports whether a node that is disrupted, or holds a slot, could not be written to for so long that it counts
// as Lost: nothing but a write lets go of it, and the others don't wait for that without end (L3). A cordon that timed out
// may be under way for as long as the node's resourceVersion stands, and so the slot is never freed without a write that
// succeeds; the limits leave it out like any Lost node, up to maxLost (S1).
func (v *View) OutOfReach() (bool, time.Time) {
	d := v.outOfReach()
	return d.over, d.again
}

func (v *View) outOfReach() deadline {
	w := v.WriteTrouble
	if w == nil || w.Since.IsZero() || !v.Disrupted() && !v.Slot {
		return deadline{}
	}
	end := w.Since.Add(v.Settings.Deadlines.Return)
	return deadline{over: !v.Now.Before(end), again: end}
}
