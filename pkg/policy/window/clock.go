package window

import "time"

const (
	// lookBack: no zone is a day or more away from UTC, so whatever a clock shows now, two days ago it
	// showed less.
	lookBack = 2 * daySeconds
	// never is later than every time that is asked for.
	never = 1 << 55
)

// clock is the wall clock of a zone. Times are seconds since 1970.
//
// Clocks are set forward and back, but what matters here only rises: the latest that a clock has shown. A
// wall-clock time comes once, when the clock first shows it or more. So a time that comes twice comes when
// it is there first, and one that is left out comes when the clock is set over it.
type clock struct {
	zone *time.Location
	// The stretch that was looked at last: from inclusive, to exclusive.
	from, to, offset int64
}

// look finds the stretch of t, from t on at least.
func (c *clock) look(t int64) {
	if c.from <= t && t < c.to {
		return
	}
	at := time.Unix(t, 0).In(c.zone)
	_, offset := at.Zone()
	c.from, c.to, c.offset = t, never, int64(offset)
	// The end alone: a zone's rules for the future are given with a start that can be too early.
	if _, end := at.ZoneBounds(); !end.IsZero() {
		c.to = end.Unix()
	}
	if c.to <= t {
		// By those rules a year ends with its day 365; in a leap year there is one more.
		c.to = int64(wall(t).floor(daySeconds)) + daySeconds
	}
}

// shown is the latest that the clock has shown up to t.
func (c *clock) shown(t int64) wall {
	c.look(t - lookBack)
	latest := min(t, c.to-1) + c.offset
	for c.to <= t {
		c.look(c.to)
		latest = max(latest, min(t, c.to-1)+c.offset)
	}
	return wall(latest)
}

// comes is when the clock first shows w or more.
func (c *clock) comes(w wall) int64 {
	for t := int64(w) - lookBack; ; t = c.to {
		c.look(t)
		if at := max(t, int64(w)-c.offset); at < c.to {
			return at
		}
	}
}
