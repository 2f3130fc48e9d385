package planner

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// unwritable reports whether nothing is written to a node for now, since the last write to it failed, or is under way.
func (p *planner) unwritable(n *fleet.Node) bool {
	w := n.WriteTrouble
	if w == nil || w.Asking {
		return w != nil
	}
	p.wakeAt(w.Until)
	return p.Now.Before(w.Until)
}

// unwritten leaves a node alone to which something would be written if that didn't fail.
func (p *planner) unwritten(n *fleet.Node, phase intent.Phase, message string) {
	w := n.WriteTrouble
	switch {
	case p.outOfReach(n):
		p.stand(n, intent.PhaseLost, "", plan.ReasonLost, plan.Say("{s}; no write to it has succeeded since {t}: it counts as Lost until one does, or it is deleted").
			With(w.Message).At(w.Since))
	case w.Asking:
		p.stand(n, phase, "", plan.ReasonWriteFailing, plan.Say("{s}; it is being written to again; what waits: {s2}").With(w.Message, message))
	default:
		p.stand(n, phase, "", plan.ReasonWriteFailing, plan.Say("{s}; tried again after {t}; what waits: {s2}").With(w.Message, message).At(w.Until).Over(w.Until))
	}
}

// mistrusted lets a staged node wait whose writes had trouble: a slot that can't be used, nor given back, is one that the
// others miss. What it holds from an interrupted start is given back first.
func (p *planner) mistrusted(n *fleet.Node) bool {
	w := n.WriteTrouble
	if w == nil {
		return false
	}
	if !p.fence(n, intent.PhasePrepared) {
		p.wakeAt(w.Calm)
		p.stand(n, intent.PhasePrepared, "", plan.ReasonWriteFailing, plan.Say("staged; {s}; if no other write fails it may be taken out of service after {t}").
			With(w.Message).At(w.Calm).Over(w.Calm))
	}
	return true
}

// fencedAlready frees the slot of a node with trouble after a live look, and no write. A write that no pass waits for frees
// no slot, since the list may be another by then. It is as good where the node isn't Prepared: every cordon is computed
// from a node that is, so none that is under way carries the resourceVersion that stands now.
func (p *planner) fencedAlready(n *fleet.Node, phase intent.Phase) bool {
	if n.WriteTrouble == nil || phase == intent.PhasePrepared {
		return false
	}
	p.step(n, phase, intent.ActRelease, plan.ReasonSlotOrphaned, "the node holds a slot that it does not need; it is freed", nil).FreesSlot = true
	return true
}

// outOfReach reports whether a node that is in our hands, or holds a slot, could not be written to for so long that it
// counts as Lost: nothing but a write lets go of it, and the others don't wait for that without end (L3). A cordon that
// timed out may be under way for as long as the node's resourceVersion stands, and so the slot is never freed without a
// write that succeeds; its place is lent on as that of any Lost node, to as many as maxLost allows (S1).
func (p *planner) outOfReach(n *fleet.Node) bool {
	w := n.WriteTrouble
	if w == nil || w.Since.IsZero() || !n.Disrupted() && !p.slot(n) {
		return false
	}
	end := w.Since.Add(p.set.Deadlines.Return)
	p.wakeAt(end)
	return !p.Now.Before(end)
}

// stuckStaging reports whether an attempt to stage is over that can't be ended: the others don't wait for its place.
func (p *planner) stuckStaging(n *fleet.Node) bool {
	w := n.WriteTrouble
	return w != nil && !w.Since.IsZero() && !p.Now.Before(n.Marks.Intent.Time.Add(p.within(&n.Marks)))
}
