package window

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// The gaps of a schedule are those between its starts, counted one by one: with larger ones windows would be walked
// through start by start.
func TestGaps(t *testing.T) {
	for _, text := range []string{"0 0 * * *", "* * * * *", "59 23 * * *", "5,50 * * * *", "0 2,22 * * *", "*/7 1-3,9,20 * * *", "10 */5 * * *", "1,2,4 6,7 * * *",
		"0 0 * * 1-5", "0 0 1-31 * 5", "0 0 13 * 0-6", "0 0 13 * *", "0 0 13 * 5", "0 0 * 1-11 *", "0 0 1-30 * *", "0 0 1-31 1-12 *", "0 0 ? * 0"} {
		c, err := ParseCron(text)
		assert.NilError(t, err)
		var want gaps
		first, last := -1, -1
		for m := range 24 * 60 {
			if c.hours>>(m/60)&1 == 0 || c.minutes>>(m%60)&1 == 0 {
				continue
			}
			if gap := time.Duration(m-last) * time.Minute; first < 0 {
				first = m
			} else if want.inDay = max(want.inDay, gap); m/60 == last/60 {
				want.inHour = max(want.inHour, gap)
			}
			last = m
		}
		want.overnight = time.Duration(24*60-last+first) * time.Minute
		// On each weekday it comes always, or never, or now and then.
		var comes, fails [7]bool
		for day := range wall(4 * 366) {
			at, _ := c.after(day*daySeconds - 1)
			if weekday := (day + 4) % 7; at < (day+1)*daySeconds {
				comes[weekday] = true
			} else {
				fails[weekday] = true
			}
		}
		want.daily = fails == [7]bool{}
		weekly := true
		for i := range comes {
			weekly = weekly && comes[i] != fails[i]
		}
		assert.Equal(t, c.gaps, want, text)
		assert.Equal(t, c.weekly(), weekly, text)
	}
}
