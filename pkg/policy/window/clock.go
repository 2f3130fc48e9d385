package window

import "time"

const (
	// lookBack is how long ago every clock certainly showed less than now: no zone is a day or more away from UTC.
	lookBack = 2 * daySeconds
	// never is later than all times in use.
	never = 1 << 55
)

// clock is the wall clock of a zone. Times are seconds since 1970.
//
// Clocks are set forward and back, but the latest time that a clock has shown only rises. A wall-clock time counts as
// reached once, when the clock first shows it or a later one: a repeated time when it comes first, and a skipped one
// when the clock is set forward over it.
type clock struct {
	zone *time.Location
	// from (inclusive) and to (exclusive) are the last period in use, which has one offset from UTC.
	from, to, offset int64
}

// load sets the period to the one of t. It may begin as late as t.
func (c *clock) load(t int64) {
	if c.from <= t && t < c.to {
		return
	}
	at := time.Unix(t, 0).In(c.zone)
	_, offset := at.Zone()
	c.from, c.to, c.offset = t, never, int64(offset)
	// Only the end is used: for the future, ZoneBounds can return a start that is too early.
	if _, end := at.ZoneBounds(); !end.IsZero() {
		c.to = end.Unix()
	}
	if c.to <= t {
		// ZoneBounds ends a year with day 365; a leap year has one more.
		c.to = int64(wall(t).floor(daySeconds)) + daySeconds
	}
}

// shown returns the latest time that the clock has shown up to t.
func (c *clock) shown(t int64) wall {
	c.load(t - lookBack)
	latest := min(t, c.to-1) + c.offset
	for c.to <= t {
		c.load(c.to)
		latest = max(latest, min(t, c.to-1)+c.offset)
	}
	return wall(latest)
}

// reaches returns when the clock first shows w or a later time.
func (c *clock) reaches(w wall) int64 {
	for t := int64(w) - lookBack; ; t = c.to {
		c.load(t)
		if at := max(t, int64(w)-c.offset); at < c.to {
			return at
		}
	}
}
