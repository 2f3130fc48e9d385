package planner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// A plan that is shown has every node in one group, in one column of it, with what it is offered, and the same decisions
// as the plan that is carried out.
func TestShowGroups(t *testing.T) {
	set := policy.DefaultSettings()
	groups(&set, func(canary, production *policy.Group) {
		canary.Pause = &policy.Pause{Reason: "a fair"}
		production.AfterSoak = 24 * time.Hour
	})
	s := fleetOf([]fleet.Node{
		node("a", stageOf("canary"), offered(v2)), node("b", stageOf("canary")), node("c", stageOf("canary"), prepared),
		node("d", stageOf("production"), unlabelled), node("e", draining), node("f"), node("g", offered(v2)),
	}, "e")
	out := planner.Show(s, set)
	assert.Equal(t, len(out.Groups), 3)
	canary, production, none := out.Groups[0], out.Groups[1], out.Groups[2]
	assert.DeepEqual(t, canary, plan.Group{Name: "canary", Paused: new("a fair"), Window: plan.Window{Open: true}, Nodes: 3, UpToDate: 1, Waiting: 1, InProgress: 1})
	assert.DeepEqual(t, production, plan.Group{Name: "production", After: []string{"canary"}, AfterSoak: plain.Duration(24 * time.Hour),
		Window: plan.Window{Open: true}, Nodes: 1, Waiting: 1})
	assert.DeepEqual(t, none, plan.Group{Window: plan.Window{Open: true}, Nodes: 3, UpToDate: 1, Starting: 1, InProgress: 1})
	for name, want := range map[string][2]string{"a": {"canary", v2}, "b": {"canary", ""}, "c": {"canary", v2}, "d": {"production", ""}, "e": {"", v2}, "g": {"", v2}} {
		d, _ := find(t, out, name)
		assert.DeepEqual(t, [2]string{d.Group, d.Target}, want)
	}
	assert.Equal(t, out.Time, now)
	assert.Equal(t, len(out.Budgets), len(planner.Budgets(s, set)))

	carried := planner.Plan(s, set)
	assert.Equal(t, len(out.Steps), len(carried.Steps))
	for i, d := range carried.Nodes {
		assert.Equal(t, verdict(out.Nodes[i]), verdict(d))
	}
	// The fleet's pause is said of every group.
	set.Pause = &policy.Pause{Reason: "moving"}
	for _, g := range planner.Show(s, set).Groups {
		assert.Equal(t, *g.Paused, "moving")
	}
	// Nothing that has begun, or begins now, waits for a window.
	set.Calendar, set.WhenClosed, set.Pause = nightly(t, "0 22 * * *", time.Hour), policy.Finish, nil
	for name, waits := range map[string]bool{"e": false, "f": false, "g": false, "h": true} {
		d, _ := find(t, planner.Show(fleetOf(append(s.Nodes, node("h", prepared)), "e"), set), name)
		assert.Equal(t, d.NotBefore.IsZero(), !waits, name)
	}
	assert.Assert(t, planner.Show(fleetOf(nil), set).Steps != nil, "nothing is a list too")
}

// When a window opens and closes, and that nothing is taken out of service before it is open.
func TestShowWindows(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 9, day, hour, 0, 0, 0, time.UTC) }
	nightly := func(t *testing.T, schedule string) window.Calendar {
		s, err := window.ParseCron(schedule)
		assert.NilError(t, err)
		return window.Calendar{Windows: []window.Window{{Schedule: s, Duration: 4 * time.Hour, Zone: time.UTC}}}
	}
	for _, tc := range []struct {
		name     string
		calendar func(*testing.T) window.Calendar
		want     plan.Window
		// before is when a node that backs off for an hour, and one that waits for room, may start.
		before, room time.Time
	}{
		{"always open", func(*testing.T) window.Calendar { return window.Calendar{} }, plan.Window{Open: true}, at(20, 11), time.Time{}},
		{"open", func(t *testing.T) window.Calendar { return nightly(t, "0 9 * * *") }, plan.Window{Open: true, Closes: at(20, 13), Opens: at(21, 9)}, at(20, 11), time.Time{}},
		{"closed", func(t *testing.T) window.Calendar { return nightly(t, "0 22 * * *") }, plan.Window{Opens: at(20, 22), Closes: at(21, 2)}, at(20, 22), at(20, 22)},
		{"frozen", func(t *testing.T) window.Calendar {
			return window.Calendar{Freezes: []window.Freeze{{From: at(20, 9), To: at(20, 15), Reason: "stocktaking"}}}
		}, plan.Window{Frozen: new("stocktaking"), Opens: at(20, 15)}, at(20, 15), at(20, 15)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Calendar = tc.calendar(t)
			out := planner.Show(fleetOf([]fleet.Node{node("a", offered(v2), failedOnce(time.Hour, v2)), node("b", prepared), node("c", draining)}, "c"), set)
			assert.DeepEqual(t, out.Groups[0].Window, tc.want)
			backs, _ := find(t, out, "a")
			assert.Equal(t, backs.NotBefore, tc.before)
			waits, _ := find(t, out, "b")
			assert.Equal(t, waits.NotBefore, tc.room)
			out2, _ := find(t, out, "c")
			assert.Equal(t, out2.NotBefore, time.Time{}, "it is out of service already")
		})
	}
}

