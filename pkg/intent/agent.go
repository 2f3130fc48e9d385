package intent

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// BusyPatience is how long an agent waits for a host that is locked by somebody else's command
	// before it calls that an error; prepare deadlines must be longer.
	BusyPatience = 25 * time.Minute
	// RebootPatience is how long after its last reboot request an agent still expects the host to go
	// down: inhibitors may hold a shutdown for 300 s (update-api section 6).
	RebootPatience = 10 * time.Minute
	// unchangedLooks is how often an unlocked host may show no new record after a command was accepted
	// before the command counts as dead (update-api section 1, rule 5).
	unchangedLooks = 3

	// activateAgain is how long after an activation that failed on the repository the next one is asked for, and lastTry
	// how long before the end of the intent no more is: the answer is to come before the controller's deadline.
	activateAgain = 30 * time.Second
	lastTry       = 2 * time.Minute
	// tellPatience is for how long after its activation was asked for a reboot waits for the report of it; a slow
	// repository takes half of that. Without the report a rollback can't be told from a loss of power, and the version
	// isn't blamed, but the node is drained and must not wait for proxies that stay away.
	tellPatience = 5 * time.Minute

	shortCommand = 10 * time.Second

	pollActive = 250 * time.Millisecond
	pollLocked = 2 * time.Second
	pollSlow   = 30 * time.Second
)

// Unsupported begins the message of an agent whose host can't be updated in place.
const Unsupported = "in-place updates are not supported by this host: "

// AnotherUpdater begins the message of an agent that found an update on its host that the Node tells nothing of, and
// HasActivated that of one that a reset undoes.
const (
	AnotherUpdater = "another updater: "
	HasActivated   = AnotherUpdater + "the host has activated "
)

// StepKind is what an agent does next.
type StepKind string

const (
	// StepRest: nothing until something changes or the facts are due.
	StepRest StepKind = "rest"
	// StepWait: look again after Step.After.
	StepWait StepKind = "wait"
	// StepReport: write Step.State for the intent, with the facts.
	StepReport StepKind = "report"
	// StepFacts: write the facts now and go on; nothing disruptive follows before they stand.
	StepFacts StepKind = "facts"
	// StepCommand: ask the host for Step.Command.
	StepCommand StepKind = "command"
)

// Step is an agent's next step.
type Step struct {
	Kind    StepKind
	Command Command
	State   marker.State
	Message string
	After   time.Duration
}

// View is all that an agent decides from.
type View struct {
	Now    time.Time
	Intent marker.Intent
	// Report is the agent's own last report, as it stands on the Node.
	Report marker.Report
	Host   Host
	// Asked, Started, Affirmed, RefreshedAt, RefreshTried and LockedSince are the process's own memory; see Asked.
	Asked Asked
	// Started is when this process started.
	Started time.Time
	// Affirmed is the intent for which this very process wrote `busy` and had it accepted.
	Affirmed string
	// RefreshTried is when this process last asked for a refresh; zero if never.
	RefreshTried time.Time
	// RefreshEvery is how often facts are refreshed.
	RefreshEvery time.Duration
	// LockedSince is since when the host has been locked without a break; zero if it isn't.
	LockedSince time.Time
	// Unsupported is the host's word that it can't update in place; empty if it hasn't said so.
	Unsupported string
}

// Next decides an agent's next step. It never asks for anything disruptive that the intent doesn't ask for.
func Next(v View) Step {
	answer := v.Report.Answer(v.Intent.ID)
	if v.Intent.ID == "" {
		return keepFresh(v)
	}
	switch v.Intent.Action {
	case marker.ActionPrepareUpdate:
		return prepare(v, answer)
	case marker.ActionConfirmUpdate:
		return confirm(v, answer)
	case marker.ActionRebootUpdate:
		return reboot(v, answer)
	case marker.ActionResetState:
		return reset(v, answer)
	case marker.ActionStabilize:
		return stabilize(v, answer)
	}
	return Step{Kind: StepRest}
}

