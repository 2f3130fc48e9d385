package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Input is all that the next step of a node depends on.
type Input struct {
	View
	// Recall is why the policy, as it is now, returns a node that is out of service and has not begun to reboot.
	Recall plan.Refusal
	// Closes is when the window that is open closes, where the policy then returns what has not begun to reboot; zero if
	// never.
	Closes time.Time
	// AgentsReady: an agent is Ready on some node, or for a node of plans, a runner. Where none is, the proxies or the
	// runner are away, and no node is to blame.
	AgentsReady bool
	// OthersOut: another node is out of service, and it may be there that a workload's pods are missing.
	OthersOut bool
}

// Want is what a node asks for that others may have taken.
type Want string

// The wants.
const (
	WantNothing Want = ""
	// WantStaging: the node could stage what it is offered.
	WantStaging Want = "staging"
	// WantDisruption: the node could be taken out of service.
	WantDisruption Want = "disruption"
)

// Next is the next step of one node, or why it gets none.
type Next struct {
	Phase   intent.Phase
	Reason  plan.Reason
	Message plan.Message
	// Step is nil if the node is left as it is.
	Step *plan.Step
	// Again is when the clock alone may change what is next; zero if never.
	Again time.Time
	// Want is what the node asks for, instead of a Reason: the planner goes on with Granted or Refused.
	Want Want
	// KeepsPlace: no other node is given the room that this one will need in a moment.
	KeepsPlace bool
}

// Of returns the next step of a node.
func Of(in *Input) Next {
	m := &in.Marks
	phase := in.Phase()
	switch {
	case phase == intent.PhaseUnreadable:
		return in.stay(plan.ReasonAnnotationUnreadable, plan.Messagef("annotation %s; correct or remove it and the node goes on", in.Problems[0]))
	case !in.Labelled():
		return leaving(in)
	case m.Retry:
		return retry(in)
	case m.Cycled(m.Cycle):
		return in.dismiss("an attempt for the request " + m.Cycle + " has ended already: ask with another id")
	case !in.Interface.Known() && !in.Disrupted():
		return first(in, fence, unsupported)
	case in.otherInterface():
		return leaving(in)
	}
	switch phase {
	case intent.PhaseNew:
		return in.do(intent.ActStabilize, plan.ReasonManaged, "the node is in the operator's care", in.stabilize())
	case intent.PhaseWaiting:
		return waiting(in)
	case intent.PhaseStaging:
		return staging(in)
	case intent.PhaseStaged:
		return staged(in)
	case intent.PhaseDraining:
		return draining(in)
	case intent.PhaseRebooting:
		return rebooting(in)
	case intent.PhaseReturning:
		return returning(in)
	case intent.PhaseVerifying:
		return verifying(in)
	case intent.PhaseResetting:
		return resetting(in)
	default:
		return in.stay(plan.ReasonAnnotationUnreadable, plan.Messagef("phase %s is none of a node's marks", phase))
	}
}

// rule looks at a node in one phase. It returns the node's next step; or none, with when that may change by the clock.
type rule func(*Input) Next

// first returns the step of the first rule that has one. The last rule of a phase always has.
func first(in *Input, rules ...rule) Next {
	var again time.Time
	for _, r := range rules {
		next := r(in)
		again = plan.Earliest(in.Now, again, next.Again)
		if next.Reason != "" || next.Want != WantNothing {
			next.Again = again
			return next
		}
	}
	return Next{Again: again}
}

// none is a rule's answer that something else decides, which the clock alone may change.
func none(again time.Time) Next { return Next{Again: again} }

// stay leaves the node as it is, and says why in the plan alone.
func (v *View) stay(r plan.Reason, m plan.Message) Next {
	return Next{Phase: v.Phase(), Reason: r, Message: m}
}

// do returns a step. An act that the table does not allow is a defect of this package; the node then waits, which is
// always safe. So does one that the step would write to while writes to it fail.
func (v *View) do(act intent.Act, r plan.Reason, message string, c *change) Next {
	phase := v.Phase()
	if act != intent.ActLeave && act != intent.ActRelease && act != intent.ActLabel {
		if _, err := intent.Lookup(act, phase); err != nil {
			return v.stay(r, plan.Text(err.Error()))
		}
	}
	next := Next{Phase: phase, Reason: r, Message: plan.Text(message),
		Step: &plan.Step{Node: v.Name, UID: v.UID, Act: act, Reason: r, Message: message}}
	if c != nil {
		next.Step.Change = &c.Change
		writable := v.unwritable()
		if writable.over {
			return v.unwritten(phase, message, writable.again)
		}
		next.Again = writable.again
	}
	return next
}

// freeing returns the step as one after which the node's slot is free, if it has one.
func (n Next) freeing(slot bool) Next {
	if n.Step != nil {
		n.Step.FreesSlot = slot
	}
	return n
}

// as returns the step with the phase that an administrator reads.
func (n Next) as(phase intent.Phase) Next {
	n.Phase = phase
	return n
}

