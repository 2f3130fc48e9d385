package policy

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Shown is a step that the marks on a Node show to any process: its last cordon, reboot, return, or end of an attempt.
type Shown struct {
	// ID tells it from all others of the node, whichever process reads it.
	ID string
	// At is when the step was taken, by the clock of the controller that took it.
	At time.Time
	// Reason and Message are what the marks still tell of it.
	Reason  Reason
	Message string
}

// LastShown returns the last step that a Node's marks show; false: they show none.
func LastShown(m *marker.Marks) (Shown, bool) {
	d := m.Disruption
	switch {
	case d == nil || d.Returned != nil && ended(m, d.Returned.Truncate(time.Second)):
		return lastEnd(m)
	case d.Returned != nil:
		return shown(intent.ActReturn, *d.Returned, ReasonUncordoned, "Ready again with "+m.Report.Current), true
	case m.Intent.Action == marker.ActionRebootUpdate:
		return shown(intent.ActReboot, m.Intent.Time, ReasonRebooting, "asked to reboot into "+m.Intent.Target), true
	}
	return shown(intent.ActCordon, d.Since, ReasonCordoned, takenOut(m.Intent.Target)), true
}

// Shown returns how the marks show the step once it is carried out; false: they don't.
func (s Step) Shown() (Shown, bool) {
	switch s.Act {
	case intent.ActCordon, intent.ActReboot, intent.ActReturn, intent.ActFinish, intent.ActGiveBack, intent.ActSetAside:
		last, ok := LastShown(&s.Change.Marks)
		if s.Act == intent.ActFinish && s.Reason == ReasonVerified {
			// Its attempt ended before.
			return Shown{}, false
		}
		last.Reason, last.Message = s.Reason, s.Message
		return last, ok
	}
	return Shown{}, false
}

func takenOut(target string) string { return "taken out of service for " + target }

// ended reports whether the node's last attempt ended at that moment.
func ended(m *marker.Marks, at time.Time) bool {
	return len(m.History) > 0 && m.History[len(m.History)-1].Ended.Equal(at)
}

func lastEnd(m *marker.Marks) (Shown, bool) {
	if len(m.History) == 0 {
		return Shown{}, false
	}
	a := m.History[len(m.History)-1]
	known := slices.IndexFunc(reasons, func(r Reason) bool { return string(r) == a.Reason })
	if known < 0 {
		return Shown{}, false
	}
	message := "the attempt at " + a.Version + " was given back"
	switch f := m.Failure; {
	case a.Outcome == marker.OutcomeUpdated:
		message = "updated to " + a.Version
	case a.Outcome == marker.OutcomeFailed && f != nil && f.At.Equal(a.Ended):
		message = f.Message
	}
	return shown(intent.ActFinish, a.Ended, reasons[known], message), true
}

func shown(act intent.Act, at time.Time, r Reason, message string) Shown {
	return Shown{ID: string(act) + " " + at.UTC().Format(time.RFC3339Nano), At: at, Reason: r, Message: message}
}
