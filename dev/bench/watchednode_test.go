package bench

import (
	"context"
	"sync"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
)

// watchedNode is the real client with a look over its shoulder.
type watchedNode struct {
	agent.Node

	mu sync.Mutex
	// shown is what the watch showed last, answered what the last accepted write brought back.
	shown, answered agent.Snapshot
	// written are accepted reports; failed are reads and reports that came to nothing, for whatever reason.
	written, failed int
	// changed is closed when any of that changes.
	changed chan struct{}
}

var _ agent.Node = (*watchedNode)(nil)

func watched(n agent.Node) *watchedNode { return &watchedNode{Node: n, changed: make(chan struct{})} }

// Get implements agent.Node.
func (a *watchedNode) Get(ctx context.Context) (*agent.Snapshot, error) {
	s, err := a.Node.Get(ctx)
	a.note(func() {
		if err != nil {
			a.failed++
		}
	})
	return s, err
}

// Patch implements agent.Node.
func (a *watchedNode) Patch(ctx context.Context, p agent.Patch) (*agent.Snapshot, error) {
	s, err := a.Node.Patch(ctx, p)
	a.note(func() {
		if err != nil {
			a.failed++
			return
		}
		a.written++
		a.answered = *s
	})
	return s, err
}

// Watch implements agent.Node.
func (a *watchedNode) Watch(ctx context.Context, seen func(*agent.Snapshot)) {
	a.Node.Watch(ctx, func(s *agent.Snapshot) {
		if s != nil {
			a.note(func() { a.shown = *s })
		}
		seen(s)
	})
}

func (a *watchedNode) note(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until something holds; it is looked at under the lock.
func (a *watchedNode) await(ctx context.Context, holds func(*watchedNode) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		a.mu.Lock()
		held, changed := holds(a), a.changed
		a.mu.Unlock()
		if held {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "waiting for an agent")
		case <-changed:
		}
	}
}