// FactsOf turns what a host says into the facts of a report; the last report's offer stands while the
// host gives no word on it, so that a failed refresh doesn't withdraw an update.
func FactsOf(v View, operatorVersion string) marker.Report {
	r, h := v.Report, v.Host
	r.ActivatedID = activatedID(v)
	r.Current, r.BootID = h.Version, h.BootID
	r.Protocol, r.OperatorVersion = marker.Protocol, operatorVersion
	switch {
	case h.ChosenKnown:
		r.Available = h.Chosen
	case h.State == HostIdle && h.Last.Command == CommandRefresh && h.Last.Success && !h.SawNothing:
		// It looked, and nothing is offered: what was offered before is withdrawn.
		r.Available = ""
	}
	if r.Available == h.Version {
		r.Available = ""
	}
	return r
}

// activatedID is the intent that stands if the host was ready to boot its target when it was last seen in the boot that
// is to be left behind. It stays after that boot, where it tells a rollback from a loss of power, unless the host comes
// back with a version that it neither ran before nor was to boot: then something else was activated last.
func activatedID(v View) string {
	i, h, known := v.Intent, v.Host, v.Report.ActivatedID == v.Intent.ID
	first := h.BootID != i.RebootFrom && v.Report.BootID == i.RebootFrom
	switch {
	case i.Action != marker.ActionRebootUpdate:
	case h.BootID == i.RebootFrom && !h.Locked:
		if h.State == HostReady && h.Staged == i.Target {
			return i.ID
		}
	case known && first && h.Version != i.Target && h.Version != v.Report.Current:
	case known:
		return i.ID
	}
	return ""
}

func wait(d time.Duration) Step { return Step{Kind: StepWait, After: d} }
func command(c Command) Step    { return Step{Kind: StepCommand, Command: c} }
func report(s marker.State, format string, args ...any) Step {
	return Step{Kind: StepReport, State: s, Message: fmt.Sprintf(format, args...)}
}

// told reports whether the report that stands has the message, as it is written.
func told(v View, message string) bool {
	return v.Report.Message == marker.Clip(message, marker.MaxMessage)
}

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

// settle waits for a command that this process asked for and that hasn't shown its end yet.
func settle(v View, c Command) (Step, bool) {
	a := v.Asked
	if a.Command == "" || a.Command != c {
		return Step{}, false
	}
	if v.Host.Locked {
		return wait(pace(v)), true
	}
	if v.Host.Last.Timestamp == a.Before && a.Unchanged < unchangedLooks {
		return wait(pace(v)), true
	}
	return Step{}, false
}

// ended tells if the command that this process asked for has ended, and if it left no record of it.
func ended(v View, c Command) (done, died bool) {
	a := v.Asked
	if a.Command != c || a.ID != v.Intent.ID || v.Host.Locked {
		return false, false
	}
	if v.Host.Last.Timestamp == a.Before {
		return a.Unchanged >= unchangedLooks, true
	}
	return v.Host.Last.Command == c, false
}

// pace is how soon to look again at a command of this agent's own: at once while it may be a short one,
// seldom once it is a long one.
func pace(v View) time.Duration {
	if v.Now.Sub(v.Asked.At) > shortCommand {
		return pollLocked
	}
	return pollActive
}

// locked waits for a host that is busy with a command, patiently but not for ever.
func locked(v View, answer marker.State) Step {
	if answer != marker.StateError && !v.LockedSince.IsZero() && v.Now.Sub(v.LockedSince) > BusyPatience {
		return report(marker.StateError, "the host has been busy with another command for more than %s", BusyPatience)
	}
	if v.Asked.ID == v.Intent.ID {
		return wait(pace(v))
	}
	return wait(pollLocked)
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
			return report(marker.StateError, "%s%s", Unsupported, v.Unsupported)
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
		return HasActivated + orUnknown(h.Staged) + ", and its Node tells of no update that asked for it"
	case h.ForeignBoot:
		return AnotherUpdater + "the host will boot another partition set, activated outside the update API"
	}
	return ""
}

func orUnknown(version string) string {
	if version == "" {
		return "an unknown version"
	}
	return version
}

