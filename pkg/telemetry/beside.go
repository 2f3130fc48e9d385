package telemetry

import (
	"context"
	"sync"
)

// Beside runs a loop with its metrics and probes beside it until the first of them ends or ctx does,
// ends the other, waits for it, and returns the first error.
func Beside(ctx context.Context, run func(context.Context) error, addr string, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var both sync.WaitGroup
	ends := make(chan error, 2)
	start := func(f func(context.Context) error) {
		both.Go(func() {
			defer cancel()
			ends <- f(ctx)
		})
	}
	start(run)
	start(func(ctx context.Context) error { return Serve(ctx, addr, cfg) })
	both.Wait()
	close(ends)
	for err := range ends {
		if err != nil {
			return err
		}
	}
	return nil
}
