package policy_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// The marks show a step as the one that took it told of it, under the id by which it was told.
func TestShown(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
	}{
		{"a cordon", []change{prepared}, "Cordoned: taken out of service for 1.2.0"},
		{"a reboot", []change{draining, drain(fleet.Drain{})}, "Rebooting: asked to reboot into 1.2.0"},
		{"an attempt that failed", []change{draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, "DrainDeadline: not drained within 30m0s"},
		{"an attempt that was given back", []change{draining, paused}, "Paused: the attempt at 1.2.0 was given back"},
		{"staging that failed", []change{preparing, answers("error", "no space")}, "PrepareFailed: no space"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := policy.Plan(fleetOf([]fleet.Node{node("a", tc.changes...), node("b")}), policy.DefaultSettings())
			assert.Equal(t, len(out.Steps), 1)
			step, ok := out.Steps[0].Shown()
			assert.Assert(t, ok)
			marks, ok := policy.LastShown(&out.Steps[0].Change.Marks)
			assert.Assert(t, ok)
			assert.Equal(t, step.ID(), marks.ID())
			assert.Assert(t, strings.HasPrefix(string(marks.Reason)+": "+marks.Message(), tc.want), "%s: %s", marks.Reason, marks.Message())
		})
	}
}

// A node that fell back during its soak shows the end of its attempt from then on, and not its return before that.
func TestShownOfAFallBackInTheSoak(t *testing.T) {
	n := node("a", prepared)
	returned := now.Add(-time.Minute)
	n.Marks.Disruption = &marker.Disruption{Since: now.Add(-time.Hour), Returned: &returned}
	last, ok := policy.LastShown(&n.Marks)
	assert.Assert(t, ok && last.Reason == policy.ReasonUncordoned && last.At.Equal(returned), "%+v", last)
	n.Marks.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeFailed, Reason: string(policy.ReasonRolledBack), Ended: now}}
	last, ok = policy.LastShown(&n.Marks)
	assert.Assert(t, ok && last.Reason == policy.ReasonRolledBack && last.At.Equal(now), "%+v", last)
	before := last.ID()
	n.Marks.Disruption = nil
	last, ok = policy.LastShown(&n.Marks)
	assert.Assert(t, ok)
	assert.Equal(t, last.ID(), before)
}