// busy begins an intent, or takes up what an earlier process began. The words of the latter are this
// process's own, so that the write changes something: one that doesn't leaves the resourceVersion as it
// is, and an answer that the earlier process had on its way could still follow it.
func busy(v View, answer marker.State) Step {
	if answer != marker.StateBusy {
		return report(marker.StateBusy, "")
	}
	return report(marker.StateBusy, "taken up by the agent that started at %s", v.Started.UTC().Format(time.RFC3339Nano))
}

// ask writes busy before it touches the host.
func ask(v View, answer marker.State, c Command) Step {
	if answer != marker.StateBusy || v.Affirmed != v.Intent.ID {
		return busy(v, answer)
	}
	if step, ok := settle(v, c); ok && v.Asked.ID == v.Intent.ID {
		return step
	}
	return command(c)
}

// vanished says why a command that was asked for left no record.
func vanished(a Asked) string {
	if a.Refused != "" {
		return "the host refused: " + a.Refused
	}
	return "the host's command ended without a record"
}

func problem(h Host) string {
	if h.Last.Problem == "" {
		return "the host said nothing"
	}
	return h.Last.Problem
}

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
			return report(marker.StateError, "%sthe host came back with %s, which this operator did not ask for, instead of %s",
				AnotherUpdater, h.Version, target)
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
		if v.Now.Sub(a.At) > RebootPatience {
			return report(marker.StateError, "the host did not reboot within %s of being asked", RebootPatience)
		}
		return wait(pollSlow)
	}
	if v.Affirmed != v.Intent.ID {
		if v.Now.Before(v.Intent.Until) {
			return busy(v, marker.StateBusy)
		}
		// Too late to begin, and this process can't know if its predecessor asked for the reboot.
		if v.Now.Sub(v.Started) > RebootPatience {
			return report(marker.StateError, "the host did not reboot in time")
		}
		return wait(pollSlow)
	}
	if h.Locked {
		return locked(v, marker.StateBusy)
	}
	if done, died := ended(v, CommandActivate); done && h.State != HostReady {
		switch {
		case died:
			return report(marker.StateError, "activating %s: %s", v.Intent.Target, vanished(v.Asked))
		case !h.Last.OfRepository || !v.Now.Add(lastTry).Before(v.Intent.Until):
			return report(marker.StateError, "activating %s: %s", v.Intent.Target, problem(h))
		case v.Now.Sub(a.At) < activateAgain && !told(v, activatingAgain(v)):
			return report(marker.StateBusy, "%s", activatingAgain(v))
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
		return changed(v, "%s%s was prepared on the host instead of %s", AnotherUpdater, orUnknown(h.Last.Started), v.Intent.Target)
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

// ActivatingAgain begins the message of an agent whose host could not load its repository, and is asked again.
const ActivatingAgain = "activating again: "

func activatingAgain(v View) string { return ActivatingAgain + problem(v.Host) }

// changed reports that somebody changed the host after the point of no return. A process that hasn't
// asked its host for anything yet can't know if its predecessor asked for the reboot: no error then,
// until a reboot would have come.
func changed(v View, format string, args ...any) Step {
	if v.Asked.ID != v.Intent.ID && v.Now.Sub(v.Started) <= RebootPatience {
		return wait(pollSlow)
	}
	return report(marker.StateError, format, args...)
}

func reset(v View, answer marker.State) Step {
	h := v.Host
	if answer == marker.StateReady {
		return keepFresh(v)
	}
	if h.Locked {
		return locked(v, answer)
	}
	if h.State != HostReady {
		return report(marker.StateReady, "")
	}
	if done, _ := ended(v, CommandDeactivate); done {
		if answer != marker.StateError {
			return report(marker.StateError, "deactivating %s: %s", orUnknown(h.Staged), problem(h))
		}
		if v.Now.Sub(v.Asked.At) < time.Minute {
			return wait(pollSlow)
		}
		return command(CommandDeactivate)
	}
	if step, ok := settle(v, CommandDeactivate); ok && v.Asked.ID == v.Intent.ID {
		return step
	}
	return command(CommandDeactivate)
}
