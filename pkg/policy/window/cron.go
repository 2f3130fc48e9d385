package window

import (
	"math/bits"
	"strings"
	"time"

	"github.com/pkg/errors"
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

// macros are written out as they are defined.
var macros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// ParseCron reads a schedule as Kubernetes' CronJob writes it: minute, hour, day of the month, month and
// day of the week, each of them *, ?, or a list of numbers, names, ranges and steps; or a macro such as
// @daily. If neither day field has a *, a day that either of them names is enough; a step such as */2 is
// no *. Refused are @every, which names no time of day, time zones, which stand beside a schedule, and a
// schedule that never comes. An error names the field.
func ParseCron(text string) (Cron, error) {
	c, err := parse(text)
	if err != nil {
		return Cron{}, errors.Wrapf(err, "schedule %q", text)
	}
	return c, nil
}

func parse(text string) (Cron, error) {
	switch {
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		return Cron{}, errors.New("a time zone has no place in a schedule: use timeZone")
	case strings.HasPrefix(text, "@every"):
		return Cron{}, errors.New("@every names no time of day: give the times in five fields, such as 0 */6 * * *")
	}
	written := text
	if strings.HasPrefix(text, "@") {
		var ok bool
		if written, ok = macros[text]; !ok {
			return Cron{}, errors.New("no such macro: use @yearly, @monthly, @weekly, @daily or @hourly")
		}
	}
	parts := strings.Fields(written)
	if len(parts) != len(fields) {
		return Cron{}, errors.Errorf("it has %d fields: give minute, hour, day of month, month and day of week", len(parts))
	}
	c := Cron{text: text}
	var restricted [len(fields)]bool
	for i, into := range []*uint64{&c.minutes, &c.hours, &c.days, &c.months, &c.weekdays} {
		var err error
		if *into, restricted[i], err = fields[i].parse(parts[i]); err != nil {
			return Cron{}, errors.Wrap(err, fields[i].name)
		}
	}
	c.either = restricted[2] && restricted[4]
	if !c.comes() {
		return Cron{}, errors.New("day of month: none of its months has such a day")
	}
	c.gaps = c.measure()
	return c, nil
}

// comes tells if there is ever such a day. A day of the week comes in every month.
func (c Cron) comes() bool {
	for m := time.January; m <= time.December; m++ {
		const leap = 2000
		if c.months>>m&1 == 1 && (c.either || c.days&upTo(monthLength(leap, m)) != 0) {
			return true
		}
	}
	return false
}

// String is the text that the schedule was made of.
func (c Cron) String() string { return c.text }

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
	allDays, allWeekdays := c.days == fields[2].all(), c.weekdays == fields[4].all()
	return gaps{
		inHour:    time.Duration(inHour) * time.Minute,
		inDay:     time.Duration(inDay) * time.Minute,
		overnight: time.Duration(24*60-60*lastHour-last+60*firstHour+first) * time.Minute,
		daily:     c.months == fields[3].all() && (allDays && allWeekdays || c.either && (allDays || allWeekdays)),
	}
}

// weekly tells if the day of the week alone decides on which days it comes.
func (c Cron) weekly() bool {
	return c.gaps.daily || c.months == fields[3].all() && c.days == fields[2].all() && !c.either
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
