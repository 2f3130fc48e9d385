package controller

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// borneFor is for how long it counts what a node bore.
const borneFor = time.Hour

// borne is what this process has had one node bear. It is kept here and not on the Node, whose kubelet could take it
// away.
type borne struct {
	takenOut time.Time
	// evicted are counts of the last hour, by the minute.
	evicted []evicted
}

type evicted struct {
	at   time.Time
	pods int
}

// bears returns what is known of a node, made on demand. The caller holds t.mu.
func (t *Term) bears(uid string) *borne {
	b := t.borne[uid]
	if b == nil {
		b = &borne{}
		t.borne[uid] = b
	}
	return b
}

func (t *Term) noteTakenOut(uid string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bears(uid).takenOut = now
}

func (t *Term) noteEvicted(uid string, pods int) {
	if pods == 0 {
		return
	}
	now := t.c.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.bears(uid)
	if last := len(b.evicted) - 1; last >= 0 && now.Sub(b.evicted[last].at) < time.Minute {
		b.evicted[last].pods += pods
		return
	}
	b.evicted = append(b.evicted, evicted{now, pods})
}

// settle forgets what is over. No time is later than now: the clock may have run ahead then.
func (b *borne) settle(now time.Time) {
	if b.takenOut.After(now) {
		b.takenOut = now
	}
	for i := range b.evicted {
		if b.evicted[i].at.After(now) {
			b.evicted[i].at = now
		}
	}
	for len(b.evicted) > 0 && now.Sub(b.evicted[0].at) >= borneFor {
		b.evicted = b.evicted[1:]
	}
}

// over reports whether nothing is left to remember.
func (b *borne) over(now time.Time) bool {
	b.settle(now)
	return len(b.evicted) == 0 && now.Sub(b.takenOut) >= borneFor
}

// fill puts into a snapshot's node what it bore.
func (b *borne) fill(n *fleet.Node, now time.Time) {
	b.settle(now)
	n.TakenOut = b.takenOut
	for _, e := range b.evicted {
		n.Evicted += e.pods
	}
	if n.Evicted > 0 {
		n.EvictedUntil = b.evicted[0].at.Add(borneFor)
	}
}
