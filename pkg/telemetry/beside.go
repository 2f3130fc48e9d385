package telemetry

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Beside runs a loop with its metrics and probes beside it until the first of them ends or ctx does,
// ends the other, waits for it, and returns the first error.
func Beside(ctx context.Context, run func(context.Context) error, addr string, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	var both errgroup.Group
	both.Go(func() error {
		defer cancel()
		return run(ctx)
	})
	both.Go(func() error {
		defer cancel()
		return Serve(ctx, addr, cfg)
	})
	return both.Wait()
}
