package window

import (
	"math"
	"time"

	"github.com/pkg/errors"
)

// MaxDuration is the longest duration of a window: a leap year.
const MaxDuration = 366 * 24 * time.Hour

// Window opens at each start of its schedule. A start while it is open keeps it open.
//
// When clocks change, a start at a skipped wall-clock time is at the change, and one at a repeated wall-clock time is
// the first time only, also in an hourly schedule.
type Window struct {
	Schedule Cron `yaml:"schedule" need:"give one such as 0 2 * * sat"`
	// Duration is the elapsed time from a start to the close, which is exclusive; it is not wall-clock time. It is more
	// than 0 and at most MaxDuration.
	Duration time.Duration `yaml:"duration" need:"give one such as 4h"`
	// Zone is the time zone of the schedule.
	Zone *time.Location `yaml:"timeZone"`
}

// Validate returns the first mistake, with the field's name and the remedy.
func (w Window) Validate() error {
	switch {
	case w.Duration <= 0 || w.Duration > MaxDuration:
		return errors.Errorf("duration is %s: give more than 0 and at most %s", w.Duration, MaxDuration)
	case w.Schedule.text == "":
		return errors.New("schedule is missing: give one such as 0 2 * * sat")
	case w.Zone == nil:
		return errors.New("timeZone is missing: give one such as Europe/Berlin")
	}
	return nil
}

// line is a window with its zone's clock.
type line struct {
	Window
	clock clock
}

// opens returns the first moment from t on at which the window is open; false if there is none within reach.
func (l *line) opens(t time.Time) (time.Time, bool) {
	shown := l.clock.shown(t.Unix())
	if start, ok := l.Schedule.before(shown); ok && l.closing(start).After(t) {
		return t, true
	}
	start, ok := l.Schedule.after(shown)
	return time.Unix(l.clock.reaches(start), 0), ok
}

// closing returns when the window closes after a start, without further starts.
func (l *line) closing(start wall) time.Time {
	return time.Unix(l.clock.reaches(start), 0).Add(l.Duration)
}

// closes returns the first moment from t on at which the window isn't open; false if there is none up to limit.
func (l *line) closes(t, limit time.Time) (time.Time, bool) {
	for !t.After(limit) {
		start, ok := l.Schedule.before(l.clock.shown(t.Unix()))
		if !ok {
			return t, true
		}
		closing := l.closing(l.along(start))
		if !closing.After(t) {
			return t, true
		}
		t = closing
	}
	return time.Time{}, false
}

// along skips starts while each of them comes before the window closes, and returns the last one. It goes as far as the
// schedule's gaps show that, and up to the next clock change.
func (l *line) along(start wall) wall {
	gaps := l.Schedule.gaps
	var until wall
	switch {
	case l.Duration < gaps.inHour:
		return start
	case l.Duration < gaps.inDay:
		until = start.floor(60*60) + 60*60 - 1
	case l.Duration < gaps.overnight || !gaps.daily:
		until = start.floor(daySeconds) + daySeconds - 1
	default:
		until = math.MaxInt64
	}
	l.clock.load(l.clock.reaches(start))
	until = min(until, wall(l.clock.to-1+l.clock.offset))
	if last, ok := l.Schedule.before(until); ok {
		return max(start, last)
	}
	return start
}
