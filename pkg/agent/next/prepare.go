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
			// It is this agent's own command, so only the controller's deadline ends the patience: an
			// error now would throw away what a slow host is about to finish.
			return wait(pace(v))
		}
		return locked(v, answer)
	}
	if answer == marker.StateReady {
		return keep(v)
	}
	if staged(h, target) {
		return report(marker.StateReady, "")
	}
	if h.State == HostReady {
		if done, _ := ended(v, CommandDeactivate); done {
			return report(marker.StateError, "deactivating %s: %s", orUnknown(h.Staged), problem(h))
		}
		return ask(v, answer, CommandDeactivate)
	}
	if done, died := ended(v, CommandPrepare); done {
		return prepared(v, died)
	}
	if !chosen(h, target) {
		return refresh(v)
	}
	return ask(v, answer, CommandPrepare)
}

// arrived is the end of an intent whose target runs already.
func arrived(v View, answer marker.State) Step {
	if answer != marker.StateReady {
		return report(marker.StateReady, "already running %s", v.Intent.Target)
	}
	return keepFresh(v)
}

// confirm looks once more, before the node is taken out of service for it, whether what was prepared stands and the
// repository answers: an activation loads that too. Nothing on the host is changed.
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
		return keep(v)
	case !stands(h, target) || !staged(h, target) && !proven(v):
		return report(marker.StateError, "%s", preparedIsGone)
	case asked && h.Last.Timestamp != v.Asked.Before && chosen(h, target):
		return report(marker.StateReady, "")
	case asked && h.Last.Timestamp != v.Asked.Before && h.Last.OfRepository && v.Now.Add(lastTry).Before(v.Intent.Until):
		return confirmAgainLater(v)
	}
	return refresh(v)
}

// confirmAgainLater waits for a repository that did not answer: what is staged stands, and the node serves. The host's
// word is told meanwhile.
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

// refresh asks the host once, for the intent, whether it still offers the target.
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
		return report(marker.StateError, "%s", refreshing+vanished(v.Asked))
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

// keep looks after what was answered with ready.
func keep(v View) Step {
	if v.Report.BootID != v.Host.BootID || !stands(v.Host, v.Intent.Target) {
		return report(marker.StateError, "%s", preparedIsGone)
	}
	return keepFresh(v)
}

const preparedIsGone = "the prepared update is gone: the host was rebooted or changed by somebody else"

// staged tells if the host's own last word proves that target was written in this boot.
func staged(h Host, target string) bool {
	return h.State == HostStaged && h.Last.Command == CommandPrepare && h.Last.Success &&
		h.Last.Started == target && h.Staged == target
}

// stands reports whether the host still has target staged, by its record.
func stands(h Host, target string) bool {
	return h.State == HostStaged && h.Staged == target && !overwritten(h, target)
}

// proven reports whether the report before the intent's answer proves the stage: it is the one on the prepare, since
// only then the intent is issued. A confirmation that is busy was begun on such a report.
func proven(v View) bool {
	confirms := v.Intent.Action == marker.ActionConfirmUpdate && v.Report.Answer(v.Intent.ID) == marker.StateBusy
	return v.Report.BootID == v.Host.BootID && (v.Report.State == marker.StateReady || confirms)
}

// overwritten reports whether the last command was a prepare of something else, or one that failed. The host's record
// of what is staged names its own choice, also where another version was written (docs/host-api.md: F9), so it is no proof
// then.
func overwritten(h Host, target string) bool {
	return h.Last.Command == CommandPrepare && (!h.Last.Success || h.Last.Started != target)
}

// prepared judges a prepare that ended without proof of the target.
func prepared(v View, died bool) Step {
	h, target := v.Host, v.Intent.Target
	switch {
	case died:
		return report(marker.StateError, "preparing %s: %s", target, vanished(v.Asked))
	case !h.Last.Success:
		return report(marker.StateError, "preparing %s: %s", target, problem(h))
	case h.Last.Started == "":
		return report(marker.StateError, "preparing %s: the host wrote nothing", target)
	}
	return report(marker.StateError, "preparing %s: the host wrote %s, its choice has changed", target, h.Last.Started)
}
