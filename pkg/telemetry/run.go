package telemetry

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// RunAndServe runs a loop and serves its metrics and probes until one of the two or ctx ends. It then ends the other
// one, waits for it, and returns the first error.
func RunAndServe(ctx context.Context, run func(context.Context) error, addr string, cfg Config) error {
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
