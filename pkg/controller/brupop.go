package controller

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// brupopStates are the states of Brupop, the Rust operator (its BottlerocketShadow's status.current_state), by which
// its users' dashboards count hosts.
var brupopStates = []string{brupopIdle, brupopStaged, brupopRebooted, brupopMonitoring, brupopError}

const (
	brupopIdle       = "Idle"
	brupopStaged     = "StagedAndPerformedUpdate"
	brupopRebooted   = "RebootedIntoUpdate"
	brupopMonitoring = "MonitoringUpdate"
	brupopError      = "ErrorReset"
)

// brupopState returns the state in which Brupop would call a node. docs/migration.md has the table.
func brupopState(d *plan.Decision) string {
	switch d.Phase {
	case intent.PhaseStaging, intent.PhaseStaged:
		return brupopStaged
	case intent.PhaseDraining, intent.PhaseRebooting, intent.PhaseReturning, intent.PhaseLost:
		return brupopRebooted
	case intent.PhaseVerifying:
		return brupopMonitoring
	case intent.PhaseResetting:
		return brupopError
	case intent.PhaseWaiting:
		if d.Reason == plan.ReasonBackingOff {
			return brupopError
		}
	case intent.PhaseNew, intent.PhaseUpToDate, intent.PhaseUnreadable:
	}
	return brupopIdle
}
