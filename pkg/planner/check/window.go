package check

import (
	"cmp"
	"math"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Window is a group's calendar now.
type Window struct {
	window.State
	// Disrupt and Stage are why neither may start.
	Disrupt, Stage plan.Refusal
	// Again is when that may change, by the clock alone.
	Again time.Time
}

// WindowAt looks at a calendar. takes is how long an update takes.
func WindowAt(r *policy.Rules, now time.Time, takes func() time.Duration) *Window {
	w := &Window{State: r.Calendar.At(now)}
	switch {
	case w.Cause == window.CauseFrozen:
		w.Again = w.Freeze.To
		frozen := plan.Messagef("frozen until %s: %s", plan.Clock(w.Freeze.To), cmp.Or(w.Freeze.Reason, "no reason given"))
		w.Disrupt = plan.Refuse(plan.ReasonFrozen, frozen.Until(w.Opens))
		w.Stage = w.Disrupt
		if r.StageOutside {
			w.Stage.Message = frozen.Until(w.Freeze.To)
		}
	case !w.Open && w.Opens.IsZero():
		w.Disrupt = plan.Refuse(plan.ReasonWindowClosed, plan.Messagef("the window is closed and does not open again within years"))
	case !w.Open:
		w.Again = w.Opens
		w.Disrupt = plan.Refuse(plan.ReasonWindowClosed, plan.Messagef("the window opens %s", plan.Clock(w.Opens)).Until(w.Opens))
	case !w.Ends.IsZero():
		w.Again = w.Ends
		if r.FitWindow {
			w.Disrupt = tooShort(r, now, w.Ends, takes)
		}
	}
	if !w.Stage.Refuses() && !w.Open && !r.StageOutside {
		w.Stage = w.Disrupt
	}
	w.Disrupt.Again, w.Stage.Again = w.Again, w.Again
	return w
}

// tooShort says why an update that begins now would not end before the window closes. What no window is long enough for
// would never start: it does, and the plan warns of it.
func tooShort(r *policy.Rules, now, ends time.Time, takes func() time.Duration) plan.Refusal {
	if needs := takes(); needs > ends.Sub(now) && needs < Longest(r.Calendar) {
		return plan.Refuse(plan.ReasonWindowTooShort, plan.Messagef("the window closes %s, and an update takes %s", plan.Clock(ends), needs).
			Until(r.Calendar.At(ends).Opens))
	}
	return plan.Refusal{}
}

// Longest is how long a window of the calendar is open; without a window it is open for ever.
func Longest(c window.Calendar) time.Duration {
	if len(c.Windows) == 0 {
		return math.MaxInt64
	}
	var d time.Duration
	for _, w := range c.Windows {
		d = max(d, w.Duration)
	}
	return d
}
