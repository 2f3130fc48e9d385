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
	// Bit n of each stands for n: minutes from 0, hours from 0, days of the month from 1, months from 1,
	// days of the week from Sunday, 0.
	minutes, hours, days, months, weekdays uint64
	// either: both day fields are restricted, so one of them is enough.
	either bool
	gaps   gaps
}

// fields are those of a schedule, in their order.
var fields = [5]struct {
	name string
	is   cron.ParseOption
	// takes is what one entry of its list may be.
	takes string
}{
	{"minute", cron.Minute, "0 to 59"},
	{"hour", cron.Hour, "0 to 23"},
	{"day of month", cron.Dom, "1 to 31"},
	{"month", cron.Month, "1 to 12 or jan to dec"},
	{"day of week", cron.Dow, "0, which is Sunday, to 6 or sun to sat"},
}

// entry is the form of one entry of a field's list. The library takes more: *-5 for *, for example.
var entry = regexp.MustCompile(`^([*?]|\w+(-\w+)?)(/\d+)?$`)

// ParseCron reads a schedule as Kubernetes' CronJob writes it: minute, hour, day of the month, month and
// day of the week, each of them *, ?, or a list of numbers, names, ranges and steps; or a macro such as
// @daily. If neither day field has a *, a day that either of them names is enough; a step such as */2 is
// no *. Refused are @every, which names no time of day, time zones, which stand beside a schedule, and a
// schedule that never comes. An error names the field.
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
	// @every is not a SpecSchedule.
	parsed, err := cron.ParseStandard(text)
	s, timed := parsed.(*cron.SpecSchedule)
	switch {
	case err != nil || !timed:
		return Cron{}, errors.New("no such macro: give @yearly, @monthly, @weekly, @daily or @hourly, " +
			"or five fields such as 0 */6 * * *")
	case s.Next(time.Time{}).IsZero():
		return Cron{}, errors.New("day of month: none of its months has such a day")
	}
	// The library marks a field that has a * with its highest bit.
	const star = 1 << 63
	c := Cron{text: text, minutes: s.Minute &^ star, hours: s.Hour &^ star, days: s.Dom &^ star, months: s.Month &^ star,
		weekdays: s.Dow &^ star, either: s.Dom&star == 0 && s.Dow&star == 0}
	c.gaps = c.measure()
	return c, nil
}

// check returns what is wrong with the fields of a schedule, with the name of the first that is.
func check(text string) error {
	// The library would take it, and panics where nothing follows it.
	if strings.Contains(text, "TZ=") {
		return errors.New("a time zone has no place in a schedule: use timeZone")
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		return errors.Errorf("it has %d fields: give minute, hour, day of month, month and day of week", len(parts))
	}
	for i, f := range fields {
		for part := range strings.SplitSeq(parts[i], ",") {
			// Each entry is read as a field alone, with the defaults of the others.
			_, err := cron.NewParser(f.is).Parse(part)
			if err != nil || !entry.MatchString(part) {
				return errors.Errorf("%s: %q is not valid: give %s, a range such as 1-5 that begins before its end, "+
					"a step such as */2, *, or a list of those", f.name, part, f.takes)
			}
		}
	}
	return nil
}

// String is the text that the schedule was made of.
func (c Cron) String() string { return c.text }

// Fields without a restriction.
const everyDay, everyMonth, everyWeekday = 1<<32 - 2, 1<<13 - 2, 1<<7 - 1

// gaps are what must be bridged for one start to run on into the next.
type gaps struct {
	// inHour, inDay and overnight are the longest times from a start to the next one of the same hour, of
	// the same day, and of the next day.
	inHour, inDay, overnight time.Duration
	// daily: it comes on each day.
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

// weekly tells if the day of the week alone decides on which days it comes.
func (c Cron) weekly() bool {
	return c.gaps.daily || c.months == everyMonth && c.days == everyDay && !c.either
}

// widest is the largest difference of two bits that are set with none between them.
func widest(set uint64) int {
	w := 0
	for rest := set & (set - 1); rest != 0; rest &= rest - 1 {
		at := bits.TrailingZeros64(rest)
		w = max(w, at-bits.Len64(set&upTo(at-1))+1)
	}
	return w
}

// upTo has the bits 0 to n.
func upTo(n int) uint64 { return 1<<(n+1) - 1 }
