package window_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// FuzzParseCron holds that nothing makes the parser panic, that an error quotes what it is about, and that
// what is accepted comes some day and reads the same again.
func FuzzParseCron(f *testing.F) {
	for _, s := range []string{"", "* * * * *", "*/5 0-3,22 1,15 jan-MAR/2 sun", "@daily", "@every 1h", "TZ=UTC * * * * *", "0 0 31 2 *",
		"0 0 29 2 *", "1/2147483647 * * * *", "60 * * * *", "* * * * 7", "?,* */1 ? 2-2 0/6", "- , / * *", "\u00a00 0 1 1 ?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := window.ParseCron(text)
		if err != nil {
			assert.ErrorContains(t, err, strconv.Quote(text)+": ")
			assert.Equal(t, c, window.Cron{})
			return
		}
		assert.Equal(t, c.String(), text)
		again, err := window.ParseCron(c.String())
		assert.NilError(t, err)
		assert.Equal(t, again, c)
		w := window.Calendar{Windows: []window.Window{{Schedule: c, Duration: time.Second, Zone: time.UTC}}}
		now := time.Date(2096, 2, 29, 23, 59, 30, 0, time.UTC)
		opens := w.At(now).Opens
		assert.Assert(t, opens.After(now) && !opens.After(now.AddDate(8, 0, 0)), "%q opens at %s", text, opens)
		assert.Assert(t, w.At(opens).Open)
	})
}

// changes of clocks, ordinary and odd ones, and times at which what is known of a zone has an edge.
var changes = []struct{ zone, at string }{
	{"Europe/Berlin", "2025-03-30T01:00:00Z"},
	{"Europe/Berlin", "2025-10-26T01:00:00Z"},
	{"America/New_York", "2024-03-10T07:00:00Z"},
	{"America/New_York", "2024-11-03T06:00:00Z"},
	{"Australia/Lord_Howe", "2025-04-05T15:00:00Z"}, // Half an hour back.
	{"Australia/Lord_Howe", "2025-10-04T15:30:00Z"},
	{"America/Santiago", "2024-04-07T03:00:00Z"}, // At midnight.
	{"America/Santiago", "2024-09-08T04:00:00Z"},
	{"Africa/Cairo", "2024-04-25T22:00:00Z"},
	{"Africa/Cairo", "2024-10-31T21:00:00Z"},
	{"America/St_Johns", "2005-04-03T03:31:00Z"},  // A minute after midnight.
	{"Antarctica/Troll", "2025-03-30T01:00:00Z"},  // Two hours.
	{"Antarctica/Casey", "2010-03-04T15:00:00Z"},  // Three hours back.
	{"Africa/Casablanca", "2025-02-23T02:00:00Z"}, // Six weeks between two of them.
	{"Pacific/Kwajalein", "1969-09-30T13:00:00Z"}, // 23 hours back.
	{"Pacific/Kwajalein", "1993-08-20T12:00:00Z"}, // A day left out.
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Europe/Berlin", "2051-03-26T01:00:00Z"}, // By the rule for the future,
	{"Europe/Berlin", "2048-12-31T12:00:00Z"}, // which knows years of 365 days.
	{"Asia/Kolkata", "2025-01-01T00:00:00Z"},  // None.
}

// draw makes up one field, as text and as what it matches.
func draw(r *rand.Rand, low, high int) (text string, matches map[int]bool, star bool) {
	matches = map[int]bool{}
	var parts []string
	for range 1 + r.IntN(2) {
		from, to, step := low, high, 1
		part := "*"
		switch r.IntN(4) {
		case 0:
			from = low + r.IntN(high-low+1)
			to = from
			part = fmt.Sprint(from)
		case 1:
			from = low + r.IntN(high-low+1)
			to = from + r.IntN(high-from+1)
			part = fmt.Sprintf("%d-%d", from, to)
		case 2:
			step = 2 + r.IntN(high)
			part = fmt.Sprintf("*/%d", step)
		case 3:
			star = true
		}
		parts = append(parts, part)
		for v := from; v <= to; v += step {
			matches[v] = true
		}
	}
	return strings.Join(parts, ","), matches, star
}

// drawn makes up a schedule.
func drawn(r *rand.Rand) (text string, matches func(time.Time) bool) {
	minute, minutes, _ := draw(r, 0, 59)
	if r.IntN(2) == 0 {
		minute, minutes = "30", map[int]bool{30: true}
	}
	hour, hours, _ := draw(r, 0, 23)
	day, days, dayStar := draw(r, 1, 31)
	weekday, weekdays, weekdayStar := draw(r, 0, 6)
	return strings.Join([]string{minute, hour, day, "*", weekday}, " "), func(w time.Time) bool {
		onDay := days[w.Day()] && weekdays[int(w.Weekday())]
		if !dayStar && !weekdayStar {
			onDay = days[w.Day()] || weekdays[int(w.Weekday())]
		}
		return onDay && hours[w.Hour()] && minutes[w.Minute()]
	}
}

// FuzzAt holds that calendars made up at random say around a change of the clock what the reference says.
func FuzzAt(f *testing.F) {
	for i := range changes {
		f.Add(uint8(i), uint64(i))
		f.Add(uint8(i), uint64(i+1000))
	}
	f.Fuzz(func(t *testing.T, change uint8, seed uint64) {
		const before, after = 7 * 24 * 60, 4 * 24 * 60
		near := changes[int(change)%len(changes)]
		r := rand.New(rand.NewPCG(seed, 0))
		ref := reference{from: moment(t, near.at).Add(-before * time.Minute)}
		var c window.Calendar
		zone := near.zone
		for range 1 + r.IntN(3) {
			text, matches := drawn(r)
			d := time.Duration(1+r.IntN([]int{60, 24 * 60, 4 * 24 * 60}[r.IntN(3)])) * time.Minute
			w := in(t, text, d, zone)
			c.Windows = append(c.Windows, w)
			ref.add(plain{matches, d, w.Zone}.opened(ticks(ref.from, before+after, w.Zone), before+after))
			if r.IntN(2) == 0 {
				zone = changes[r.IntN(len(changes))].zone
			}
		}
		for range r.IntN(3) {
			from := ref.at(r.IntN(before + after))
			freeze := window.Freeze{From: from, To: from.Add(time.Duration(1+r.IntN(2*24*60)) * time.Minute), Reason: "x"}
			c.Freezes = append(c.Freezes, freeze)
			ref.freeze(freeze)
		}
		ref.finish()
		valid(t, c)
		defer func() {
			if t.Failed() {
				t.Logf("%s: %v", near, c)
			}
		}()
		ref.boundaries(t, c, 5*24*60)
	})
}
