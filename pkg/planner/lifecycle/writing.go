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

// Unwritable refuses to ask a node for anything while the last write to it failed, or is under way.
func (v *View) Unwritable() plan.Refusal {
	d := v.unwritable()
	if !d.over {
		return plan.Refusal{Again: d.again}
	}
	return plan.Refusal{Reason: plan.ReasonWriteFailing, Again: d.again, Silent: true, Message: v.nextWrite("")}
}

// nextWrite says why the last write to the node failed, and when the next is tried.
func (v *View) nextWrite(waits string) plan.Message {
	w := v.WriteTrouble
	if w.InFlight {
		return plan.Messagef("%s; a write is under way%s", w.Message, waits)
	}
	return plan.Messagef("%s; the next write is tried after %s%s", w.Message, plan.Clock(w.Until), waits).Until(w.Until)
}

// unwritten leaves a node alone to which something would be written if that didn't fail.
func (v *View) unwritten(phase intent.Phase, message string, again time.Time) Next {
	next := v.stay(plan.ReasonWriteFailing, v.nextWrite("; what waits: "+message)).as(phase)
	lost := v.outOfReach()
	if w := v.WriteTrouble; lost.over {
		next.Phase, next.Reason = intent.PhaseLost, plan.ReasonLost
		next.Message = plan.Messagef("%s; no write to the Node has succeeded since %s: it counts as Lost until one does, or it is deleted", w.Message, plan.Clock(w.Since))
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
