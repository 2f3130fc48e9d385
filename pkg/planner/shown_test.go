package planner_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// asStored is what any process reads of marks that were written to a Node.
func asStored(t *testing.T, m marker.Marks) marker.Marks {
	t.Helper()
	annotations := map[string]string{}
	for _, written := range []map[marker.Key]string{marker.Encode(m), marker.EncodeReport(m.Report)} {
		for k, v := range written {
			annotations[string(k)] = v
		}
	}
	read, problems := marker.Decode(annotations)
	assert.Equal(t, len(problems), 0, "%v", problems)
	return read
}

// What stands on a Node shows a step as the process that took it told of it, under the id by which that told.
func TestShown(t *testing.T) {
	checked := with(func(n *fleet.Node) { n.Checked = nil })
	for _, tc := range []struct {
		name    string
		changes []change
		// took is the step, and want how the marks show it; empty: they don't.
		took, want string
	}{
		{"a cordon", []change{prepared}, "Cordoned", "Cordoned: taken out of service for 1.2.0"},
		{"a reboot", []change{draining, drain(fleet.Drain{})}, "RebootRequested", "Rebooting: asked to reboot into 1.2.0"},
		{"another's reboot", []change{draining, with(func(n *fleet.Node) { n.BootID = "b2" })}, "RebootedEarly", "Rebooting: asked to reboot into 1.2.0"},
		{"a return", []change{back(v2)}, "Uncordoned", "Uncordoned: Ready again with 1.2.0"},
		{"a return without the update", []change{back(v1)}, "RolledBack", "RolledBack: rolled back"},
		{"the end of a soak", []change{verifying(time.Hour), checked}, "Updated", "Updated: updated to 1.2.0"},
		{"an attempt that failed", []change{draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, "DrainDeadline", "DrainDeadline: not drained within 30m0s"},
		{"an attempt that was abandoned", []change{draining, paused}, "Paused", "Paused: the attempt at 1.2.0 was abandoned"},
		{"staging that failed", []change{preparing, answers("error", "no space")}, "StagingFailed", "StagingFailed: no space"},
		{"the beginning of an attempt", []change{offered(v2)}, "UpdateAvailable", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Verify.OnWorkloads = policy.IgnoreWorkloads
			_, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", tc.changes...), node("b")}), set), "a")
			assert.Assert(t, step != nil)
			assert.Equal(t, string(step.Reason), tc.took)
			taken, ok := step.Shown()
			assert.Equal(t, ok, tc.want != "")
			if !ok {
				return
			}
			stored := asStored(t, step.Change.Marks)
			stands, ok := plan.LastShown(&stored)
			assert.Assert(t, ok)
			assert.Equal(t, taken.ID(), stands.ID())
			assert.Assert(t, strings.HasPrefix(string(stands.Reason)+": "+stands.Message(), tc.want), "%s: %s", stands.Reason, stands.Message())
		})
	}
}

// A node that fell back during its soak shows the end of its attempt from then on, and not its return before that.
func TestShownOfAFallBackInTheSoak(t *testing.T) {
	n := node("a", prepared)
	returned := now.Add(-time.Minute)
	n.Marks.Disruption = &marker.Disruption{Since: now.Add(-time.Hour), Returned: &returned}
	last, ok := plan.LastShown(&n.Marks)
	assert.Assert(t, ok && last.Reason == plan.ReasonUncordoned && last.At.Equal(returned), "%+v", last)
	n.Marks.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeFailed, Reason: string(plan.ReasonRolledBack), Ended: now}}
	last, ok = plan.LastShown(&n.Marks)
	assert.Assert(t, ok && last.Reason == plan.ReasonRolledBack && last.At.Equal(now), "%+v", last)
	before := last.ID()
	n.Marks.Disruption = nil
	last, ok = plan.LastShown(&n.Marks)
	assert.Assert(t, ok)
	assert.Equal(t, last.ID(), before)
}
