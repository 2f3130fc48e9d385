package plan_test

import (
	"maps"
	"slices"
	"strings"
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

// carryOut does the work of a plan, in which the named kinds of tasks fail, and returns what was done.
func carryOut(p plan.Plan, fail ...plan.TaskKind) []string {
	w := plan.NewWork(p)
	var done []string
	for task, more := w.Next(); more; task, more = w.Next() {
		line := string(task.Kind)
		switch task.Kind {
		case plan.TaskTakeSlots:
			line += " " + strings.Join(slices.Sorted(maps.Values(task.Take)), " ")
		case plan.TaskFreeSlots:
			line += " " + strings.Join(task.Free, " ")
		case plan.TaskRecordVersions:
			line += " " + strings.Join(task.Saw, " ") + " of " + strings.Join(task.Named, " ")
		default:
			if task.Step.Node != "" {
				line += " " + task.Step.Node
			}
		}
		done = append(done, line)
		w.Did(!slices.Contains(fail, task.Kind))
	}
	return done
}

// Slots are taken before the first cordon and freed after the writes that end disruptions, and what fails keeps back what
// needs it and no more.
func TestOrderOfTheWork(t *testing.T) {
	p := plan.Plan{RecordPolicy: true, Saw: []string{"1.2.0"}, Named: []string{"1.1.0", "1.2.0"}, AskAlerts: true, Steps: []plan.Step{
		{Node: "a", UID: "uid-a", Act: intent.ActAbandon, Change: &plan.Change{}, FreesSlot: true},
		{Node: "b", UID: "uid-b", Act: intent.ActReboot, Change: &plan.Change{}, Before: plan.LookEmpty},
		{Node: "c", UID: "uid-c", Act: intent.ActLook},
		{Node: "d", UID: "uid-d", Act: intent.ActDrain},
		{Node: "e", UID: "uid-e", Act: intent.ActCheck},
		{Node: "f", UID: "uid-f", Act: intent.ActCordon, Change: &plan.Change{}, TakesSlot: true},
		{Node: "g", UID: "uid-g", Act: intent.ActStage, Change: &plan.Change{}},
		{Node: "h", UID: "uid-h", Act: intent.ActFinish, Change: &plan.Change{}, FreesSlot: true},
		{Node: "i", UID: "uid-i", Act: intent.ActLabel, Change: &plan.Change{}},
	}}
	all := []string{"record the policy", "take slots f", "write a", "look b", "write b", "look ahead c", "drain d", "check e", "write f", "write g", "write h", "write i",
		"free slots uid-a uid-h", "record versions 1.2.0 of 1.1.0 1.2.0", "ask for alerts"}
	without := func(unwanted ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(unwanted, s) })
	}
	assert.DeepEqual(t, carryOut(p), all)
	assert.DeepEqual(t, carryOut(p, plan.TaskRecordPolicy), without("take slots f", "write f", "write g", "write i"))
	assert.DeepEqual(t, carryOut(p, plan.TaskTakeSlots), without("write f"))
	assert.DeepEqual(t, carryOut(p, plan.TaskLook), without("write b"))
	assert.DeepEqual(t, carryOut(p, plan.TaskWrite), without("free slots uid-a uid-h"))
	assert.DeepEqual(t, carryOut(p, plan.TaskLookAhead, plan.TaskDrain, plan.TaskCheck, plan.TaskFreeSlots, plan.TaskRecordVersions, plan.TaskAskAlerts), all)
	assert.Equal(t, len(p.Steps), 9, "the plan stays as it is")
	assert.Equal(t, len(carryOut(plan.Plan{})), 0)
}

// A copy of work goes its own way, with what both have done so far.
func TestWorkIsCopied(t *testing.T) {
	var p plan.Plan
	for _, uid := range []string{"1", "2", "3", "4", "5"} {
		p.Steps = append(p.Steps, plan.Step{UID: uid, FreesSlot: true})
	}
	w := plan.NewWork(p)
	do := func(w *plan.Work, results ...bool) {
		for _, ok := range results {
			w.Next()
			w.Did(ok)
		}
	}
	do(w, true, true, true)
	c := *w
	do(&c, true, false)
	do(w, false, true)
	task, _ := c.Next()
	assert.DeepEqual(t, task.Free, []string{"1", "2", "3", "4"})
	task, _ = w.Next()
	assert.DeepEqual(t, task.Free, []string{"1", "2", "3", "5"})
}
