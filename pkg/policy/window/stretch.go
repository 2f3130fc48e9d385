package window

import "time"

// closes returns the first moment from t on at which no window is open; false if there is none up to limit.
func closes(lines []line, t, limit time.Time) (time.Time, bool) {
	weekly, others := split(lines)
	for {
		at, ok := weekly.closes(t, limit)
		for i := 0; ok && i < len(others); i++ {
			at, ok = others[i].closes(at, limit)
		}
		if !ok || at.Equal(t) {
			return at, ok
		}
		t = at
	}
}

// split separates the windows that repeat each week from the others.
func split(lines []line) (weekly repeating, others []line) {
	for _, l := range lines {
		if l.Schedule.weekly() {
			weekly = append(weekly, l)
		} else {
			others = append(others, l)
		}
	}
	return weekly, others
}

// repeating are windows that repeat each week, or each day, between clock changes.
type repeating []line

// closes is closes for the windows. Once a whole cycle was open it skips the repetitions up to the next clock change.
func (r repeating) closes(t, limit time.Time) (time.Time, bool) {
	settled := r.settled()
	var since, change int64
	for moved := true; moved; {
		switch now := t.Unix(); {
		case now >= change:
			since, change = now, r.change(now)
		case now > since+settled && change == never:
			return time.Time{}, false
		case now > since+settled:
			t = time.Unix(change, 0)
			continue
		}
		moved = false
		for i := range r {
			at, ok := r[i].closes(t, limit)
			if !ok {
				return time.Time{}, false
			}
			moved = moved || at.After(t)
			t = at
		}
	}
	return t, true
}

// settled returns the number of seconds after a clock change in which a whole cycle passes that the change doesn't
// affect.
func (r repeating) settled() int64 {
	cycle, longest := int64(daySeconds), time.Duration(0)
	for _, l := range r {
		if !l.Schedule.gaps.daily {
			cycle = 7 * daySeconds
		}
		longest = max(longest, l.Duration)
	}
	return lookBack + int64(longest/time.Second) + 1 + cycle
}

// change returns the time of the windows' next clock change after t.
func (r repeating) change(t int64) int64 {
	until := int64(never)
	for i := range r {
		r[i].clock.load(t)
		until = min(until, r[i].clock.to)
	}
	return until
}
