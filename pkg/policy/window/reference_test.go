package window_test

import (
	"testing"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// plain is a window for the reference, which walks through all minutes and looks at the wall clock.
type plain struct {
	// matches gets what the wall clock shows, as if that were UTC.
	matches func(wall time.Time) bool
	// duration in whole minutes.
	duration time.Duration
	zone     *time.Location
}

// tick is a wall-clock minute and the minute in which it comes.
type tick struct {
	wall time.Time
	at   int
}

// ticks are all that a wall clock shows in the minutes from a moment on, each once, when it is there first.
// What it leaves out when it is set forward comes in the minute in which it is set.
func ticks(from time.Time, minutes int, zone *time.Location) []tick {
	all := make([]tick, 0, minutes+60)
	// No zone is two days away.
	const days = 2 * 24 * 60
	seen := make([]bool, days+minutes+days)
	note := func(wall time.Time, at int) {
		if is := &seen[days+int(wall.Sub(from)/time.Minute)]; !*is {
			*is = true
			all = append(all, tick{wall, at})
		}
	}
	var last time.Time
	for at := range minutes {
		there := from.Add(time.Duration(at) * time.Minute).In(zone)
		wall := time.Date(there.Year(), there.Month(), there.Day(), there.Hour(), there.Minute(), 0, 0, time.UTC)
		if at > 0 {
			for skipped := last.Add(time.Minute); skipped.Before(wall); skipped = skipped.Add(time.Minute) {
				note(skipped, at)
			}
		}
		note(wall, at)
		last = wall
	}
	return all
}

// opened tells for each minute if the window is open.
func (p plain) opened(all []tick, minutes int) []bool {
	open := make([]bool, minutes)
	left, next := 0, 0
	for at := range open {
		for ; next < len(all) && all[next].at == at; next++ {
			if p.matches(all[next].wall) {
				left = int(p.duration / time.Minute)
			}
		}
		open[at] = left > 0
		left = max(0, left-1)
	}
	return open
}

// reference is what the answers must be in the minutes from a moment on. The first of them only lead up
// to it: windows that opened earlier still aren't known there.
type reference struct {
	from   time.Time
	open   []bool
	frozen []bool
	// next is the next minute in which open isn't what it is, len(open) if there is none.
	next []int
}

// add opens what another window opens too.
func (r *reference) add(open []bool) {
	if r.open == nil {
		r.open = make([]bool, len(open))
	}
	for i, o := range open {
		r.open[i] = r.open[i] || o
	}
}

// freeze closes the minutes of a freeze.
func (r *reference) freeze(f window.Freeze) {
	if r.frozen == nil {
		r.frozen = make([]bool, len(r.open))
	}
	for i := range r.open {
		if t := r.at(i); !t.Before(f.From) && t.Before(f.To) {
			r.open[i], r.frozen[i] = false, true
		}
	}
}

func (r *reference) finish() {
	r.next = make([]int, len(r.open))
	for i := len(r.open) - 1; i >= 0; i-- {
		r.next[i] = i + 1
		if i+1 < len(r.open) && r.open[i+1] == r.open[i] {
			r.next[i] = r.next[i+1]
		}
	}
}

func (r *reference) at(minute int) time.Time {
	return r.from.Add(time.Duration(minute) * time.Minute)
}

// compare asks for a moment of a minute.
func (r *reference) compare(t *testing.T, c window.Calendar, minute int, second time.Duration) {
	now := r.at(minute).Add(second)
	got := c.At(now)
	cause := window.CauseOutside
	change, other := got.Opens, got.Ends
	switch {
	case r.open[minute]:
		cause = window.CauseNone
		change, other = other, change
	case r.frozen != nil && r.frozen[minute]:
		cause = window.CauseFrozen
	}
	right := got.Open == r.open[minute] && got.Cause == cause && other.IsZero()
	if next := r.next[minute]; next < len(r.open) {
		right = right && change.Equal(r.at(next))
	} else {
		right = right && (got.Open && change.IsZero() || !change.Before(r.at(next)))
	}
	if !right {
		t.Fatalf("at %s, open is %v and changes at %s by the reference; got %+v",
			now, r.open[minute], r.at(r.next[minute]), got)
	}
}

// boundaries runs a clock from change to change, from a minute on, and asks at each of them and just
// before and after it, and now and then between.
func (r *reference) boundaries(t *testing.T, c window.Calendar, minute int) (changes int) {
	for i := minute; i < len(r.open); i += 997 {
		r.compare(t, c, i, time.Duration(i%60)*time.Second)
	}
	for ; minute < len(r.open); minute = r.next[minute] {
		r.compare(t, c, minute, 0)
		r.compare(t, c, minute, time.Nanosecond)
		r.compare(t, c, minute-1, time.Minute-1)
		changes++
	}
	return changes
}
