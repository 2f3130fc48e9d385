package controller

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// evictedFor is for how long an eviction counts.
const evictedFor = time.Hour

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

// tell puts into a snapshot's node what it bore.
func (b *borne) tell(n *fleet.Node, now time.Time) {
	n.TakenOut = b.takenOut
	for len(b.evicted) > 0 && now.Sub(b.evicted[0].at) >= evictedFor {
		b.evicted = b.evicted[1:]
	}
	for _, e := range b.evicted {
		n.Evicted += e.pods
	}
	if n.Evicted > 0 {
		n.EvictedUntil = b.evicted[0].at.Add(evictedFor)
	}
}
