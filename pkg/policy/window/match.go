package window

import (
	"math/bits"
	"time"
)

// wall is a wall-clock time, in seconds since the clock showed the beginning of 1970.
type wall int64

const (
	daySeconds = 24 * 60 * 60
	// reach is the number of months in which each schedule matches at least once: around 2100, two 29 February are eight
	// years apart.
	reach = 8*12 + 1
)

// floor returns the last multiple of unit up to w.
func (w wall) floor(unit wall) wall { return w - (w%unit+unit)%unit }

// after returns the first match later than w; false if there is none within reach.
func (c Cron) after(w wall) (wall, bool) {
	midnight := w.floor(daySeconds)
	year, month, day := time.Unix(int64(midnight), 0).UTC().Date()
	days := c.daysOf(year, month)
	if days>>day&1 == 1 {
		if m, ok := c.minuteFrom(int(w-midnight)/60 + 1); ok {
			return midnight + wall(m)*60, true
		}
	}
	days &^= upTo(day)
	for range reach {
		if days != 0 {
			m, ok := c.minuteFrom(0)
			return midnightOf(year, month, bits.TrailingZeros64(days)) + wall(m)*60, ok
		}
		if month++; month > time.December {
			year, month = year+1, time.January
		}
		days = c.daysOf(year, month)
	}
	return 0, false
}

// before returns the last match up to and including w; false if there is none within reach.
func (c Cron) before(w wall) (wall, bool) {
	midnight := w.floor(daySeconds)
	year, month, day := time.Unix(int64(midnight), 0).UTC().Date()
	days := c.daysOf(year, month)
	if days>>day&1 == 1 {
		if m, ok := c.minuteTo(int(w-midnight) / 60); ok {
			return midnight + wall(m)*60, true
		}
	}
	days &= upTo(day - 1)
	for range reach {
		if days != 0 {
			m, ok := c.minuteTo(24*60 - 1)
			return midnightOf(year, month, bits.Len64(days)-1) + wall(m)*60, ok
		}
		if month--; month < time.January {
			year, month = year-1, time.December
		}
		days = c.daysOf(year, month)
	}
	return 0, false
}

func midnightOf(year int, month time.Month, day int) wall {
	return wall(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix())
}

// daysOf returns the matching days of a month, as bits.
func (c Cron) daysOf(year int, month time.Month) uint64 {
	if c.months>>month&1 == 0 {
		return 0
	}
	first := int(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday())
	// week is the month's first seven days, which repeat five times.
	week := (c.weekdays>>first | c.weekdays<<(7-first)) & upTo(6)
	byWeek := week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1
	days := c.days & byWeek
	if c.either {
		days = c.days | byWeek
	}
	// Day 0 of the next month is the last day of this one.
	return days & upTo(time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day())
}

// minuteFrom returns the first matching minute of a day from m on.
func (c Cron) minuteFrom(m int) (int, bool) {
	hour, minute := m/60, m%60
	if c.hours>>hour&1 == 1 {
		if rest := c.minutes >> minute; rest != 0 {
			return m + bits.TrailingZeros64(rest), true
		}
	}
	rest := c.hours &^ upTo(hour)
	return bits.TrailingZeros64(rest)*60 + bits.TrailingZeros64(c.minutes), rest != 0
}

// minuteTo returns the last matching minute of a day up to m.
func (c Cron) minuteTo(m int) (int, bool) {
	hour, minute := m/60, m%60
	if c.hours>>hour&1 == 1 {
		if rest := c.minutes & upTo(minute); rest != 0 {
			return hour*60 + bits.Len64(rest) - 1, true
		}
	}
	rest := c.hours & upTo(hour-1)
	return (bits.Len64(rest)-1)*60 + bits.Len64(c.minutes) - 1, rest != 0
}