// wait leaves the node as it is. On a node in progress the reason is written to the node itself, and again only when
// the reason changes, or what an exact message says.
func (v *View) wait(phase intent.Phase, r plan.Reason, m plan.Message) Next {
	next := Next{Phase: phase, Reason: r, Message: m}
	inProgress := phase != intent.PhaseWaiting && phase != intent.PhaseNew && phase != intent.PhaseUnreadable && v.Labelled()
	if !inProgress || m.Stands(v.Marks.Waiting, r) || v.lostSoon() {
		return next
	}
	if writable := v.unwritable(); writable.over {
		next.Again = writable.again
		return next
	}
	message := m.String()
	c := v.keep()
	c.Marks.Waiting = m.Waiting(r, v.Now)
	note := v.do(intent.ActNote, r, message, c)
	if note.Step != nil {
		note.Message = note.Message.Until(m.Ends())
		note.Phase = phase
	}
	return note
}

// Granted returns the next step of a node that gets what it wants.
func Granted(v *View, w Want) Next {
	if w == WantStaging {
		return v.stage()
	}
	return v.disrupt()
}

// Refused leaves a node as it is that doesn't get what it wants.
func Refused(v *View, w Want, r plan.Refusal) Next {
	if w == WantStaging {
		return v.refused(intent.PhaseWaiting, r.After(v.wants()))
	}
	return v.hold(r)
}

// hold leaves a staged node in service. A slot that it holds from an interrupted start is freed first.
func (v *View) hold(r plan.Refusal) Next {
	r = r.After(plan.Staged)
	if !r.Asks {
		if next := v.fence(); next.Reason != "" {
			next.Again = plan.Earliest(v.Now, r.Again, next.Again)
			return next
		}
	}
	return v.refused(intent.PhaseStaged, r)
}

func (v *View) refused(phase intent.Phase, r plan.Refusal) Next {
	next := v.stay(r.Reason, r.Message)
	if !r.Silent && !r.Asks {
		next = v.wait(phase, r.Reason, r.Message)
	}
	next.Again = plan.Earliest(v.Now, r.Again, next.Again)
	return next
}

// fence frees a slot whose node shows no disruption, after a write that makes any older cordon fail.
func fence(in *Input) Next { return in.fence() }

func (v *View) fence() Next {
	if !v.Slot || v.Disrupted() {
		return Next{}
	}
	const message = "the node holds a slot that it does not need: the slot is freed"
	phase := v.Phase()
	if v.freedByLook() {
		return v.releaseFenced()
	}
	act, c := intent.ActFence, v.stabilize()
	switch phase {
	case intent.PhaseNew:
		act = intent.ActStabilize
	case intent.PhaseResetting:
		// The host may still have something activated: the wish to undo it stays, under a new id.
		c = v.reset()
	default:
	}
	return v.do(act, plan.ReasonSlotUnused, message, c).freeing(true)
}

// freedByLook reports whether the slot of a node with trouble is freed after a live look, and without a write. A write
// that no pass waits for frees no slot, since the list may be another by then. It is as good where the node isn't
// Staged: every cordon is computed from a node that is, so none that is under way carries the current
// resourceVersion.
func (v *View) freedByLook() bool { return v.WriteTrouble != nil && v.Phase() != intent.PhaseStaged }

func (v *View) releaseFenced() Next {
	next := v.do(intent.ActRelease, plan.ReasonSlotUnused, "the node holds a slot that it does not need: the slot is freed", nil).freeing(true)
	next.Step.Before = plan.LookFenced
	return next
}

// retry fulfils the user's wish that a failure be forgotten, and that what is activated on the host be undone.
func retry(in *Input) Next {
	if in.Phase() == intent.PhaseWaiting && in.says(marker.StateError, marker.ReasonUnrequestedActivation) {
		c := in.reset()
		c.retry()
		return in.do(intent.ActReset, plan.ReasonRetryWanted, "the activated update is undone, as the user asked", c)
	}
	c := in.keep()
	c.retry()
	return in.do(intent.ActRetry, plan.ReasonRetryWanted, "the failure is forgotten, as the user asked", c)
}

func unsupported(in *Input) Next {
	return in.stay(plan.ReasonInterfaceUnsupported, plan.Messagef("labelled for interface %q, which is not known: label it %s=2.0.0, or plan",
		string(in.Interface), marker.KeyInterfaceVersion))
}

// waitLost leaves a Lost node as it is, and says what was not seen of it.
func (v *View) waitLost(what string) Next {
	if !v.Unschedulable {
		return v.wait(intent.PhaseLost, plan.ReasonLost,
			plan.Messagef("%s %s; it counts as Lost until it is healthy, deleted, or its label is removed", v.Name, what))
	}
	return v.wait(intent.PhaseLost, plan.ReasonLost,
		plan.Messagef("%s %s; it stays cordoned until it is healthy, deleted, or its label is removed", v.Name, what))
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

// nextWrite says why the last write to the node failed, and when the next is tried.
func (v *View) nextWrite(waits string) plan.Message {
	w := v.WriteTrouble
	if w.InFlight {
		return plan.Messagef("%s; a write is under way%s", w.Message, waits)
	}
	return plan.Messagef("%s; the next write is tried after %s%s", w.Message, plan.Clock(w.Until), waits).Until(w.Until)
}
