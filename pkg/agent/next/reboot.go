package next

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func reboot(v View, answer marker.State) Step {
	h, target := v.Host, v.Intent.Target
	if h.BootID != v.Intent.RebootFrom {
		// A reboot after the cordon counts as the reboot, whoever did it. What it says of the target depends on whether that
		// was activated, which the report remembers.
		switch {
		case h.Version == target && answer != marker.StateReady:
			return report(marker.StateReady, "")
		case h.Version != target && answer != marker.StateError && v.Report.ActivatedID != v.Intent.ID:
			return report(marker.StateError, "the host was rebooted before %s was activated", target)
		case h.Version != target && answer != marker.StateError && activatedID(v) == "":
			return report(marker.StateError, "the host came back with %s, which this operator did not ask for, instead of %s",
				h.Version, target).because(marker.ReasonAnotherUpdater)
		case h.Version != target && answer != marker.StateError:
			return report(marker.StateError, "the host came back with %s instead of %s: the update was rolled back", h.Version, target)
		}
		return keepFresh(v)
	}
	if answer == marker.StateError || answer == marker.StateReady {
		return Step{Kind: StepRest}
	}
	if answer == marker.StateNone {
		return beginReboot(v)
	}
	return continueReboot(v)
}

// beginReboot checks once more what would be activated, then passes the point of no return.
func beginReboot(v View) Step {
	h, target := v.Host, v.Intent.Target
	if h.Locked {
		return locked(v, marker.StateNone)
	}
	if !stands(h, target) || !staged(h, target) && !proven(v) {
		return report(marker.StateError, "%s is not staged on the host any more", target)
	}
	return report(marker.StateBusy, "")
}

// continueReboot goes on after busy stands: activate, then reboot. Until busy was accepted by a live
// look for this very process it touches nothing.
func continueReboot(v View) Step {
	h, a := v.Host, v.Asked
	if a.Command == CommandReboot && a.ID == v.Intent.ID {
		if v.Now.Sub(a.At) > intent.RebootPatience {
			return report(marker.StateError, "the host did not reboot within %s of being asked", intent.RebootPatience)
		}
		return wait(pollSlow)
	}
	if v.Affirmed != v.Intent.ID {
		if v.Now.Before(v.Intent.Until) {
			return busy(v, marker.StateBusy)
		}
		// Too late to begin, and this process can't know if its predecessor asked for the reboot.
		if v.Now.Sub(v.Started) > intent.RebootPatience {
			return report(marker.StateError, "the host did not reboot in time")
		}
		return wait(pollSlow)
	}
	if h.Locked {
		return locked(v, marker.StateBusy)
	}
	if done, died := ended(v, CommandActivate); done && h.State != HostReady {
		again := report(marker.StateBusy, "%s", problem(h)).because(marker.ReasonRepositoryUnavailable)
		switch {
		case died:
			return report(marker.StateError, "activating %s: %s", v.Intent.Target, vanished(v.Asked))
		case !h.Last.OfRepository || !v.Now.Add(lastTry).Before(v.Intent.Until):
			return report(marker.StateError, "activating %s: %s", v.Intent.Target, problem(h))
		case v.Now.Sub(a.At) < activateAgain && !again.reported(v):
			return again
		case v.Now.Sub(a.At) < activateAgain:
			return wait(a.At.Add(activateAgain).Sub(v.Now))
		}
	}
	if h.State != HostReady && h.State != HostStaged {
		return changed(v, "nothing is staged on the host any more")
	}
	if h.Staged != v.Intent.Target {
		return changed(v, "the host has %s staged instead of %s", orUnknown(h.Staged), v.Intent.Target)
	}
	if overwritten(h, v.Intent.Target) {
		return changed(v, "%s was prepared on the host instead of %s", orUnknown(h.Last.Started), v.Intent.Target).
			because(marker.ReasonAnotherUpdater)
	}
	if h.State == HostReady {
		if v.Report.ActivatedID != v.Intent.ID && v.Now.Sub(a.At) < tellPatience {
			return Step{Kind: StepFacts}
		}
		return command(CommandReboot)
	}
	if step, ok := settle(v, CommandActivate); ok && a.ID == v.Intent.ID {
		return step
	}
	return command(CommandActivate)
}

// changed reports that somebody changed the host after the point of no return. A process that hasn't
// asked its host for anything yet can't know if its predecessor asked for the reboot: no error then,
// until a reboot would have come.
func changed(v View, format string, args ...any) Step {
	if v.Asked.ID != v.Intent.ID && v.Now.Sub(v.Started) <= intent.RebootPatience {
		return wait(pollSlow)
	}
	return report(marker.StateError, format, args...)
}
