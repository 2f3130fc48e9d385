package window_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// lead is longer than every window of the year below, and longer than what is looked at after it.
const lead = 45 * 24 * time.Hour

// year is a year of a zone, with what comes before and after it, as the reference sees it.
type year struct {
	zone  *time.Location
	from  time.Time
	ticks []tick
	// begins and minutes: where the year begins and the whole ends.
	begins, minutes int
}

func yearOf(t testing.TB, name string, number int) year {
	y := year{zone: zone(t, name), from: time.Date(number, 1, 1, 0, 0, 0, 0, time.UTC).Add(-lead)}
	y.begins = int(lead / time.Minute)
	y.minutes = int(time.Date(number+1, 1, 1, 0, 0, 0, 0, time.UTC).Add(lead).Sub(y.from) / time.Minute)
	y.ticks = ticks(y.from, y.minutes, y.zone)
	return y
}

// A simulated clock runs windows through a whole year against the reference, in zones that are set forward
// and back in it: by an hour at night, by an hour at midnight, by half an hour, by a whole day, and never.
func TestYear(t *testing.T) {
	weekend := func(d time.Weekday) bool { return d == time.Saturday || d == time.Sunday }
	schedules := []struct {
		text     string
		duration time.Duration
		matches  func(w time.Time) bool
	}{
		{"30 2 * * *", 90 * time.Minute, func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 }},
		{"0 0 * * *", time.Hour, func(w time.Time) bool { return w.Hour() == 0 && w.Minute() == 0 }},
		{"0 0 * * *", 24 * time.Hour, func(w time.Time) bool { return w.Hour() == 0 && w.Minute() == 0 }},
		{"@hourly", time.Hour, func(w time.Time) bool { return w.Minute() == 0 }},
		{"* * * * *", time.Minute, func(time.Time) bool { return true }},
		{"*/20 23,0-3 * * sat,sun", 7 * time.Minute, func(w time.Time) bool {
			return (w.Hour() == 23 || w.Hour() <= 3) && w.Minute()%20 == 0 && weekend(w.Weekday())
		}},
		{"0-30/5 8,9 * * *", 20 * time.Minute, func(w time.Time) bool {
			return (w.Hour() == 8 || w.Hour() == 9) && w.Minute()%5 == 0 && w.Minute() <= 30
		}},
		{"5 22 * * 1-5", 9 * time.Hour, func(w time.Time) bool {
			return w.Hour() == 22 && w.Minute() == 5 && !weekend(w.Weekday())
		}},
		{"15 0-4 13 * 5", 61 * time.Minute, func(w time.Time) bool {
			return w.Hour() <= 4 && w.Minute() == 15 && (w.Day() == 13 || w.Weekday() == time.Friday)
		}},
		{"0 3 31 */2 *", 30 * 24 * time.Hour, func(w time.Time) bool {
			return w.Hour() == 3 && w.Minute() == 0 && w.Day() == 31 && w.Month()%2 == 1
		}},
		{"0 1 29 2,3 ?", 30 * time.Hour, func(w time.Time) bool {
			return w.Hour() == 1 && w.Minute() == 0 && w.Day() == 29 && (w.Month() == 2 || w.Month() == 3)
		}},
	}
	changes := 0
	for _, z := range []struct {
		name string
		year int
	}{
		{"Europe/Berlin", 2025}, {"America/New_York", 2024}, {"Australia/Lord_Howe", 2026}, {"America/Santiago", 2024},
		{"Africa/Cairo", 2024}, {"Asia/Kolkata", 2025}, {"Pacific/Apia", 2011},
	} {
		t.Run(z.name, func(t *testing.T) {
			y := yearOf(t, z.name, z.year)
			for _, s := range schedules {
				t.Run(s.text, func(t *testing.T) {
					r := reference{from: y.from}
					r.add(plain{s.matches, s.duration, y.zone}.opened(y.ticks, y.minutes))
					r.finish()
					c := window.Calendar{Windows: []window.Window{in(t, s.text, s.duration, z.name)}}
					changes += r.boundaries(t, c, y.begins)
				})
			}
		})
	}
	t.Logf("%d changes between open and closed", changes)
	assert.Assert(t, changes > 40000, "%d", changes)
}

// Windows of several zones and freezes together: they overlap, meet, and cut each other.
func TestYearOfACalendar(t *testing.T) {
	berlin, york := yearOf(t, "Europe/Berlin", 2025), yearOf(t, "America/New_York", 2025)
	at := func(text string) time.Time { return moment(t, text) }
	c := window.Calendar{
		Windows: []window.Window{
			in(t, "0 22 * * *", 6*time.Hour, "Europe/Berlin"), in(t, "0 22 * * *", 5*time.Hour, "America/New_York"),
			in(t, "0 8 1 * *", 48*time.Hour, "Europe/Berlin"),
		},
		Freezes: []window.Freeze{
			{From: at("2025-12-20T00:00:00+01:00"), To: at("2026-01-02T00:00:00+01:00"), Reason: "holidays"},
			{From: at("2025-03-30T00:30:00+01:00"), To: at("2025-03-30T03:30:00+02:00")},
			{From: at("2025-07-01T00:00:00Z"), To: at("2025-07-04T00:00:00Z")},
			{From: at("2025-07-04T00:00:00Z"), To: at("2025-07-05T12:00:00Z")},
			{From: at("2025-07-03T00:00:00Z"), To: at("2025-07-03T01:00:00Z")},
		},
	}
	valid(t, c)
	night := func(w time.Time) bool { return w.Hour() == 22 && w.Minute() == 0 }
	r := reference{from: berlin.from}
	r.add(plain{night, 6 * time.Hour, berlin.zone}.opened(berlin.ticks, berlin.minutes))
	r.add(plain{night, 5 * time.Hour, york.zone}.opened(york.ticks, york.minutes))
	r.add(plain{func(w time.Time) bool { return w.Day() == 1 && w.Hour() == 8 && w.Minute() == 0 }, 48 * time.Hour, berlin.zone}.
		opened(berlin.ticks, berlin.minutes))
	for _, f := range c.Freezes {
		r.freeze(f)
	}
	r.finish()
	changes := r.boundaries(t, c, berlin.begins)
	assert.Assert(t, changes > 700, "%d", changes)
}
