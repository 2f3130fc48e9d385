package controller

import (
	"context"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// slotted counts the writes of slots.
type slotted struct {
	Cluster
	takes, frees int
}

func (c *slotted) ChangeSlots(_ context.Context, take map[string]string, free []string) error {
	c.takes, c.frees = c.takes+len(take), c.frees+len(free)
	return nil
}

// S1: a leader that was stopped plans from what it was shown before, when it wakes, and another one may lead by then. So
// in doubt it takes no slot; one may always be freed.
func TestNoSlotInDoubt(t *testing.T) {
	leads := false
	c := slotted{}
	term := newScripted(0).term()
	term.c.Cluster, term.c.Leading = &c, func() bool { return leads }
	take := plan.Task{Kind: plan.TaskTakeSlots, Take: map[string]string{"uid-a": "a"}}
	took, err := term.do(t.Context(), fleet.Snapshot{}, take)
	assert.NilError(t, err)
	assert.Assert(t, !took && c.takes == 0)
	freed, err := term.do(t.Context(), fleet.Snapshot{}, plan.Task{Kind: plan.TaskFreeSlots, Free: []string{"uid-b"}})
	assert.NilError(t, err)
	assert.Assert(t, freed && c.frees == 1)
	leads = true
	took, err = term.do(t.Context(), fleet.Snapshot{}, take)
	assert.NilError(t, err)
	assert.Assert(t, took && c.takes == 1)
}
