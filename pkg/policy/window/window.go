package window

import (
	"math"
	"time"

	"github.com/pkg/errors"
)

// MaxDuration is the longest that a window may stay open after a start: a leap year.
const MaxDuration = 366 * 24 * time.Hour

// Window opens at each start of its schedule. A start that comes while it is open keeps it open.
//
// Where clocks are changed, a start whose wall-clock time is left out comes at the change, and one whose
// wall-clock time comes twice comes the first time only, also one of an hourly schedule.
type Window struct {
	Schedule Cron `yaml:"schedule" need:"give one such as 0 2 * * sat"`
	// Duration is elapsed time from a start to the close, not wall-clock time; more than 0 and at most
	// MaxDuration. The moment of the close is outside.
	Duration time.Duration `yaml:"duration" need:"give one such as 4h"`
	// Zone is whose wall clock the schedule means.
	Zone *time.Location `yaml:"timeZone"`
}

// Validate returns the first thing that is wrong, with the remedy. It begins with the name of the field.
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

// line is a window along time.
type line struct {
	Window
	clock clock
}

// opens is the first moment from t on at which the window is open; false if there is none within reach.
func (l *line) opens(t time.Time) (time.Time, bool) {
	shown := l.clock.shown(t.Unix())
	if start, ok := l.Schedule.before(shown); ok && l.closing(start).After(t) {
		return t, true
	}
	start, ok := l.Schedule.after(shown)
	return time.Unix(l.clock.comes(start), 0), ok
}

// closing is when the window closes if nothing comes after a start.
func (l *line) closing(start wall) time.Time {
	return time.Unix(l.clock.comes(start), 0).Add(l.Duration)
}

// closes is the first moment from t on at which the window isn't open; false if there is none up to limit.
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

// along passes over starts that each come while the one before keeps the window open, and returns the last
// of them. It goes as far as the schedule alone tells, and as far as the clock isn't changed.
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
	l.clock.look(l.clock.comes(start))
	until = min(until, wall(l.clock.to-1+l.clock.offset))
	if last, ok := l.Schedule.before(until); ok {
		return max(start, last)
	}
	return start
}
