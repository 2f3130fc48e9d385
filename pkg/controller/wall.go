package controller

import (
	"context"
	"time"
)

// noWall is what is told of an account that no admission policy holds.
const noWall = "no admission policy holds the controller's account to what is its own to write on Nodes: apply update-operator.yaml whole, " +
	"and see that the policy update-operator-controller matches this account"

// wallTime bounds the request that asks for the wall.
const wallTime = 15 * time.Second

// askForWall finds out, once in a term, whether the admission policy stands.
func (t *Term) askForWall(ctx context.Context, node string) {
	if t.c.Walled == nil {
		return
	}
	t.mu.Lock()
	asked := t.wallAsked
	t.wallAsked = true
	t.mu.Unlock()
	if asked {
		return
	}
	t.c.Spawn(func() {
		ctx, cancel := context.WithTimeout(ctx, wallTime)
		defer cancel()
		walled, err := t.c.Walled(ctx, node)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case err != nil:
			// The node may be gone, or the API server away: the next pass asks again.
			t.c.Log.WithError(err).Debug("Could not find out whether the admission policy stands")
			t.wallAsked = false
		case !walled:
			t.unwalled = noWall
			t.Changed()
		}
	})
}
