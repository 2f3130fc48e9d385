package next

import (
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
	if s, found := hindrance(v); found {
		return once(v, s)
	}
	// A host that hasn't been asked what is available has no facts worth an answer yet.
	if v.RefreshTried.IsZero() {
		return keepFresh(v)
	}
	if step, ok := settle(v, CommandRefresh); ok {
		return step
	}
	if blind := unrefreshed(v); blind != "" {
		return once(v, report(marker.StateError, "%s", blind))
	}
	if answer != marker.StateReady {
		return report(marker.StateReady, "")
	}
	return keepFresh(v)
}

// once returns s unless that is reported already; then the agent goes on keeping its facts fresh.
func once(v View, s Step) Step {
	if s.reported(v) {
		return keepFresh(v)
	}
	return s
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

// hindrance returns the error of a host that can't be updated by this operator as it is, if it is one.
func hindrance(v View) (Step, bool) {
	switch h := v.Host; {
	case v.Unsupported != "":
		return report(marker.StateError, "in-place updates are not supported by this host: %s", v.Unsupported).because(marker.ReasonInterfaceUnsupported), true
	case h.State == HostReady:
		return report(marker.StateError, "the host has activated %s, and its Node tells of no update that asked for it", orUnknown(h.Staged)).
			because(marker.ReasonUnrequestedActivation), true
	case h.ForeignBoot:
		return report(marker.StateError, "the host will boot another partition set, activated outside the update API").
			because(marker.ReasonAnotherUpdater), true
	}
	return Step{}, false
}
