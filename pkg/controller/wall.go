package controller

import (
	"context"
	"time"
)

// noWall is what is told of an account that not all of its admission policies hold.
const noWall = "no admission policy holds the controller's account to what is its own to write on Nodes, to create or to evict: " +
	"apply update-operator.yaml whole, and see that the policies update-operator-controller, update-operator-controller-creations and " +
	"update-operator-controller-evictions match this account"

const (
	// wallTime bounds the request that asks for the wall.
	wallTime = 15 * time.Second
	// wallAgain is when it is asked for again once it stood, wallMissing when it did not, and wallUnknown when that could
	// not be found out. wallDoubt is after the first time that it did not stand: an API server takes a policy that was
	// just applied into force some seconds later.
	wallAgain   = time.Hour
	wallDoubt   = 10 * time.Second
	wallMissing = 5 * time.Minute
	wallUnknown = time.Minute
)

// walling is what this process knows of the admission policy.
type walling struct {
	running, doubted bool
	// missing is what is told of a policy that doesn't stand; empty if it does, or that isn't known.
	missing string
	// next is when it is asked for again.
	next time.Time
}

// askForWall finds out whether the admission policy stands, as the term begins and seldom from then on. It returns when
// that is worth a pass of its own; zero if never.
func (t *Term) askForWall(ctx context.Context, node string, now time.Time) time.Time {
	if t.c.Walled == nil {
		return time.Time{}
	}
	t.mu.Lock()
	due := !t.wall.running && !now.Before(t.wall.next)
	t.wall.running = t.wall.running || due
	again := t.wall.next
	if t.wall.missing == "" && !t.wall.doubted {
		again = time.Time{}
	}
	t.mu.Unlock()
	if due {
		t.c.Spawn(func() { t.walled(ctx, node) })
	}
	return again
}

func (t *Term) walled(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, wallTime)
	defer cancel()
	stands, err := t.c.Walled(ctx, node)
	t.mu.Lock()
	defer t.mu.Unlock()
	missing, next, doubted := "", wallAgain, false
	switch {
	case err != nil:
		// The node may be gone, or the API server away.
		t.c.Log.WithError(err).Debug("Could not find out whether the admission policy stands")
		missing, next, doubted = t.wall.missing, wallUnknown, t.wall.doubted
	case !stands && t.wall.missing == "" && !t.wall.doubted:
		next, doubted = wallDoubt, true
	case !stands:
		missing, next = noWall, wallMissing
	}
	if missing != t.wall.missing || doubted {
		t.Changed()
	}
	t.wall = walling{missing: missing, doubted: doubted, next: t.c.Now().Add(next)}
}
