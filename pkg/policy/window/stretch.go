package window

import "time"

// closes is the first moment from t on at which no window is open; false if there is none up to limit.
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

// split parts windows that repeat each week from others.
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

// repeating are windows that repeat each week, or each day, while no clock is changed.
type repeating []line

// closes goes from close to close. Once a whole cycle was open it passes over what repeats, up to where a
// clock is changed.
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

// settled is after how many seconds without a change of the clock a whole cycle has gone by in which no
// earlier change had a part.
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

// change is up to when no clock of theirs is changed.
func (r repeating) change(t int64) int64 {
	until := int64(never)
	for i := range r {
		r[i].clock.look(t)
		until = min(until, r[i].clock.to)
	}
	return until
}
