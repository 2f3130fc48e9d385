package window

import (
	"time"

	"github.com/pkg/errors"
)

// Horizon is how far At looks ahead for the end of an open period; a longer one counts as endless. It covers yearly
// events such as clock changes.
const Horizon = 2 * 366 * 24 * time.Hour

// Freeze is a period in which no window is open.
type Freeze struct {
	// From is inclusive; To is exclusive, and after From.
	From time.Time `yaml:"from" need:"give one such as 2026-12-20T18:00:00+01:00"`
	To   time.Time `yaml:"to" need:"give one such as 2027-01-07T08:00:00+01:00"`
	// Reason is shown to users; it may be empty.
	Reason string `yaml:"reason"`
}

func (f Freeze) contains(t time.Time) bool { return !t.Before(f.From) && t.Before(f.To) }

// Validate returns a mistake, with the field's name and the remedy.
func (f Freeze) Validate() error {
	if !f.To.After(f.From) {
		return errors.Errorf("to is %s, not after from, which is %s: give an end after the beginning",
			f.To.Format(time.RFC3339), f.From.Format(time.RFC3339))
	}
	return nil
}

// Calendar is when nodes may be disrupted: while at least one window is open and there is no freeze. Without windows it
// is open except during freezes.
type Calendar struct {
	Windows []Window `yaml:"windows"`
	Freezes []Freeze `yaml:"freezes"`
}

// Cause is why a calendar is closed.
type Cause string

const (
	// CauseNone: it is open.
	CauseNone Cause = ""
	// CauseOutside: no window is open.
	CauseOutside Cause = "OutsideWindows"
	// CauseFrozen: there is a freeze, whatever the windows are.
	CauseFrozen Cause = "Frozen"
)

// State is a calendar's state at one moment. Its times are in UTC.
type State struct {
	Open  bool
	Cause Cause
	// Freeze is the present freeze if Cause is CauseFrozen; of several, the one that ends last.
	Freeze Freeze
	// Ends is when the calendar closes; windows that meet or overlap count as one. It is zero if that isn't within
	// Horizon, and if the calendar is closed.
	Ends time.Time
	// Opens is when the calendar opens again; zero if it is open, and if no window can ever open, which Validate refuses.
	Opens time.Time
}

// At returns the state at now.
func (c Calendar) At(now time.Time) State {
	lines := c.lines()
	if f, frozen := c.frozen(now); frozen {
		return State{Cause: CauseFrozen, Freeze: f, Opens: c.opens(lines, f.To)}
	}
	if len(c.Windows) > 0 && !open(lines, now) {
		return State{Cause: CauseOutside, Opens: c.opens(lines, now)}
	}
	return State{Open: true, Ends: c.ends(lines, now)}
}

// lines returns the windows that can open.
func (c Calendar) lines() []line {
	lines := make([]line, 0, len(c.Windows))
	for _, w := range c.Windows {
		if w.Validate() == nil {
			lines = append(lines, line{Window: w, clock: clock{zone: w.Zone}})
		}
	}
	return lines
}

// frozen returns the freeze at t, of several the one that ends last.
func (c Calendar) frozen(t time.Time) (f Freeze, frozen bool) {
	for _, other := range c.Freezes {
		if other.contains(t) && (!frozen || other.To.After(f.To)) {
			f, frozen = other, true
		}
	}
	return f, frozen
}

func open(lines []line, t time.Time) bool {
	at, ok := opens(lines, t)
	return ok && at.Equal(t)
}

// opens returns the first moment from t on at which a window is open.
func opens(lines []line, t time.Time) (first time.Time, ok bool) {
	for i := range lines {
		if at, comes := lines[i].opens(t); comes && (!ok || at.Before(first)) {
			first, ok = at, true
		}
	}
	return first, ok
}

// opens returns the first moment from t on at which the calendar is open. Each round skips a freeze.
func (c Calendar) opens(lines []line, t time.Time) time.Time {
	for {
		if len(c.Windows) > 0 {
			var ok bool
			if t, ok = opens(lines, t); !ok {
				return time.Time{}
			}
		}
		f, frozen := c.frozen(t)
		if !frozen {
			return t.UTC()
		}
		t = f.To
	}
}

// ends returns when a calendar that is open at t closes; zero if that isn't within Horizon.
func (c Calendar) ends(lines []line, t time.Time) time.Time {
	limit, cut := t.Add(Horizon), false
	for _, f := range c.Freezes {
		if f.From.After(t) && f.To.After(f.From) && !f.From.After(limit) {
			limit, cut = f.From, true
		}
	}
	if len(c.Windows) > 0 {
		if closes, ok := closes(lines, t, limit); ok {
			return closes.UTC()
		}
	}
	if cut {
		return limit.UTC()
	}
	return time.Time{}
}
