package agent

import (
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
)

// A watch counts as failed when it can't begin for half a minute, or is silent for longer than any watch lasts.
func TestWatchState(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	refused := errors.New("connection refused")
	r := &watchState{now: func() time.Time { return now }}
	check := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		if err := r.err(); want == "" {
			assert.NilError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	check(0, "")
	r.failed(refused)
	check(0, "connection refused") // nothing came through it yet
	r.answered()
	check(10*time.Minute, "")
	r.failed(refused)
	check(29*time.Second, "")
	r.failed(refused)
	check(time.Second, "the node can't be watched through the proxy: connection refused")
	r.answered()
	check(11*time.Minute-time.Second, "")
	check(time.Second, "nothing has come through the watch of the node for 11m0s")
	r.answered()
	check(time.Minute, "")
}
