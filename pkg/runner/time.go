package runner

import (
	"context"
	"time"
)

// Time is how a runner reads its clock and waits. It is given, so that a simulation can have a clock of its own.
type Time struct {
	Now func() time.Time
	// Rest returns after d, or when woken can be read, or when ctx ends; false: ctx ended.
	Rest func(ctx context.Context, d time.Duration, woken <-chan struct{}) bool
	// Within is context.WithTimeout.
	Within func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Clock is the time of the machine.
func Clock() Time { return Time{Now: time.Now, Rest: rest, Within: context.WithTimeout} }

func rest(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-time.After(d):
	}
	return true
}

// ever is longer than any process runs.
const ever = 100 * 365 * 24 * time.Hour
