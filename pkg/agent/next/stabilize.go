package next

import "github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"

// keepFresh returns the refresh of what is available when it is due, a rest otherwise.
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
		// An intent that isn't answered doesn't wait for the next refresh: the lock ends before that.
		if step := keepFresh(v); step.Kind != StepRest || answer != marker.StateNone && answer != marker.StateBusy {
			return step
		}
		return wait(pollLocked)
	}
	if s, found := hindrance(v); found {
		return once(v, s)
	}
	// A host that hasn't been asked what is available yet has no facts to answer with.
	if v.RefreshTried.IsZero() {
		return keepFresh(v)
	}
	if step, ok := settle(v, CommandRefresh); ok {
		return step
	}
	if step, ok := lock(v, answer); ok {
		return step
	}
	if why := refreshProblem(v); why != "" {
		return once(v, report(marker.StateError, "%s", why))
	}
	if answer != marker.StateReady {
		return report(marker.StateReady, "").because(lockStood(v, answer))
	}
	return keepFresh(v)
}

// once returns s unless it is reported already; then the agent keeps its facts fresh.
func once(v View, s Step) Step {
	if s.reported(v) {
		return keepFresh(v)
	}
	return s
}

// refreshProblem returns why the host doesn't know what is available; empty if it does. Such a node would otherwise
// count as up to date. While an offer is known it returns none, since an attempt begins with a refresh.
func refreshProblem(v View) string {
	a, last := v.Asked, v.Host.Last
	switch {
	case v.Report.Available != "":
	case last.Command == CommandRefresh && !last.Success:
		return refreshing + problem(v.Host)
	case a.Command == CommandRefresh && last.Timestamp == a.Before && a.Unchanged >= unchangedLooks:
		return refreshing + noRecord(a)
	case v.Host.State == HostUninitialized:
		return refreshing + "the host has not looked since it booted"
	case v.Host.SawNothing:
		return refreshing + sawNothing
	}
	return ""
}

// refreshing begins the message of a refresh that failed, and sawNothing ends that of one which found no release.
const (
	refreshing = "refreshing what is available: "
	sawNothing = "the refresh succeeded but listed no release, not even the host's own: the host may not have looked, " +
		"or its repository has no release for its variant"
)

// hindrance returns the error of a host that this operator can't update as it is, and whether it is one.
func hindrance(v View) (Step, bool) {
	var s Step
	switch h := v.Host; {
	case v.Unsupported != "":
		s = report(marker.StateError, "in-place updates are not supported by this host: %s", v.Unsupported).
			because(marker.ReasonInterfaceUnsupported)
	case h.State == HostReady:
		s = report(marker.StateError, "the host has activated %s, and no update on its Node asked for it",
			orUnknown(h.Staged)).because(marker.ReasonUnrequestedActivation)
	case h.ForeignBoot:
		s = report(marker.StateError, "the host will boot another partition set, activated outside the update API").
			because(marker.ReasonAnotherUpdater)
	default:
		return s, false
	}
	return s, true
}
