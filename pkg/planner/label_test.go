package planner_test

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// newcomer is a Bottlerocket node that the operator has had nothing to do with.
func newcomer(n *fleet.Node) {
	n.Interface, n.Marks, n.AgentPod, n.AgentReady = fleet.InterfaceNone, marker.Marks{}, false, false
}

func autoLabelled(n *fleet.Node) { n.Marks.AutoLabelled = new("2026-09-20T09:00:00Z") }

func autoLabel() policy.Settings {
	set := policy.DefaultSettings()
	set.AutoLabel = true
	return set
}

// labels are the nodes that a plan labels.
func labels(out plan.Plan) []string {
	var nodes []string
	for _, s := range out.Steps {
		if s.Act == intent.ActLabel {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// Only Bottlerocket nodes that were never labelled are, and only by a policy that says so and can be read.
func TestAutoLabel(t *testing.T) {
	trouble := func(wait time.Duration) change {
		return func(n *fleet.Node) {
			n.WriteTrouble = &fleet.WriteTrouble{Message: "refused", Since: now, Until: now.Add(wait), ClearAt: now.Add(time.Hour)}
		}
	}
	for name, tc := range map[string]struct {
		changes []change
		want    bool
	}{
		"new":                        {[]change{newcomer}, true},
		"not Ready":                  {[]change{newcomer, notReady}, true},
		"cordoned and paused":        {[]change{newcomer, cordoned, paused}, true},
		"of another system":          {[]change{newcomer, func(n *fleet.Node) { n.OSVersion = "" }}, false},
		"labelled":                   {nil, false},
		"labelled for nothing known": {[]change{newcomer, func(n *fleet.Node) { n.Interface = "none" }}, false},
		"labelled before":            {[]change{newcomer, autoLabelled}, false},
		"just unlabelled":            {[]change{unlabelled}, false},
		"unlabelled in its reboot":   {[]change{busy, unlabelled}, false},
		"being removed":              {[]change{newcomer, func(n *fleet.Node) { n.Leaving = "it is being deleted" }}, false},
		"unreadable":                 {[]change{newcomer, func(n *fleet.Node) { n.Problems = []marker.Problem{{Key: marker.KeyFailure, Why: "x"}} }}, false},
		"just refused":               {[]change{newcomer, trouble(time.Minute)}, false},
		"refused a while ago":        {[]change{newcomer, trouble(-time.Minute)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", tc.changes...)})
			out := planner.Plan(s, autoLabel())
			assert.Equal(t, len(labels(out)) == 1, tc.want)
			assert.Equal(t, len(labels(planner.Plan(s, policy.DefaultSettings()))), 0, "off by default")
			for _, change := range []func(*fleet.Snapshot){
				func(s *fleet.Snapshot) { s.PolicyProblem = "a mistake" },
				func(s *fleet.Snapshot) { s.PolicyProblem, s.NoPolicy = "gone", true },
				func(s *fleet.Snapshot) { s.SlotsProblem = "broken" },
			} {
				s := s
				change(&s)
				assert.Equal(t, len(labels(planner.Plan(s, autoLabel()))), 0)
			}
		})
	}
	assert.Equal(t, len(labels(planner.Plan(fleetOf([]fleet.Node{node("a", newcomer)}, "a"), autoLabel()))), 0, "it holds a slot")

	out := planner.Plan(fleetOf([]fleet.Node{node("a", newcomer)}), autoLabel())
	step := out.Steps[0]
	assert.Equal(t, step.Reason, plan.ReasonAutoLabelled)
	assert.Equal(t, step.Change.ResourceVersion, "5", "a label that was set meanwhile is not overwritten")
	assert.DeepEqual(t, step.Change.Labels, map[string]*string{string(marker.KeyInterfaceVersion): new("2.0.0")})
	assert.DeepEqual(t, step.Change.Diff(nil), map[marker.Key]*string{marker.KeyAutoLabelled: new("2026-09-20T10:00:00Z")})
	assert.Equal(t, len(out.Nodes), 0, "it is not in the operator's care yet")
}

// However many nodes are new, a pass labels some of them; and where writes are refused it goes on with few.
func TestAutoLabelIsBounded(t *testing.T) {
	many := func(n, troubled int) fleet.Snapshot {
		var nodes []fleet.Node
		for i := range n {
			nodes = append(nodes, node(fmt.Sprintf("n-%03d", i), newcomer))
			if i < troubled {
				nodes[i].WriteTrouble = &fleet.WriteTrouble{Message: "refused", Until: now.Add(time.Minute), ClearAt: now.Add(time.Hour)}
			}
		}
		return fleetOf(nodes)
	}
	for troubled, want := range map[int]int{0: 20, 5: 15, 20: 0, 50: 0} {
		out := planner.Plan(many(100, troubled), autoLabel())
		assert.Equal(t, len(labels(out)), want)
		if troubled > 0 {
			assert.Equal(t, out.Wake, now.Add(time.Minute))
		}
	}
}

// A node whose label a user removes is never labelled again: what the controller leaves behind says that it was there.
func TestAutoLabelRemembersWhoLeft(t *testing.T) {
	off := policy.DefaultSettings()
	left := func(set policy.Settings, problem string, changes ...change) *string {
		t.Helper()
		s := fleetOf([]fleet.Node{node("a", append(changes, unlabelled, func(n *fleet.Node) { n.AgentPod = false })...)})
		s.PolicyProblem = problem
		_, step := find(t, planner.Plan(s, set), "a")
		assert.Equal(t, step.Act, intent.ActLeave)
		diff := step.Change.Diff(map[string]string{string(marker.KeyIntentID): "i1", string(marker.KeyBootID): "b1"})
		assert.Assert(t, diff[marker.KeyIntentID] == nil && diff[marker.KeyBootID] == nil)
		return diff[marker.KeyAutoLabelled]
	}
	assert.DeepEqual(t, left(autoLabel(), ""), new("2026-09-20T10:00:00Z"))
	assert.DeepEqual(t, left(autoLabel(), "", draining), new("2026-09-20T10:00:00Z"))
	assert.DeepEqual(t, left(off, "it can't be read"), new("2026-09-20T10:00:00Z"))
	assert.DeepEqual(t, left(autoLabel(), "", autoLabelled), new("2026-09-20T09:00:00Z"))
	assert.DeepEqual(t, left(off, "", autoLabelled), new("2026-09-20T09:00:00Z"))
	assert.Assert(t, left(off, "") == nil, "nothing is left behind that nothing needs")
}
