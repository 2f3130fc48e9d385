package plan

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Shown is a step that the marks on a Node show to any process: its last cordon, reboot, return, or end of an attempt.
type Shown struct {
	// At is when the step was taken, by the clock of the controller that took it.
	At     time.Time
	Reason Reason

	act   intent.Act
	marks *marker.Marks
}

// LastShown returns the last step that a Node's marks show; false: they show none. It makes no text: it is asked of
// every node in every pass.
func LastShown(m *marker.Marks) (Shown, bool) {
	d := m.Disruption
	switch {
	case d == nil || d.Returned != nil && endedSince(m, d.Returned.Truncate(time.Second)):
		return lastEnd(m)
	case d.Returned != nil:
		return Shown{*d.Returned, ReasonUncordoned, intent.ActReturn, m}, true
	case m.Intent.Action == marker.ActionRebootUpdate:
		return Shown{m.Intent.Time, ReasonRebooting, intent.ActReboot, m}, true
	}
	return Shown{d.Since, ReasonCordoned, intent.ActCordon, m}, true
}

// ID identifies the step among all of its node, for every process that reads the marks.
func (s Shown) ID() string {
	id := string(s.act) + " " + s.At.UTC().Format(time.RFC3339Nano)
	if s.act == intent.ActFinish {
		// Attempts end by whole seconds.
		id += " " + string(s.Reason)
	}
	return id
}

// Message returns what the marks still say about the step.
func (s Shown) Message() string {
	switch s.act {
	case intent.ActReturn:
		return "Ready again with " + s.marks.Report.Current
	case intent.ActReboot:
		return "asked to reboot into " + s.marks.Intent.Target
	case intent.ActCordon:
		return TakenOut(s.marks.Intent.Target, s.marks.Cycles())
	default:
		return s.end()
	}
}

// end says how the attempt ended.
func (s Shown) end() string {
	a := s.marks.History[len(s.marks.History)-1]
	switch f := s.marks.Failure; {
	case a.Outcome == marker.OutcomeUpdated:
		return "updated to " + a.Version
	case a.Outcome == marker.OutcomeCycled:
		return Cycled(a.Version)
	case a.Outcome == marker.OutcomeFailed && f != nil && f.At.Equal(a.Ended):
		return f.Message
	case a.Outcome == marker.OutcomeFailed && a.Cycle != "":
		return "the cycle on " + a.Version + " failed"
	}
	return "the attempt at " + a.Version + " was abandoned"
}

// Shown returns how the marks show the step once it is carried out; false: they don't.
func (s Step) Shown() (Shown, bool) {
	switch s.Act {
	case intent.ActCordon, intent.ActReboot, intent.ActReturn, intent.ActAbandon, intent.ActUncordon:
	case intent.ActFinish, intent.ActSoak:
		if !s.Change.EndsAttempt {
			return Shown{}, false
		}
	default:
		return Shown{}, false
	}
	return LastShown(&s.Change.Marks)
}

// Failed returns the version of the attempt that the step ends as a failure; false: it ends none so.
func (s Step) Failed() (version string, failed bool) {
	if s.Change == nil || !s.Change.EndsAttempt {
		return "", false
	}
	h := s.Change.Marks.History
	last := h[len(h)-1]
	return last.Version, last.Outcome == marker.OutcomeFailed
}

// TakenOut returns what is said of a cordon.
func TakenOut(target string, cycles bool) string {
	if cycles {
		return "taken out of service for a cycle on " + target + ", which it runs"
	}
	return "taken out of service for " + target
}

// Cycled returns what is said of a cycle that succeeded.
func Cycled(version string) string { return "went through a cycle on " + version }

// endedSince reports whether the node's last attempt ended at that moment or later.
func endedSince(m *marker.Marks, at time.Time) bool {
	return len(m.History) > 0 && !m.History[len(m.History)-1].Ended.Before(at)
}

// LastEnd returns when the node's last attempt ended; zero if none has.
func LastEnd(m *marker.Marks) time.Time {
	if len(m.History) == 0 {
		return time.Time{}
	}
	return m.History[len(m.History)-1].Ended
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
	return Shown{a.Ended, reasons[known], intent.ActFinish, m}, true
}