// Each version has what the policy says of it as a target, and on how many nodes it failed.
func TestShowVersions(t *testing.T) {
	lists := func(v marker.Offers) change { return func(n *fleet.Node) { n.Marks.Report.Offered = v } }
	nodes := []fleet.Node{
		node("a", offered(v2), lists("1.3.0,1.2.0,1.1.0")), node("b", offered(v2), lists("1.2.0,1.1.0")), node("c", busy), node("d", failedOnce(time.Hour, v3)),
		node("e", failedOnce(time.Hour, v3)), node("p", func(n *fleet.Node) { n.Interface = fleet.InterfacePlan }), node("u", unlabelled, func(n *fleet.Node) { n.Marks = marker.Marks{} }),
	}
	s := fleetOf(nodes, "c")
	s.FirstSeen = map[string]time.Time{v1: now.Add(-100 * time.Hour), v2: now.Add(-10 * time.Hour)}
	for _, tc := range []struct {
		name   string
		change func(*fleet.Snapshot, *policy.Settings)
		want   string
		// says is in every message.
		says string
	}{
		{"allowed but for one that was stopped", func(*fleet.Snapshot, *policy.Settings) {},
			"1.3.0 0 1 0 2 VersionStopped, 1.2.0 0 3 3 0 yes, 1.1.0 5 2 0 0 yes", "failed on 2 nodes"},
		{"acknowledged", func(s *fleet.Snapshot, _ *policy.Settings) { s.Acknowledged = map[string]bool{v3: true} },
			"1.3.0 0 1 0 2 yes, 1.2.0 0 3 3 0 yes, 1.1.0 5 2 0 0 yes", ""},
		{"denied, which comes before stopped", func(_ *fleet.Snapshot, set *policy.Settings) { set.Versions.Deny = exactly(v3) },
			"1.3.0 0 1 0 2 VersionDenied, 1.2.0 0 3 3 0 yes, 1.1.0 5 2 0 0 yes", "denies 1.3.0"},
		{"held", func(_ *fleet.Snapshot, set *policy.Settings) { set.Versions.Hold = v2 },
			"1.3.0 0 1 0 2 HeldAtVersion, 1.2.0 0 3 3 0 yes, 1.1.0 5 2 0 0 HeldAtVersion", "holds the fleet at 1.2.0"},
		{"too young", func(s *fleet.Snapshot, set *policy.Settings) {
			set.Versions.MinAge, set.MaxFailed = 24*time.Hour, policy.Count(9)
			s.FirstSeen = map[string]time.Time{v1: s.FirstSeen[v1], v2: s.FirstSeen[v2], v3: s.FirstSeen[v2]}
		}, "1.3.0 0 1 0 2 VersionTooNew at 2026-09-21T00:00:00Z, 1.2.0 0 3 3 0 VersionTooNew at 2026-09-21T00:00:00Z, 1.1.0 5 2 0 0 yes", " was first seen 2026-09-20 00:00:00 UTC"},
		{"listed, and no node would go to it", func(s *fleet.Snapshot, set *policy.Settings) {
			set.Versions.MinAge, set.MaxFailed = time.Minute, policy.Count(9)
		}, "1.3.0 0 1 0 2 VersionTooNew, 1.2.0 0 3 3 0 yes, 1.1.0 5 2 0 0 yes", "no node would go to 1.3.0 or runs it"},
		{"no policy", func(s *fleet.Snapshot, _ *policy.Settings) { s.NoPolicy, s.PolicyProblem = true, "it is gone" },
			"1.3.0 0 1 0 2 PolicyUnreadable, 1.2.0 0 3 3 0 PolicyUnreadable, 1.1.0 5 2 0 0 PolicyUnreadable", "it is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, set := s, policy.DefaultSettings()
			set.MaxFailed = policy.Count(2)
			tc.change(&s, &set)
			out := planner.Show(s, set)
			var got []string
			for _, v := range out.Versions {
				target := "yes"
				if !v.Target.Allowed {
					target = string(v.Target.Reason)
					assert.Assert(t, strings.Contains(v.Target.Message.String(), tc.says), v.Target.Message)
				}
				if !v.Target.NotBefore.IsZero() {
					target += " at " + v.Target.NotBefore.Format(time.RFC3339)
				}
				got = append(got, fmt.Sprintf("%s %d %d %d %d %s", v.Version, v.Nodes, v.Offered, v.Chosen, *v.Failed, target))
				assert.Equal(t, v.Since, s.FirstSeen[v.Version])
			}
			assert.Equal(t, strings.Join(got, ", "), tc.want)
			assert.Assert(t, planner.Plan(s, set).Versions == nil, "a pass makes none")
		})
	}
}

// TestAttackLists: what hosts list, and their locks and seeds, is shown and moves no decision (S9).
func TestAttackLists(t *testing.T) {
	nodes := func(changes ...change) []fleet.Node {
		var all []fleet.Node
		for i, c := range []change{func(*fleet.Node) {}, offered(v2), preparing, prepared, draining, busy, verifying(time.Minute), resetting, lost, paused} {
			all = append(all, node(string(rune('a'+i)), append([]change{c}, changes...)...))
		}
		return all
	}
	lies := func(n *fleet.Node) {
		n.Marks.Report.Offered, n.Marks.Report.VersionLock, n.Marks.Report.WaveSeed = "9.9.9,1.3.0,1.2.0", "9.9.9", "4294967295"
	}
	set := policy.DefaultSettings()
	set.Versions.MinAge = time.Minute
	honest, lied := planner.Plan(fleetOf(nodes(), "e"), set), planner.Plan(fleetOf(nodes(lies), "e"), set)
	asJSON := func(p plan.Plan) string {
		text, err := json.Marshal(p)
		assert.NilError(t, err)
		return string(text)
	}
	assert.Equal(t, asJSON(lied), asJSON(honest))
	assert.DeepEqual(t, lied.Named, honest.Named)
	assert.Equal(t, planner.Show(fleetOf(nodes(lies), "e"), set).Versions[0].Version, "9.9.9", "it is shown")
}
