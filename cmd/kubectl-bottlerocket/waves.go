package main

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Wave is a group of the policy: when it may go, and how far it is.
type Wave struct {
	Name string `json:"name"`
	// After names the groups that go first, and AfterSoak for how long they must have had the version.
	After     []string `json:"after,omitempty"`
	AfterSoak Duration `json:"afterSoak,omitzero"`
	// Paused is why nothing of it starts.
	Paused *string `json:"paused,omitempty"`
	Window Window  `json:"window"`
	Nodes  int     `json:"nodes"`
	// Each node is one of these: a step would be taken on it now; it has what is offered; it is staging, staged or out
	// of service; or it waits before all that.
	UpToDate   int `json:"upToDate"`
	Starting   int `json:"starting"`
	InProgress int `json:"inProgress"`
	Waiting    int `json:"waiting"`

	calendar window.Calendar
	now      time.Time
	// openings are when it is open again, by the times that somebody asked for.
	openings map[time.Time]time.Time
}

// opening is the first moment from t on at which the group's window is open; zero if that is now, or never.
func (w *Wave) opening(t time.Time) time.Time {
	at, known := w.openings[t]
	if !known {
		at = t
		from := t
		if from.Before(w.now) {
			at, from = time.Time{}, w.now
		}
		if s := w.calendar.At(from); !s.Open {
			at = s.Opens
		}
		w.openings[t] = at
	}
	return at
}

// Window is a group's calendar.
type Window struct {
	Open bool `json:"open"`
	// Frozen is the reason of the freeze that holds.
	Frozen *string `json:"frozen,omitempty"`
	// Opens is the next opening, and Closes the next closing; of an open one the closing comes first.
	Opens  time.Time `json:"opens,omitzero"`
	Closes time.Time `json:"closes,omitzero"`
}

type waves struct {
	settings *policy.Settings
	all      []Wave
}

// newWaves are all groups without their nodes, in the policy's order, and what is in none.
func newWaves(l *planned) *waves {
	w := &waves{settings: &l.settings}
	for i := range l.settings.Groups {
		g := &l.settings.Groups[i]
		made := newWave(g.Name, l, &g.Rules)
		made.After, made.AfterSoak = g.After, Duration(g.AfterSoak)
		w.all = append(w.all, made)
	}
	w.all = append(w.all, newWave("", l, &l.settings.Rules))
	return w
}

func newWave(name string, l *planned, r *policy.Rules) Wave {
	w := Wave{Name: name, Window: windowOf(r.Calendar, l.now), calendar: r.Calendar, now: l.now, openings: map[time.Time]time.Time{}}
	for _, pause := range []*policy.Pause{r.Pause, l.settings.Pause} {
		if pause != nil {
			w.Paused = &pause.Reason
		}
	}
	return w
}

func windowOf(c window.Calendar, now time.Time) Window {
	s := c.At(now)
	w := Window{Open: s.Open, Opens: s.Opens, Closes: s.Ends}
	switch {
	case s.Cause == window.CauseFrozen:
		w.Frozen = &s.Freeze.Reason
		fallthrough
	case !s.Open:
		if !s.Opens.IsZero() {
			w.Closes = c.At(s.Opens).Ends
		}
	case !s.Ends.IsZero():
		w.Opens = c.At(s.Ends).Opens
	}
	return w
}

// of is the group that has a node with these labels.
func (w *waves) of(labels map[string]string) *Wave {
	name := w.settings.GroupOf(labels)
	for i := range w.all {
		if w.all[i].Name == name {
			return &w.all[i]
		}
	}
	return &w.all[len(w.all)-1]
}

func (w *Wave) count(s *plan.Decision) {
	w.Nodes++
	switch {
	case !waits(s.Act):
		w.Starting++
	case s.Reason == plan.ReasonUpToDate:
		w.UpToDate++
	case s.Phase == intent.PhaseIdle || s.Phase == intent.PhaseNew || s.Phase == intent.PhaseUnreadable:
		w.Waiting++
	default:
		w.InProgress++
	}
}
