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
		w.Answered(yes)
		task, more = w.Next()
		assert.Equal(t, more, yes, "no cordon without it")
		assert.Assert(t, !yes || task.Kind == plan.TaskWrite)
	}
}

// A slot is freed only once the look says that nothing is under way that could need it.
func TestASlotIsFreedByTheRightLook(t *testing.T) {
	for _, tc := range []struct {
		reason plan.Reason
		kind   plan.TaskKind
	}{{plan.ReasonNodeGone, plan.TaskLookGone}, {plan.ReasonSlotOrphaned, plan.TaskLookFenced}} {
		for _, yes := range []bool{true, false} {
			w := plan.NewWork(plan.Plan{Steps: []plan.Step{{Node: "a", UID: "uid-a", Act: intent.ActRelease, Reason: tc.reason, FreesSlot: true}}})
			task, more := w.Next()
			assert.Assert(t, more)
			assert.Equal(t, task.Kind, tc.kind)
			w.Answered(yes)
			task, more = w.Next()
			assert.Equal(t, more, yes)
			assert.Assert(t, !yes || task.Kind == plan.TaskFreeSlots)
		}
	}
}
