package intent

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Phase is where a node is on its way through an update. Phases are derived, never stored.
type Phase string

const (
	// PhaseNew: nothing has been asked of the node.
	PhaseNew Phase = "New"
	// PhaseUpToDate: the host is offered nothing newer. The planner finds it, and PhaseOf returns PhaseWaiting instead:
	// what an agent reported says nothing while it is not Ready.
	PhaseUpToDate Phase = "UpToDate"
	// PhaseWaiting: nothing is asked of the agent but fresh facts; something keeps an update from beginning.
	PhaseWaiting Phase = "Waiting"
	// PhaseStaging: the agent writes the inactive partition set, or confirms that it stands; workloads run on.
	PhaseStaging Phase = "Staging"
	// PhaseStaged: staged; waits for a slot.
	PhaseStaged Phase = "Staged"
	// PhaseDraining: cordoned; its pods are being evicted.
	PhaseDraining Phase = "Draining"
	// PhaseRebooting: the agent was asked to activate and reboot.
	PhaseRebooting Phase = "Rebooting"
	// PhaseReturning: the agent answered after the reboot; still cordoned.
	PhaseReturning Phase = "Returning"
	// PhaseVerifying: schedulable again, the slot is held for the soak.
	PhaseVerifying Phase = "Verifying"
	// PhaseResetting: the agent undoes what is activated.
	PhaseResetting Phase = "Resetting"
	// PhaseLost: past the deadline after the point of no return. It depends on the clock, so the planner finds it, and
	// PhaseOf never returns it.
	PhaseLost Phase = "Lost"
	// PhaseUnreadable: the marks can't be read. PhaseOf never returns it either.
	PhaseUnreadable Phase = "Unreadable"
)

// Phases is the closed list.
func Phases() []Phase {
	return []Phase{PhaseNew, PhaseUpToDate, PhaseWaiting, PhaseStaging, PhaseStaged, PhaseDraining, PhaseRebooting,
		PhaseReturning, PhaseVerifying, PhaseResetting, PhaseLost, PhaseUnreadable}
}

// PhaseOf derives the phase of a node whose marks could be read.
func PhaseOf(m marker.Marks) Phase {
	answer := m.Report.Answer(m.Intent.ID)
	switch m.Intent.Action {
	case marker.ActionPrepareUpdate, marker.ActionConfirmUpdate:
		switch {
		case m.Disruption != nil:
			return PhaseDraining
		case answer == marker.StateReady:
			return PhaseStaged
		}
		return PhaseStaging
	case marker.ActionRebootUpdate:
		if answer == marker.StateReady || answer == marker.StateError {
			return PhaseReturning
		}
		return PhaseRebooting
	case marker.ActionResetState:
		if m.Disruption != nil {
			return PhaseVerifying
		}
		return PhaseResetting
	case marker.ActionStabilize:
		if m.Disruption != nil {
			return PhaseVerifying
		}
		return PhaseWaiting
	}
	return PhaseNew
}

// BeganAt returns when a phase began as the node's marks say; zero if they don't.
func BeganAt(m marker.Marks, p Phase) time.Time {
	switch d := m.Disruption; p {
	case PhaseStaging, PhaseRebooting, PhaseResetting:
		return m.Intent.Time
	case PhaseDraining:
		if d != nil {
			return d.Since
		}
	case PhaseVerifying:
		if d != nil && d.Returned != nil {
			return *d.Returned
		}
	default:
	}
	return time.Time{}
}

// PointOfNoReturn reports whether the agent may have touched the host for a reboot: from there on only a new boot ID,
// or the agent's own late error, decides.
func PointOfNoReturn(m marker.Marks) bool {
	return m.Intent.Action == marker.ActionRebootUpdate && m.Report.Answer(m.Intent.ID) != marker.StateNone
}
