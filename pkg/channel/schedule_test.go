package channel

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

var now = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// almostOne is the highest number that a random source returns.
const almostOne = 1 - 1.0/(1<<53)

// A channel that answers is asked every 15 minutes, one that doesn't after 1 minute, 2, 4 and so on up to an hour, each
// 20 % sooner or later; never sooner than it asks for.
func TestWait(t *testing.T) {
	for _, tc := range []struct {
		failures   int
		retryAfter time.Duration
		random     float64
		want       time.Duration
	}{
		{0, 0, 0.5, 15 * time.Minute},
		{0, 0, 0, 12 * time.Minute},
		{0, 0, almostOne, 18 * time.Minute},
		{1, 0, 0.5, time.Minute},
		{1, 0, 0, 48 * time.Second},
		{1, 0, almostOne, 72 * time.Second},
		{2, 0, 0.5, 2 * time.Minute},
		{3, 0, 0.5, 4 * time.Minute},
		{6, 0, 0.5, 32 * time.Minute},
		{7, 0, 0.5, time.Hour},
		{8, 0, 0.5, time.Hour},
		{1 << 40, 0, 0.5, time.Hour},
		{1 << 40, 0, almostOne, 72 * time.Minute},
		// What the channel asks for is the least, and many that were told the same don't come back at once.
		{1, 2 * time.Hour, 0, 2 * time.Hour},
		{1, 2 * time.Hour, 0.5, 2*time.Hour + 6*time.Second},
		{0, 20 * time.Minute, 0, 20 * time.Minute},
		{0, time.Second, 0.5, 15 * time.Minute},
		{7, maxRetryAfter, 0, 24 * time.Hour},
	} {
		t.Run(fmt.Sprint(tc.failures, tc.retryAfter, tc.random), func(t *testing.T) {
			got := wait(tc.failures, tc.retryAfter, tc.random)
			assert.Assert(t, (got-tc.want).Abs() <= time.Millisecond, "got %s, want %s", got, tc.want)
		})
	}
}

// The last good version stays known while there is a problem, and so do the validators that belong to it.
func TestAfter(t *testing.T) {
	a, b := validators{etag: `"a"`}, validators{etag: `"b"`}
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	k := known{}
	for _, tc := range []struct {
		name  string
		after int
		answer
		want known
	}{
		{"it fails", 0, answer{problem: "p"}, known{Result{"", "p", at(0)}, validators{}, 1, at(1)}},
		{"it answers", 1, answer{version: "v1.0.0", validators: a}, known{Result{"v1.0.0", "", at(1)}, a, 0, at(16)}},
		{"it fails again", 16, answer{problem: "q"}, known{Result{"v1.0.0", "q", at(16)}, a, 1, at(17)}},
		{"and once more", 17, answer{problem: "q", retryAfter: time.Minute}, known{Result{"v1.0.0", "q", at(17)}, a, 2, at(19)}},
		{"it has not changed", 19, answer{unchanged: true}, known{Result{"v1.0.0", "", at(19)}, a, 0, at(34)}},
		{"it has another tag", 34, answer{unchanged: true, validators: b}, known{Result{"v1.0.0", "", at(34)}, b, 0, at(49)}},
		{"it redirects", 49, answer{version: "v1.1.0"}, known{Result{"v1.1.0", "", at(49)}, validators{}, 0, at(64)}},
		{"it goes down", 64, answer{version: "v1.0.0"}, known{Result{"v1.0.0", "", at(64)}, validators{}, 0, at(79)}},
	} {
		k = k.after(tc.answer, at(tc.after), 0.5)
		assert.Equal(t, k, tc.want, tc.name)
	}
}
