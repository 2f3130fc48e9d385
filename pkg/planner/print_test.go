package planner_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// What is counted is what the rows show: nodes by phase, and each that is unavailable once.
func TestCountsAgreeWithRows(t *testing.T) {
	for _, tc := range []struct {
		name  string
		nodes []fleet.Node
		held  []string
		set   func(*policy.Settings)
		want  []string
	}{
		{name: "no node", want: []string{"0 nodes", "out of service: 0 of 1 allowed"}},
		{name: "one starts", nodes: []fleet.Node{node("a", prepared), node("b", prepared)},
			want: []string{"2 nodes: 2 Staged", "out of service: 1 of 1 allowed (1 from now on)"}},
		{name: "one that others cordoned starts", nodes: []fleet.Node{node("a", prepared, cordoned), node("b", prepared)},
			want: []string{"2 nodes: 2 Staged", "out of service: 1 of 1 allowed (1 from now on)"}},
		{name: "others", nodes: []fleet.Node{node("a", cordoned), node("b", prepared)},
			want: []string{"2 nodes: 1 UpToDate, 1 Staged", "out of service: 1 of 1 allowed (1 not by the operator)"}},
		{name: "a Lost one on top", nodes: []fleet.Node{node("a", lost), node("b", draining)},
			want: []string{"2 nodes: 1 Draining, 1 Lost", "out of service: 1 of 1 allowed; 1 Lost not counted"}},
		{name: "more Lost ones than may be", nodes: []fleet.Node{node("a", lost), node("b", lost), node("c", draining)},
			want: []string{"3 nodes: 1 Draining, 2 Lost", "out of service: 2 of 1 allowed; 1 Lost not counted"}},
		{name: "none may be Lost", nodes: []fleet.Node{node("a", lost)}, set: func(s *policy.Settings) { s.MaxLost = policy.Count(0) },
			want: []string{"1 node: 1 Lost", "out of service: 1 of 1 allowed"}},
		{name: "a budget that was lowered", nodes: []fleet.Node{node("a", draining), node("b", draining)},
			want: []string{"2 nodes: 2 Draining", "out of service: 2 of 1 allowed"}},
		{name: "one that is gone", nodes: []fleet.Node{node("a", prepared)}, held: []string{"gone"},
			want: []string{"1 node: 1 Staged", "out of service: 1 of 1 allowed (1 a slot of a node that is gone)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Eviction.Predict = false
			if tc.set != nil {
				tc.set(&set)
			}
			assert.DeepEqual(t, planner.Plan(fleetOf(tc.nodes, tc.held...), set).Counts(), tc.want)
		})
	}
}
