package planner_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// However an attempt ends, the history has the version that the node ran before it, which is where a rollback goes.
func TestAttemptsTellFromWhere(t *testing.T) {
	cordoned := func(from string) change { return func(n *fleet.Node) { n.Marks.Disruption.From = from } }
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
	}{
		{"updated", []change{verifying(time.Hour), cordoned(v1)}, v1},
		{"rolled back", []change{back(v1), cordoned(v1)}, v1},
		{"failed while it staged", []change{preparing, answers("error", "no space")}, v1},
		{"abandoned in its drain", []change{draining, cordoned(v1), paused}, v1},
		{"cordoned by a build that noted nothing", []change{verifying(time.Hour)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Verify.OnWorkloads = policy.IgnoreWorkloads
			_, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", tc.changes...), node("b")}), set), "a")
			assert.Assert(t, step != nil && step.Change.EndsAttempt)
			h := asStored(t, step.Change.Marks).History
			assert.Equal(t, h[len(h)-1].Version, v2)
			assert.Equal(t, h[len(h)-1].From, tc.want)
		})
	}
	step := stepOf(t, node("a", prepared), intent.ActCordon)
	assert.Equal(t, asStored(t, step.Change.Marks).Disruption.From, v1)
	assert.Equal(t, step.Reason, plan.ReasonCordoned)
}
