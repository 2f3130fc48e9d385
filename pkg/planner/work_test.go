package planner_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A slot that the list shows already is taken by a write all the same: the list may be an old one, and
// another leader may be about to free the slot.
func TestASlotIsAlwaysTakenByAWrite(t *testing.T) {
	step := plan.Step{Node: "a", UID: "uid-a", Act: intent.ActCordon, Change: &plan.Change{}, TakesSlot: true}
	for _, yes := range []bool{true, false} {
		w := plan.NewWork(plan.Plan{Steps: []plan.Step{step}})
		task, more := w.Next()
		assert.Assert(t, more)
		assert.Equal(t, task.Kind, plan.TaskTakeSlots)
		assert.DeepEqual(t, task.Take, map[string]string{"uid-a": "a"})
		w.Did(yes)
		task, more = w.Next()
		assert.Equal(t, more, yes, "no cordon without it")
		assert.Assert(t, !yes || task.Kind == plan.TaskWrite)
	}
}

// A slot is freed only once the look says that nothing is under way that could need it.
func TestASlotIsFreedByTheRightLook(t *testing.T) {
	for _, before := range []plan.Look{plan.LookGone, plan.LookFenced} {
		for _, yes := range []bool{true, false} {
			w := plan.NewWork(plan.Plan{Steps: []plan.Step{{Node: "a", UID: "uid-a", Act: intent.ActRelease, Before: before, FreesSlot: true}}})
			task, more := w.Next()
			assert.Assert(t, more)
			assert.Assert(t, task.Kind == plan.TaskLook && task.Step.Before == before)
			w.Did(yes)
			task, more = w.Next()
			assert.Equal(t, more, yes)
			assert.Assert(t, !yes || task.Kind == plan.TaskFreeSlots)
		}
	}
}
