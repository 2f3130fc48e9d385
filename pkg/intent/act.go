package intent

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Act is one thing that the controller does to a node.
type Act string

const (
	// ActStabilize asks for nothing but fresh facts: for a new node, after a reset, or because the
	// attempt has no object any more.
	ActStabilize Act = "Stabilize"
	// ActPrepare begins an attempt.
	ActPrepare Act = "Prepare"
	// ActConfirm asks whether what was staged some time ago stands, and whether the repository answers.
	ActConfirm Act = "Confirm"
	// ActLook is a look at what would keep a drain from its end; it writes nothing to the node.
	ActLook Act = "Look"
	// ActCordon takes a slot and cordons, in this order; the cordon, disruption and reboot-from are one patch.
	ActCordon Act = "Cordon"
	// ActDrain is one eviction pass; it writes nothing to the node.
	ActDrain Act = "Drain"
	// ActCheck is one live look at what the node carries; it writes nothing to the node.
	ActCheck Act = "Check"
	// ActReboot asks a drained node to activate and reboot.
	ActReboot Act = "Reboot"
	// ActReturn uncordons a node that came back; the slot is held on.
	ActReturn Act = "Return"
	// ActRecordon cordons a node that became unwell during its soak again, under the same record.
	ActRecordon Act = "Recordon"
	// ActSoak lets the soak start again, uncordoning what ActRecordon cordoned.
	ActSoak Act = "Soak"
	// ActFinish ends an attempt after its soak.
	ActFinish Act = "Finish"
	// ActGiveBack undoes the cordon and asks for a reset, in one patch.
	ActGiveBack Act = "GiveBack"
	// ActSetAside undoes the cordon of a node that keeps what it has staged and waits with it.
	ActSetAside Act = "SetAside"
	// ActFence writes a new intent-id so that an older cordon patch must fail, then frees the slot.
	ActFence Act = "Fence"
	// ActLeave removes all our marks, and the cordon if it is ours.
	ActLeave Act = "Leave"
	// ActRetry forgets a failure, by the user's wish.
	ActRetry Act = "Retry"
	// ActReset asks to undo what the host has activated although its Node tells nothing of it, by the user's wish.
	ActReset Act = "Reset"
	// ActNote changes what people read, waiting-for, and notes what is asked of hooks and what a look has found.
	ActNote Act = "Note"
	// ActRelease frees the slot of a node that is gone, or that shows no disruption any more.
	ActRelease Act = "Release"
)

// Transition is one line of the table.
type Transition struct {
	Act  Act
	From []Phase
	// Issues is the new intent's action; empty if the intent stays.
	Issues marker.Action
	// To is the phase right after, before any agent's answer; empty if it stays.
	To Phase
}

var transitions = []Transition{
	{ActStabilize, []Phase{PhaseNew, PhaseIdle, PhasePreparing, PhasePrepared, PhaseResetting}, marker.ActionStabilize, PhaseIdle},
	{ActPrepare, []Phase{PhaseIdle}, marker.ActionPrepareUpdate, PhasePreparing},
	{ActConfirm, []Phase{PhasePrepared}, marker.ActionConfirmUpdate, PhasePreparing},
	{ActLook, []Phase{PhasePrepared}, "", ""},
	{ActCordon, []Phase{PhasePrepared}, "", PhaseDraining},
	{ActDrain, []Phase{PhaseDraining}, "", ""},
	{ActCheck, []Phase{PhaseDraining, PhaseReturning, PhaseVerifying}, "", ""},
	{ActReboot, []Phase{PhaseDraining}, marker.ActionRebootUpdate, PhaseRebooting},
	{ActReturn, []Phase{PhaseReturning}, marker.ActionStabilize, PhaseVerifying},
	{ActRecordon, []Phase{PhaseVerifying}, "", ""},
	{ActSoak, []Phase{PhaseVerifying}, "", ""},
	{ActFinish, []Phase{PhaseVerifying}, "", PhaseIdle},
	{ActGiveBack, []Phase{PhasePreparing, PhasePrepared, PhaseDraining, PhaseRebooting, PhaseReturning}, marker.ActionResetState, PhaseResetting},
	{ActSetAside, []Phase{PhaseDraining}, "", PhasePrepared},
	{ActFence, []Phase{PhaseIdle, PhasePreparing, PhasePrepared}, marker.ActionStabilize, PhaseIdle},
	// What is activated on the host must still be undone.
	{ActFence, []Phase{PhaseResetting}, marker.ActionResetState, PhaseResetting},
	{ActRetry, []Phase{PhaseNew, PhaseIdle, PhasePreparing, PhasePrepared, PhaseDraining, PhaseRebooting, PhaseReturning, PhaseVerifying, PhaseResetting}, "", ""},
	{ActReset, []Phase{PhaseIdle}, marker.ActionResetState, PhaseResetting},
	{ActNote, []Phase{PhaseIdle, PhasePreparing, PhasePrepared, PhaseDraining, PhaseRebooting, PhaseReturning, PhaseVerifying, PhaseResetting}, "", ""},
}

// Transitions returns the table.
func Transitions() []Transition { return slices.Clone(transitions) }

// Lookup returns act's line if it is allowed from p.
func Lookup(act Act, p Phase) (Transition, error) {
	known := false
	for _, t := range transitions {
		if t.Act != act {
			continue
		}
		if slices.Contains(t.From, p) {
			return t, nil
		}
		known = true
	}
	if known {
		return Transition{}, errors.Errorf("%s is not allowed in phase %s", act, p)
	}
	return Transition{}, errors.Errorf("%s is not an act on a node's marks", act)
}
