package controller

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// What a node bore is remembered for an hour, also of one whose label was taken off meanwhile, and no clock that ran ahead
// makes it longer.
func TestAttackMemoryOfANode(t *testing.T) {
	now := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	term := &Term{c: TermConfig{Now: func() time.Time { return now }}, borne: map[string]*borne{}}
	seen := func(at time.Time) fleet.Node {
		n := fleet.Node{UID: "u"}
		// Nothing is managed.
		term.remember(fleet.Snapshot{Now: at}, plan.Plan{})
		if b := term.borne["u"]; b != nil {
			b.fill(&n, at)
		}
		return n
	}
	for range 3 {
		term.noteEvicted("u", 2)
		now = now.Add(10 * time.Second)
	}
	term.noteTakenOut("u", now)
	n := seen(now)
	assert.Assert(t, n.Evicted == 6 && n.TakenOut.Equal(now) && n.EvictedUntil.After(now))
	assert.Equal(t, seen(now.Add(-5*time.Hour)).Evicted, 6, "the clock is put back")
	assert.Equal(t, seen(now.Add(-4*time.Hour)).Evicted, 0, "an hour later")
	assert.Equal(t, len(term.borne), 0)
}
