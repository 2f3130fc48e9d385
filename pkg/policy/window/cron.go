package window

import (
	"math/bits"
	"regexp"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/robfig/cron/v3"
)

// Cron is a schedule: wall-clock minutes of certain days. The zero value never matches.
type Cron struct {
	text string
	// Bit n of each is set if n matches: minutes and hours from 0, days of the month and months from 1, days of the week
	// from 0, which is Sunday.
	minutes, hours, days, months, weekdays uint64
	// either: both day fields are restricted, so a match of one of them is enough.
	either bool
	gaps   gaps
}

// fields are a schedule's fields, in order.
var fields = [5]struct {
	name string
	is   cron.ParseOption
	// values are the allowed ones, for messages.
	values string
}{
	{"minute", cron.Minute, "0 to 59"},
	{"hour", cron.Hour, "0 to 23"},
	{"day of month", cron.Dom, "1 to 31"},
	{"month", cron.Month, "1 to 12 or jan to dec"},
	{"day of week", cron.Dow, "0, which is Sunday, to 6 or sun to sat"},
}

// entry is the form of one entry of a field's list. The library accepts more: *-5 for *, for example.
var entry = regexp.MustCompile(`^([*?]|\w+(-\w+)?)(/\d+)?$`)

// ParseCron reads a schedule in the format of Kubernetes' CronJob: minute, hour, day of the month, month and day of the
// week, each of them *, ?, or a list of numbers, names, ranges and steps; or a macro such as @daily. If neither day
// field is *, a match of one of them is enough; a step such as */2 is no *. It refuses @every, which has no time of
// day, time zones, which have a field of their own, and a schedule that never matches. The error names the field.
func ParseCron(text string) (Cron, error) {
	c, err := parse(text)
	return c, errors.Wrapf(err, "%q", text)
}

func parse(text string) (Cron, error) {
	if !strings.HasPrefix(text, "@") {
		if err := check(text); err != nil {
			return Cron{}, err
		}
	}
	// The library returns another type for @every.
	parsed, err := cron.ParseStandard(text)
	s, timed := parsed.(*cron.SpecSchedule)
	switch {
	case err != nil || !timed:
		return Cron{}, errors.New("no such macro: give @yearly, @monthly, @weekly, @daily or @hourly, " +
			"or five fields such as 0 */6 * * *")
	case s.Next(time.Time{}).IsZero():
		return Cron{}, errors.New("day of month: no month of the schedule has such a day")
	}
	// The library sets the highest bit of a field with *.
	const star = 1 << 63
	c := Cron{text: text, minutes: s.Minute &^ star, hours: s.Hour &^ star, days: s.Dom &^ star, months: s.Month &^ star,
		weekdays: s.Dow &^ star, either: s.Dom&star == 0 && s.Dow&star == 0}
	c.gaps = c.measure()
	return c, nil
}

// check returns the first mistake in a schedule's fields, with the field's name.
func check(text string) error {
	// The library would accept it, and panics if nothing follows it.
	if strings.Contains(text, "TZ=") {
		return errors.New("a schedule can't name a time zone: use timeZone")
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		return errors.Errorf("it has %d fields: give minute, hour, day of month, month and day of week", len(parts))
	}
	for i, f := range fields {
		for part := range strings.SplitSeq(parts[i], ",") {
			// Each entry is parsed alone, with the defaults of the other fields.
			_, err := cron.NewParser(f.is).Parse(part)
			if err != nil || !entry.MatchString(part) {
				return errors.Errorf("%s: %q is not valid: give %s, a range such as 1-5 that begins before its end, "+
					"a step such as */2, *, or a list of those", f.name, part, f.values)
			}
		}
	}
	return nil
}

// String returns the text that the schedule was parsed from.
func (c Cron) String() string { return c.text }

// Fields without a restriction.
const everyDay, everyMonth, everyWeekday = 1<<32 - 2, 1<<13 - 2, 1<<7 - 1

// gaps are how long a window must be to stay open from one start to the next.
type gaps struct {
	// inHour, inDay and overnight are the longest times from a start to the next one in the same hour, on the same day,
	// and on the next day.
	inHour, inDay, overnight time.Duration
	// daily: the schedule matches on each day.
	daily bool
}

func (c Cron) measure() gaps {
	inHour := widest(c.minutes)
	first, last := bits.TrailingZeros64(c.minutes), bits.Len64(c.minutes)-1
	inDay := inHour
	if w := widest(c.hours); w > 0 {
		inDay = max(inDay, 60*w-last+first)
	}
	firstHour, lastHour := bits.TrailingZeros64(c.hours), bits.Len64(c.hours)-1
	allDays, allWeekdays := c.days == everyDay, c.weekdays == everyWeekday
	return gaps{
		inHour:    time.Duration(inHour) * time.Minute,
		inDay:     time.Duration(inDay) * time.Minute,
		overnight: time.Duration(24*60-60*lastHour-last+60*firstHour+first) * time.Minute,
		daily:     c.months == everyMonth && (allDays && allWeekdays || c.either && (allDays || allWeekdays)),
	}
}

// weekly reports whether the days of the schedule depend on the day of the week alone.
func (c Cron) weekly() bool {
	return c.gaps.daily || c.months == everyMonth && c.days == everyDay && !c.either
}

// widest returns the largest distance between two neighbouring set bits.
func widest(set uint64) int {
	w := 0
	for rest := set & (set - 1); rest != 0; rest &= rest - 1 {
		at := bits.TrailingZeros64(rest)
		w = max(w, at-bits.Len64(set&upTo(at-1))+1)
	}
	return w
}

// upTo returns a set with the bits 0 to n.
func upTo(n int) uint64 { return 1<<(n+1) - 1 }
