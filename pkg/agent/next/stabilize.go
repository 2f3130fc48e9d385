package next

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// keepFresh refreshes what is available when it is due, and rests else.
func keepFresh(v View) Step {
	if step, ok := settle(v, CommandRefresh); ok {
		return step
	}
	due := v.RefreshTried.IsZero() || v.Now.Sub(v.RefreshTried) >= v.RefreshEvery
	if !due {
		return Step{Kind: StepRest, After: v.RefreshTried.Add(v.RefreshEvery).Sub(v.Now)}
	}
	if v.Host.Locked {
		return wait(pollLocked)
	}
	return command(CommandRefresh)
}

func stabilize(v View, answer marker.State) Step {
	if v.Host.Locked {
		if step := locked(v, answer); step.Kind == StepReport {
			return step
		}
		// An intent without an answer isn't left to the next refresh: the lock ends before that.
		if step := keepFresh(v); step.Kind != StepRest || answer != marker.StateNone {
			return step
		}
		return wait(pollLocked)
	}
	if v.Unsupported != "" {
		if answer != marker.StateError {
			return report(marker.StateError, "%s%s", intent.Unsupported, v.Unsupported)
		}
		return keepFresh(v)
	}
	if foreign := foreignActivation(v.Host); foreign != "" {
		if answer != marker.StateError || !told(v, foreign) {
			return report(marker.StateError, "%s", foreign)
		}
		return keepFresh(v)
	}
	// A host that hasn't been asked what is available has no facts worth an answer yet.
	if v.RefreshTried.IsZero() {
		return keepFresh(v)
	}
	if step, ok := settle(v, CommandRefresh); ok {
		return step
	}
	if blind := unrefreshed(v); blind != "" {
		if answer != marker.StateError || !told(v, blind) {
			return report(marker.StateError, "%s", blind)
		}
		return keepFresh(v)
	}
	if answer != marker.StateReady {
		return report(marker.StateReady, "")
	}
	return keepFresh(v)
}

// unrefreshed says why a host doesn't know what is available; empty if it does. Who isn't told takes the
// node for up to date. An offer that is known stands: its attempt refreshes once more, and tells.
func unrefreshed(v View) string {
	a, last := v.Asked, v.Host.Last
	switch {
	case v.Report.Available != "":
	case last.Command == CommandRefresh && !last.Success:
		return refreshing + problem(v.Host)
	case a.Command == CommandRefresh && last.Timestamp == a.Before && a.Unchanged >= unchangedLooks:
		return refreshing + vanished(a)
	case v.Host.State == HostUninitialized:
		return refreshing + "the host has not looked since it booted"
	case v.Host.SawNothing:
		return refreshing + sawNothing
	}
	return ""
}

// refreshing begins the message about a refresh that came to nothing, and sawNothing ends one.
const (
	refreshing = "refreshing what is available: "
	sawNothing = "the host calls it done and names no release, not even its own: it may not have looked, or its repository holds nothing for its variant"
)

// foreignActivation says who else is about to change the version of this host; empty if nobody is.
func foreignActivation(h Host) string {
	switch {
	case h.State == HostReady:
		return intent.HasActivated + orUnknown(h.Staged) + ", and its Node tells of no update that asked for it"
	case h.ForeignBoot:
		return intent.AnotherUpdater + "the host will boot another partition set, activated outside the update API"
	}
	return ""
}

// told reports whether the report that stands has the message, as it is written.
func told(v View, message string) bool {
	return v.Report.Message == marker.Clip(message, marker.MaxMessage)
}
