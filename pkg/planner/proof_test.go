package planner_test

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A version is proven in a group where each node runs it, is in service, has run it for the soak, and it failed on none.
func TestProofs(t *testing.T) {
	// has is a node that was brought to a version so long ago.
	has := func(version string, ago time.Duration) change {
		return func(n *fleet.Node) {
			n.OSVersion, n.Marks.Report.Current = version, version
			n.Marks.History = append(n.Marks.History, marker.Attempt{Version: version, Outcome: marker.OutcomeUpdated, Reason: "Updated", Ended: now.Add(-ago)})
		}
	}
	tried := func(version string, r plan.Reason, retried bool) change {
		return func(n *fleet.Node) {
			n.Marks.History = append([]marker.Attempt{{Version: version, Outcome: marker.OutcomeFailed, Reason: string(r), Ended: now.Add(-5 * time.Hour), Retried: retried}}, n.Marks.History...)
		}
	}
	planned := func(n *fleet.Node) { n.Interface = fleet.InterfacePlan }
	type also = func(*fleet.Snapshot, *policy.Settings)
	for _, tc := range []struct {
		name  string
		nodes []fleet.Node
		also  also
		want  string
	}{
		{"all", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", has(v2, 2*time.Hour))}, nil, "1.2.0 proven since 2h0m0s ago"},
		{"one that joined with it", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", has(v2, 0), func(n *fleet.Node) { n.Marks.History, n.Created = nil, now.Add(-90*time.Minute) })},
			func(s *fleet.Snapshot, _ *policy.Settings) {
				s.FirstSeen = map[string]time.Time{v2: now.Add(-9 * time.Hour)}
			}, "1.2.0 proven since 1h30m0s ago"},
		{"no node", nil, nil, " NoNode: no node of it is in the operator's care"},
		{"none in care", []fleet.Node{node("a", has(v2, 3*time.Hour), unlabelled), node("b", planned)}, nil, " NoNode: no node of it is in the operator's care"},
		{"others have no part", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", unlabelled), node("c", planned), node("d", func(n *fleet.Node) { n.Leaving = "x" })}, nil,
			"1.2.0 proven since 3h0m0s ago"},
		{"some run another", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", has(v1, 3*time.Hour)), node("c", has(v2, 3*time.Hour))}, nil, " SeveralVersions: 1.2.0 on a c; 1.1.0 on b"},
		{"one runs a newer one", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", has(v3, 3*time.Hour))}, nil, " SeveralVersions: 1.3.0 on b; 1.2.0 on a"},
		{"by its agent alone", []fleet.Node{node("a", has(v2, 3*time.Hour), func(n *fleet.Node) { n.OSVersion, n.Created = v1, now.Add(-9*time.Hour) })},
			func(s *fleet.Snapshot, _ *policy.Settings) {
				s.FirstSeen = map[string]time.Time{v1: now.Add(-9 * time.Hour)}
			},
			"1.1.0 NotRunning: of a the agent reports 1.2.0, and the kubelet 1.1.0"},
		{"a soak", []fleet.Node{node("a", has(v2, 30*time.Minute)), node("b", has(v2, 10*time.Minute)), node("c", has(v2, 20*time.Minute))}, nil,
			"1.2.0 Soaking: b must run 1.2.0 until 2026-09-20 10:50:00 UTC"},
		{"one is away, which the clock does not end", []fleet.Node{node("a", has(v2, 30*time.Minute)), node("b", has(v2, 3*time.Hour), notReady)}, nil, "1.2.0 NotInService: b is not back in service with 1.2.0 yet"},
		{"in its verification", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", verifying(time.Second))}, nil, "1.2.0 NotInService: b is not back in service with 1.2.0 yet"},
		{"it can't be read", []fleet.Node{node("a", has(v2, 3*time.Hour), func(n *fleet.Node) { n.Problems = []marker.Problem{{}} })}, nil, "1.2.0 NotRunning: a does not run 1.2.0 yet"},
		{"it failed on one before", []fleet.Node{node("a", has(v2, 3*time.Hour)), node("b", has(v2, 2*time.Hour), tried(v2, plan.ReasonRolledBack, false))}, nil,
			"1.2.0 Failed: b failed with 1.2.0 (RolledBack); if that was not its fault: `kubectl bottlerocket acknowledge 1.2.0`"},
		{"and is acknowledged", []fleet.Node{node("a", has(v2, 2*time.Hour), tried(v2, plan.ReasonRolledBack, false))},
			func(s *fleet.Snapshot, _ *policy.Settings) { s.Acknowledged = map[string]bool{v2: true} }, "1.2.0 proven since 2h0m0s ago"},
		{"and a user had it tried again", []fleet.Node{node("a", has(v2, 2*time.Hour), tried(v2, plan.ReasonRolledBack, true))}, nil, "1.2.0 proven since 2h0m0s ago"},
		{"a drain that failed is no version's fault", []fleet.Node{node("a", has(v2, 2*time.Hour), tried(v2, plan.ReasonDrainDeadline, false))}, nil, "1.2.0 proven since 2h0m0s ago"},
		{"nor what failed at another", []fleet.Node{node("a", has(v2, 2*time.Hour), tried(v3, plan.ReasonRolledBack, false))}, nil, "1.2.0 proven since 2h0m0s ago"},
		{"still broken there", []fleet.Node{node("a", has(v2, 2*time.Hour), failedOnce(time.Hour, v2))}, nil, "1.2.0 Failed: a failed with 1.2.0 (X); if that was not its fault: `kubectl bottlerocket acknowledge 1.2.0`"},
		{"pinned to another", []fleet.Node{node("a", has(v2, 2*time.Hour))}, func(_ *fleet.Snapshot, set *policy.Settings) { set.Versions.Pin = v1 },
			"1.2.0 NotAllowed: the policy holds the fleet at 1.1.0, and 1.2.0 is offered"},
		{"no policy", []fleet.Node{node("a", has(v2, 2*time.Hour))}, func(s *fleet.Snapshot, _ *policy.Settings) { s.NoPolicy, s.PolicyProblem = true, "it is gone" },
			" NoPolicy: there is no policy to go by: it is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Soak = time.Hour
			s := fleetOf(tc.nodes)
			if tc.also != nil {
				tc.also(&s, &set)
			}
			out := planner.Show(s, set)
			assert.Equal(t, len(out.Proofs), 1)
			got := out.Proofs[0]
			said := fmt.Sprintf("%s %s: %s", got.Version, got.Reason, got.Message)
			if got.Proven {
				said = fmt.Sprintf("%s proven since %s ago", got.Version, now.Sub(got.Since))
			}
			assert.Equal(t, got.Proven, got.Reason == "")
			assert.Equal(t, got.NotBefore.IsZero(), got.Reason != plan.LackTime)
			assert.Equal(t, said, tc.want)
		})
	}
}

// Each group is by itself, and the nodes in none are another one.
func TestProofsOfGroups(t *testing.T) {
	set := policy.DefaultSettings()
	groups(&set, func(canary, _ *policy.Group) { canary.Soak = 0 })
	set.Soak = 0
	s := fleetOf([]fleet.Node{node("a", stageOf("canary")), node("b", stageOf("production"), notReady)})
	proofs := planner.Show(s, set).Proofs
	assert.Equal(t, len(proofs), 2)
	assert.Assert(t, proofs[0].Group == "canary" && proofs[0].Proven && proofs[0].Nodes == 1)
	assert.Assert(t, proofs[1].Group == "production" && !proofs[1].Proven)
	s = fleetOf(append(s.Nodes, node("c")))
	proofs = planner.Show(s, set).Proofs
	assert.Equal(t, len(proofs), 3)
	assert.Equal(t, proofs[2].Group, "")
}
