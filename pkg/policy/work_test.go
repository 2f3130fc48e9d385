package policy_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A slot that the list shows already is taken by a write all the same: the list may be an old one, and
// another leader may be about to free the slot.
func TestASlotIsAlwaysTakenByAWrite(t *testing.T) {
	step := policy.Step{Node: "a", UID: "uid-a", Act: intent.ActCordon, Change: &policy.Change{}, TakesSlot: true}
	for _, yes := range []bool{true, false} {
		w := policy.NewWork(policy.Outcome{Steps: []policy.Step{step}})
		task, more := w.Next()
		assert.Assert(t, more)
		assert.Equal(t, task.Kind, policy.TaskTakeSlots)
		assert.DeepEqual(t, task.Take, map[string]string{"uid-a": "a"})
		w.Answered(yes)
		task, more = w.Next()
		assert.Equal(t, more, yes, "no cordon without it")
		assert.Assert(t, !yes || task.Kind == policy.TaskWrite)
	}
}

// A slot is freed only once the look says that nothing is under way that could need it.
func TestASlotIsFreedByTheRightLook(t *testing.T) {
	for _, tc := range []struct {
		reason policy.Reason
		kind   policy.TaskKind
	}{{policy.ReasonNodeGone, policy.TaskLookGone}, {policy.ReasonSlotOrphaned, policy.TaskLookFenced}} {
		for _, yes := range []bool{true, false} {
			w := policy.NewWork(policy.Outcome{Steps: []policy.Step{{Node: "a", UID: "uid-a", Act: intent.ActRelease, Reason: tc.reason, FreesSlot: true}}})
			task, more := w.Next()
			assert.Assert(t, more)
			assert.Equal(t, task.Kind, tc.kind)
			w.Answered(yes)
			task, more = w.Next()
			assert.Equal(t, more, yes)
			assert.Assert(t, !yes || task.Kind == policy.TaskFreeSlots)
		}
	}
}
