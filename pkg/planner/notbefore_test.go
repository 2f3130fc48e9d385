package planner_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// What the clock alone ends has a time; what else must happen first has none.
func TestNotBefore(t *testing.T) {
	night := func(t *testing.T, at string) window.Window {
		s, err := window.ParseCron(at)
		assert.NilError(t, err)
		return window.Window{Schedule: s, Duration: 4 * time.Hour, Zone: time.UTC}
	}
	at22 := time.Date(2026, 9, 20, 22, 0, 0, 0, time.UTC)
	none := func(*testing.T, *policy.Settings) {}
	closed := func(t *testing.T, s *policy.Settings) { s.Calendar.Windows = []window.Window{night(t, "0 22 * * *")} }
	freeze := window.Freeze{From: now.Add(-time.Hour), To: now.Add(time.Hour)}
	for _, tc := range []struct {
		name   string
		change func(*testing.T, *policy.Settings)
		node   fleet.Node
		others []fleet.Node
		want   time.Time
	}{
		{"up to date", none, node("a"), nil, time.Time{}},
		{"paused", none, node("a", offered(v2), paused), nil, time.Time{}},
		{"no place", none, node("a", prepared), []fleet.Node{node("b", draining)}, time.Time{}},
		{"backing off", none, node("a", offered(v2), failedOnce(time.Hour, v2)), nil, now.Add(time.Hour)},
		{"recently uncordoned", none, node("a", offered(v2), func(n *fleet.Node) {
			n.Marks.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeUncordoned, Ended: now.Add(-time.Minute)}}
		}), nil, now.Add(9 * time.Minute)},
		{"window closed", closed, node("a", prepared), nil, at22},
		{"window too short", func(t *testing.T, s *policy.Settings) {
			s.Calendar.Windows = []window.Window{night(t, "30 6 * * *")}
		}, node("a", prepared), []fleet.Node{node("b", updated(time.Hour, 45*time.Minute))}, time.Date(2026, 9, 21, 6, 30, 0, 0, time.UTC)},
		{"frozen", func(t *testing.T, s *policy.Settings) { s.Calendar.Freezes = []window.Freeze{freeze} }, node("a", prepared), nil, freeze.To},
		{"frozen, and then the window is closed", func(t *testing.T, s *policy.Settings) {
			closed(t, s)
			s.Calendar.Freezes = []window.Freeze{freeze}
		}, node("a", prepared), nil, at22},
		{"frozen, and staged outside the window", func(t *testing.T, s *policy.Settings) {
			closed(t, s)
			s.Calendar.Freezes = []window.Freeze{freeze}
		}, node("a", offered(v2)), nil, freeze.To},
		{"too new", func(_ *testing.T, s *policy.Settings) { s.Versions.MinAge = time.Hour }, node("a", offered(v2)), nil, now.Add(time.Hour)},
		{"after a group that has it not for long", func(_ *testing.T, s *policy.Settings) {
			groups(s, func(_, production *policy.Group) { production.AfterSoak = 24 * time.Hour })
		}, node("a", prepared, stageOf("production")), []fleet.Node{node("b", stageOf("canary"), updated(time.Hour, time.Minute))}, now.Add(23 * time.Hour)},
		{"after a group that hasn't it", func(_ *testing.T, s *policy.Settings) { groups(s) },
			node("a", prepared, stageOf("production")), []fleet.Node{node("b", stageOf("canary"))}, time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			tc.change(t, &set)
			s, _ := find(t, planner.Plan(fleetOf(append([]fleet.Node{tc.node}, tc.others...)), set), "a")
			assert.Equal(t, s.NotBefore, tc.want, "%s: %s", s.Reason, s.Message)
		})
	}
}

// Every limit that is set is told of, with what uses it up.
func TestBudgets(t *testing.T) {
	set := policy.DefaultSettings()
	set.MaxUnavailable = policy.Percent(50)
	set.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: policy.Unlimited, MaxDomains: 1}}
	groups(&set, func(canary, production *policy.Group) {
		production.Topology = nil
		canary.MaxUnavailable = policy.Count(1)
		canary.Topology = []policy.Topology{{Key: zoneKey, MaxUnavailable: policy.Count(2)}}
	})
	s := fleetOf([]fleet.Node{
		node("a", draining, zone("a"), stageOf("canary")), node("b", cordoned, zone("a")), node("c", lost, zone("b")), node("d", preparing, zone("b")),
	})
	before := planner.Plan(s, set)
	assert.DeepEqual(t, planner.Budgets(s, set), []plan.Usage{
		{Of: "the fleet", Rule: "50%", Limit: 2, Used: 2, Disrupted: 1, ByOthers: 1},
		{Of: "values of " + zoneKey, Rule: "1", Limit: 1, Used: 1, Disrupted: 1},
		{Of: "group canary", Rule: "1", Limit: 1, Used: 1, Disrupted: 1},
		{Of: zoneKey + "=a in group canary", Rule: "2", Limit: 2, Used: 1, Disrupted: 1},
		{Of: "staging", Rule: "10", Limit: 10, Used: 1, Disrupted: 1},
	})
	assert.Equal(t, before.Disrupted-before.LostUncounted, 1, "the plan counts alike")
	assert.Equal(t, set.GroupOf(map[string]string{"stage": "canary"}), "canary")
	assert.Equal(t, set.GroupOf(nil), "")
}
