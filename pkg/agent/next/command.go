package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// settle returns a wait while a command that this process asked for may still run.
func settle(v View, c Command) (Step, bool) {
	a := v.Asked
	if a.Command != c {
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

// ended reports whether the command that this process asked for has ended, and whether it died without a record.
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

// pace returns how soon to look again at a command of this agent's own: soon at first, for a short command, and less
// often later.
func pace(v View) time.Duration {
	if v.Now.Sub(v.Asked.At) > shortCommand {
		return pollLocked
	}
	return pollActive
}

// locked returns the step for a host that is busy with a command: a wait, and an error after BusyPatience.
func locked(v View, answer marker.State) Step {
	if answer != marker.StateError && !v.LockedSince.IsZero() && v.Now.Sub(v.LockedSince) > intent.BusyPatience {
		return report(marker.StateError, "the host has been busy with another command for more than %s", intent.BusyPatience)
	}
	if v.Asked.ID == v.Intent.ID {
		return wait(pace(v))
	}
	return wait(pollLocked)
}

// busy returns the answer that begins an intent, or takes over one that an earlier process began. Its message is then
// this process's own, so that the write changes something: a write without a change leaves the resourceVersion as it
// is, and an answer that the earlier process had under way could still be accepted after it.
func busy(v View, answer marker.State) Step {
	if answer != marker.StateBusy {
		return report(marker.StateBusy, "")
	}
	return report(marker.StateBusy, "taken up by the agent that started at %s", v.Started.UTC().Format(time.RFC3339Nano))
}

// ask returns the command, or first the `busy` without which the host must not be touched.
func ask(v View, answer marker.State, c Command) Step {
	if answer != marker.StateBusy || v.Affirmed != v.Intent.ID {
		return busy(v, answer)
	}
	if step, ok := settle(v, c); ok && v.Asked.ID == v.Intent.ID {
		return step
	}
	return command(c)
}

// noRecord returns why a command that was asked for left no record.
func noRecord(a Asked) string {
	if a.Refused != "" {
		return "the host refused the command: " + a.Refused
	}
	return "the host's command ended without a record"
}

func problem(h Host) string {
	if h.Last.Problem == "" {
		return "the host printed no error"
	}
	return h.Last.Problem
}

func orUnknown(version string) string {
	if version == "" {
		return "an unknown version"
	}
	return version
}
