package next

import "github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"

func prepare(v View, answer marker.State) Step {
	h, target := v.Host, v.Intent.Target
	if h.Version == target {
		return arrived(v, answer)
	}
	if answer == marker.StateError {
		return keepFresh(v)
	}
	if h.Locked {
		switch {
		case answer == marker.StateReady:
			return keepFresh(v)
		case v.Asked.Command == CommandPrepare && v.Asked.ID == v.Intent.ID:
			// It is this agent's own command, so only the controller's deadline ends it: an error now would throw away what a
			// slow host is about to finish.
			return wait(pace(v))
		}
		return locked(v, answer)
	}
	if answer == marker.StateReady {
		return keepPrepared(v)
	}
	if written(h, target) {
		return report(marker.StateReady, "")
	}
	if h.State == HostReady {
		if done, _ := ended(v, CommandDeactivate); done {
			return report(marker.StateError, "deactivating %s: %s", orUnknown(h.Staged), problem(h))
		}
		return ask(v, answer, CommandDeactivate)
	}
	if done, died := ended(v, CommandPrepare); done {
		return unproven(v, died)
	}
	if !chosen(h, target) {
		return refresh(v)
	}
	return ask(v, answer, CommandPrepare)
}

// arrived returns the step for an intent whose target runs already.
func arrived(v View, answer marker.State) Step {
	if answer != marker.StateReady {
		return report(marker.StateReady, "already running %s", v.Intent.Target)
	}
	return keepFresh(v)
}

// confirm returns the step that checks, before the node is taken out of service, that what was prepared is still staged
// and that the repository answers, which an activation loads too. Nothing on the host is changed.
func confirm(v View, answer marker.State) Step {
	h, target := v.Host, v.Intent.Target
	asked := v.Asked.Command == CommandRefresh && v.Asked.ID == v.Intent.ID
	switch {
	case h.Version == target:
		return arrived(v, answer)
	case answer == marker.StateError || h.Locked && answer == marker.StateReady:
		return keepFresh(v)
	case h.Locked:
		return locked(v, answer)
	case answer == marker.StateReady:
		return keepPrepared(v)
	case !isStaged(v):
		return report(marker.StateError, "%s", stagedIsGone)
	case asked && h.Last.Timestamp != v.Asked.Before && chosen(h, target):
		return report(marker.StateReady, "")
	case asked && h.Last.Timestamp != v.Asked.Before && h.Last.OfRepository && v.Now.Add(lastTry).Before(v.Intent.Until):
		return confirmAgainLater(v)
	}
	return refresh(v)
}

// confirmAgainLater returns the report of a repository that did not answer, then the wait for the next try. What is
// staged stays, and the node stays in service.
func confirmAgainLater(v View) Step {
	s := report(marker.StateBusy, "%s", refreshing+problem(v.Host)).because(marker.ReasonRepositoryUnavailable)
	switch {
	case !s.reported(v):
		return s
	case v.Now.Sub(v.Asked.At) < refreshAgain:
		return wait(v.Asked.At.Add(refreshAgain).Sub(v.Now))
	}
	return command(CommandRefresh)
}

// refresh returns the refresh that shows whether the host still offers the target, then the error if it doesn't.
func refresh(v View) Step {
	h := v.Host
	if v.Asked.Command != CommandRefresh || v.Asked.ID != v.Intent.ID {
		return command(CommandRefresh)
	}
	if step, ok := settle(v, CommandRefresh); ok {
		return step
	}
	_, died := ended(v, CommandRefresh)
	switch {
	case died:
		return report(marker.StateError, "%s", refreshing+noRecord(v.Asked))
	case h.Last.Command == CommandRefresh && !h.Last.Success:
		return report(marker.StateError, "%s", refreshing+problem(h))
	case h.SawNothing:
		return report(marker.StateError, "%s", refreshing+sawNothing)
	}
	return report(marker.StateError, "the host does not offer %s any more", v.Intent.Target)
}

// chosen reports whether the host's last refresh chose target.
func chosen(h Host, target string) bool {
	return h.State != HostUninitialized && h.ChosenKnown && h.Chosen == target
}

// keepPrepared returns the step after `ready`: an error once what was prepared is gone.
func keepPrepared(v View) Step {
	if v.Report.BootID != v.Host.BootID || !recorded(v.Host, v.Intent.Target) {
		return report(marker.StateError, "%s", stagedIsGone)
	}
	return keepFresh(v)
}

const stagedIsGone = "the staged update is gone: the host was rebooted, or another program changed it"

// isStaged reports whether the target is staged: by the host's record, and by one of two proofs that it was written.
func isStaged(v View) bool {
	h, target := v.Host, v.Intent.Target
	return recorded(h, target) && (written(h, target) || proven(v))
}

// written reports whether the host's last command proves that target was written in this boot.
func written(h Host, target string) bool {
	return h.State == HostStaged && h.Last.Command == CommandPrepare && h.Last.Success &&
		h.Last.Started == target && h.Staged == target
}

// recorded reports whether the host's record says that target is staged.
func recorded(h Host, target string) bool {
	return h.State == HostStaged && h.Staged == target && !overwritten(h, target)
}

// proven reports whether the report before the intent's answer proves that the target was written: it answers the
// prepare, since only after that the intent is issued. A confirmation that is busy was begun on such a report.
func proven(v View) bool {
	confirms := v.Intent.Action == marker.ActionConfirmUpdate && v.Report.Answer(v.Intent.ID) == marker.StateBusy
	return v.Report.BootID == v.Host.BootID && (v.Report.State == marker.StateReady || confirms)
}

// overwritten reports whether the last command was a prepare of something else, or one that failed. The host's record
// is no proof then: it names the host's choice even where another version was written (docs/host-api.md: F9).
func overwritten(h Host, target string) bool {
	return h.Last.Command == CommandPrepare && (!h.Last.Success || h.Last.Started != target)
}

// unproven returns the error of a prepare that ended without proof of the target.
func unproven(v View, died bool) Step {
	h, target := v.Host, v.Intent.Target
	switch {
	case died:
		return report(marker.StateError, "staging %s: %s", target, noRecord(v.Asked))
	case !h.Last.Success:
		return report(marker.StateError, "staging %s: %s", target, problem(h))
	case h.Last.Started == "":
		return report(marker.StateError, "staging %s: the host wrote nothing", target)
	}
	return report(marker.StateError, "staging %s: the host wrote %s, its choice has changed", target, h.Last.Started)
}
