package intent

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Act is one thing that the controller does to a node.
type Act string

const (
	// ActStabilize asks for nothing but fresh facts: of a new node, after a reset, or when there is nothing left to update
	// to.
	ActStabilize Act = "Stabilize"
	// ActStage begins an attempt.
	ActStage Act = "Stage"
	// ActConfirm asks whether what was staged some time ago is still there, and whether the repository answers.
	ActConfirm Act = "Confirm"
	// ActLook checks what would block a drain; it writes nothing to the node.
	ActLook Act = "Look"
	// ActCordon takes a slot, then cordons; the cordon, disruption and reboot-from are one patch.
	ActCordon Act = "Cordon"
	// ActDrain is one eviction pass; it writes nothing to the node.
	ActDrain Act = "Drain"
	// ActCheck is one live look at the pods and volumes on the node; it writes nothing to the node.
	ActCheck Act = "Check"
	// ActReboot asks a drained node to activate and reboot.
	ActReboot Act = "Reboot"
	// ActReturn uncordons a node that came back from its reboot; it keeps its slot.
	ActReturn Act = "Return"
	// ActRecordon cordons a node again that became unhealthy during its soak; it keeps its slot and its disruption.
	ActRecordon Act = "Recordon"
	// ActSoak starts the soak again, and undoes ActRecordon.
	ActSoak Act = "Soak"
	// ActFinish ends an attempt after its soak.
	ActFinish Act = "Finish"
	// ActAbandon abandons the attempt: it uncordons and asks for a reset, in one patch.
	ActAbandon Act = "Abandon"
	// ActUncordon uncordons a node that keeps what it has staged, and waits with it.
	ActUncordon Act = "Uncordon"
	// ActFence writes a new intent-id, so that an older cordon patch must fail, then frees the slot.
	ActFence Act = "Fence"
	// ActLeave removes all of the operator's marks, and its cordon.
	ActLeave Act = "Leave"
	// ActLock asks for another value of the host's version-lock, and notes what stood there before.
	ActLock Act = "Lock"
	// ActUnlock ends the record of a lock that was taken back.
	ActUnlock Act = "Unlock"
	// ActUntaint takes the taint of new nodes off.
	ActUntaint Act = "Untaint"
	// ActRetry forgets a failure, because a user asked for a retry.
	ActRetry Act = "Retry"
	// ActReset asks to deactivate an update that no intent asked for, because a user asked for a retry.
	ActReset Act = "Reset"
	// ActDismiss removes a user's request for a cycle that can't be, or was, fulfilled.
	ActDismiss Act = "Dismiss"
	// ActNote writes what the node waits for, what is asked of hooks, and what a look has found.
	ActNote Act = "Note"
	// ActRelease frees the slot of a node that is gone, or that is not disrupted any more.
	ActRelease Act = "Release"
	// ActLabel puts a node that was never labelled into the operator's care, because the policy says so.
	ActLabel Act = "Label"
)

// Transition is one line of the table of acts.
type Transition struct {
	Act  Act
	From []Phase
	// Issues is the new intent's action; empty if the intent stays.
	Issues marker.Action
	// To is the phase right after, before any agent's answer; empty if it stays.
	To Phase
}

// begun are the phases of a node that was asked for something.
var begun = []Phase{PhaseWaiting, PhaseStaging, PhaseStaged, PhaseDraining, PhaseRebooting, PhaseReturning,
	PhaseVerifying, PhaseResetting}

var transitions = []Transition{
	{ActStabilize, []Phase{PhaseNew, PhaseWaiting, PhaseStaging, PhaseStaged, PhaseResetting},
		marker.ActionStabilize, PhaseWaiting},
	{ActStage, []Phase{PhaseWaiting}, marker.ActionPrepareUpdate, PhaseStaging},
	{ActConfirm, []Phase{PhaseStaged}, marker.ActionConfirmUpdate, PhaseStaging},
	{ActLook, []Phase{PhaseStaged}, "", ""},
	{ActCordon, []Phase{PhaseStaged}, "", PhaseDraining},
	{ActDrain, []Phase{PhaseDraining}, "", ""},
	{ActCheck, []Phase{PhaseDraining, PhaseReturning, PhaseVerifying}, "", ""},
	{ActReboot, []Phase{PhaseDraining}, marker.ActionRebootUpdate, PhaseRebooting},
	{ActReturn, []Phase{PhaseReturning}, marker.ActionStabilize, PhaseVerifying},
	{ActRecordon, []Phase{PhaseVerifying}, "", ""},
	{ActSoak, []Phase{PhaseVerifying}, "", ""},
	{ActFinish, []Phase{PhaseVerifying}, "", PhaseWaiting},
	{ActAbandon, []Phase{PhaseStaging, PhaseStaged, PhaseDraining, PhaseRebooting, PhaseReturning},
		marker.ActionResetState, PhaseResetting},
	{ActUncordon, []Phase{PhaseDraining}, "", PhaseStaged},
	{ActFence, []Phase{PhaseWaiting, PhaseStaging, PhaseStaged}, marker.ActionStabilize, PhaseWaiting},
	// What is activated on the host must still be undone.
	{ActFence, []Phase{PhaseResetting}, marker.ActionResetState, PhaseResetting},
	{ActLock, []Phase{PhaseWaiting}, marker.ActionStabilize, PhaseWaiting},
	{ActUnlock, []Phase{PhaseWaiting}, "", PhaseWaiting},
	{ActUntaint, append([]Phase{PhaseNew}, begun...), "", ""},
	{ActRetry, append([]Phase{PhaseNew}, begun...), "", ""},
	{ActDismiss, append([]Phase{PhaseNew}, begun...), "", ""},
	{ActReset, []Phase{PhaseWaiting}, marker.ActionResetState, PhaseResetting},
	{ActNote, begun, "", ""},
}

// Transitions returns the table.
func Transitions() []Transition { return slices.Clone(transitions) }

// Lookup returns act's line for phase p, an error if act is not allowed there.
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
