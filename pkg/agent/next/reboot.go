package next

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func reboot(v View, answer marker.State) Step {
	switch {
	case v.Host.BootID != v.Intent.RebootFrom:
		return rebooted(v, answer)
	case answer == marker.StateNone:
		return beginReboot(v)
	case answer == marker.StateBusy:
		return continueReboot(v)
	}
	return Step{Kind: StepRest}
}

// rebooted returns the answer after a reboot: any after the cordon counts. What it says of the target depends on
// whether that was activated, which the report remembers.
func rebooted(v View, answer marker.State) Step {
	version, target := v.Host.Version, v.Intent.Target
	switch {
	case version == target && answer != marker.StateReady:
		return report(marker.StateReady, "")
	case version == target || answer == marker.StateError:
		return keepFresh(v)
	case v.Report.BootID == v.Intent.RebootFrom && v.Report.Current == target:
		return report(marker.StateError, "the host, which ran %s and was to reboot without an update, came back with %s", target, version).
			because(marker.ReasonAnotherUpdater)
	case v.Report.ActivatedID != v.Intent.ID:
		return report(marker.StateError, "the host was rebooted before %s was activated", target)
	case activatedID(v) == "":
		return report(marker.StateError, "the host came back with %s, which this operator did not ask for, instead of %s",
			version, target).because(marker.ReasonAnotherUpdater)
	}
	return report(marker.StateError, "the host came back with %s instead of %s: the update was rolled back",
		version, target)
}

// beginReboot returns `busy`, the point of no return, if what would be activated is still the target, or if the target
// runs already and nothing else is activated.
func beginReboot(v View) Step {
	h, target := v.Host, v.Intent.Target
	if h.Locked {
		return locked(v, marker.StateNone)
	}
	if v.Host.Version == target {
		if s, found := bootsOther(v); found {
			return s
		}
		return report(marker.StateBusy, "")
	}
	if !isStaged(v) {
		return report(marker.StateError, "%s is not staged on the host any more", target)
	}
	return report(marker.StateBusy, "")
}

// continueReboot returns what follows `busy`: activate, then reboot; the reboot alone if the target runs already. The
// host isn't touched before a `busy` of this very process was accepted.
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
		// It is too late to begin, and the process before this one may have asked for the reboot.
		if v.Now.Sub(v.Started) > intent.RebootPatience {
			return report(marker.StateError, "the host did not reboot in time")
		}
		return wait(pollSlow)
	}
	if h.Locked {
		return locked(v, marker.StateBusy)
	}
	if h.Version == v.Intent.Target {
		if s, found := bootsOther(v); found {
			return changed(v, "%s", s.Message).because(s.Reason)
		}
		return command(CommandReboot)
	}
	if done, died := ended(v, CommandActivate); done && h.State != HostReady {
		again := report(marker.StateBusy, "%s", problem(h)).because(marker.ReasonRepositoryUnavailable)
		switch {
		case died:
			return report(marker.StateError, "activating %s: %s", v.Intent.Target, noRecord(v.Asked))
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
		return changed(v, "%s was prepared on the host instead of %s",
			orUnknown(h.Last.Started), v.Intent.Target).because(marker.ReasonAnotherUpdater)
	}
	if h.State == HostReady {
		if v.Report.ActivatedID != v.Intent.ID && v.Now.Sub(a.At) < reportPatience {
			return Step{Kind: StepFacts}
		}
		return command(CommandReboot)
	}
	if step, ok := settle(v, CommandActivate); ok && a.ID == v.Intent.ID {
		return step
	}
	return command(CommandActivate)
}

// bootsOther returns the error of a host that is to reboot into the version that it runs, if it would boot another, or
// doesn't say what it would boot, and whether it is so.
func bootsOther(v View) (Step, bool) {
	if v.Host.State == HostUninitialized {
		return report(marker.StateError, "the host does not say what it would boot: it has not looked since it booted"), true
	}
	return hindrance(v)
}

// changed returns the error of a host that something else changed after the point of no return. A process that hasn't
// asked its host for anything yet waits first: the process before it may have asked for the reboot.
func changed(v View, format string, args ...any) Step {
	if v.Asked.ID != v.Intent.ID && v.Now.Sub(v.Started) <= intent.RebootPatience {
		return wait(pollSlow)
	}
	return report(marker.StateError, format, args...)
}
