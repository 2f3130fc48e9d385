package agent

import (
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
)

// An agent is deaf when its watch fails for half a minute, or stands in silence for longer than any watch lasts.
func TestReach(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	refused := errors.New("connection refused")
	r := &reach{now: func() time.Time { return now }}
	hears := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		if err := r.err(); want == "" {
			assert.NilError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	hears(0, "")
	r.failed(refused)
	hears(0, "connection refused") // it never heard anything
	r.answered()
	hears(10*time.Minute, "")
	r.failed(refused)
	hears(29*time.Second, "")
	r.failed(refused)
	hears(time.Second, "the node can't be watched through the proxy: connection refused")
	r.answered()
	hears(11*time.Minute-time.Second, "")
	hears(time.Second, "nothing has come through the watch of the node for 11m0s")
	r.answered()
	hears(time.Minute, "")
}
