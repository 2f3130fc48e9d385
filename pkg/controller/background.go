package controller

import (
	"maps"
	"time"
)

// work is what passes begin for one node and don't wait for: an eviction pass, a live look, a write. One of a kind is
// under way at most. The Term's mutex guards it.
type work[T any] struct {
	// since identifies the disruption of the node.
	since   time.Time
	running bool
	// found is what it came to last; nil: nothing yet.
	found *T
	// pause is how long after that it is not begun again.
	pause time.Duration
}

// works are those of one kind, by the UIDs of their nodes.
type works[T any] map[string]*work[T]

// wholeFleet stands for a UID where the work is not on one node.
const wholeFleet = ""

// on returns the work on a node, made on demand. Another disruption begins with nothing found.
func (m works[T]) on(uid string, since time.Time) *work[T] {
	w := m[uid]
	if w == nil || !w.since.Equal(since) && !w.running {
		w = &work[T]{since: since}
		m[uid] = w
	}
	return w
}

// found returns what was found in that disruption of a node; nil if nothing was.
func (m works[T]) found(uid string, since time.Time) *T {
	if w := m[uid]; w != nil && w.since.Equal(since) {
		return w.found
	}
	return nil
}

// keep forgets the work on all other nodes, but for what is under way.
func (m works[T]) keep(uids map[string]bool) {
	maps.DeleteFunc(m, func(uid string, w *work[T]) bool { return !uids[uid] && !w.running })
}

// backOff makes the pause longer: soon at first, doubled each time up to late.
func (w *work[T]) backOff(soon, late time.Duration) { w.pause = min(max(2*w.pause, soon), late) }

// begin starts work on a node, unless it is under way. What run returns takes in what came of it, under the mutex. Then
// another pass is asked for.
func begin[T any](t *Term, m works[T], uid string, since time.Time, run func() func(*work[T])) {
	t.mu.Lock()
	w := m.on(uid, since)
	idle := !w.running
	w.running = true
	t.mu.Unlock()
	if !idle {
		return
	}
	t.c.Spawn(func() {
		takeIn := run()
		t.mu.Lock()
		defer t.mu.Unlock()
		w.running = false
		takeIn(w)
		t.Changed()
	})
}
