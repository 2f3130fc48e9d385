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

func forecast(f *fleet.Forecast) change { return func(n *fleet.Node) { n.Forecast = f } }

// found is what a look some time ago found, and that it is worth looking again in a while.
func found(ago time.Duration, o fleet.Obstacle, again time.Duration) change {
	return forecast(&fleet.Forecast{At: now.Add(-ago), Next: now.Add(again), Obstacle: o, Message: "x"})
}

// A node is cordoned only when a look a moment ago found nothing in the way of its drain. One that can't be drained now
// waits with the reason, and the next goes.
func TestLookBeforeCordon(t *testing.T) {
	for _, tc := range []struct {
		name string
		look change
		// What is said of a, and of b behind it, which can go.
		want, next string
	}{
		{"never looked at", forecast(nil), "Staged Look Looking", "Staged wait UnavailableLimit"},
		{"found free", found(time.Second, fleet.ObstacleNone, -time.Second), "Staged Cordon Cordoned", "Staged wait UnavailableLimit"},
		{"found free long ago", found(time.Minute, fleet.ObstacleNone, -time.Minute), "Staged Look Looking", "Staged wait UnavailableLimit"},
		{"found free by a clock that was ahead", found(-time.Hour, fleet.ObstacleNone, time.Hour), "Staged Look Looking", "Staged wait UnavailableLimit"},
		{"a budget", found(time.Second, fleet.ObstacleBudget, 29*time.Second), "Staged wait BudgetBlocks", "Staged Cordon Cordoned"},
		{"a job", found(time.Second, fleet.ObstacleAwaited, 29*time.Second), "Staged wait PodEndAwaited", "Staged Cordon Cordoned"},
		{"the policy", found(time.Second, fleet.ObstacleProtected, 29*time.Second), "Staged wait PodProtected", "Staged Cordon Cordoned"},
		{"the look failed", found(time.Second, fleet.ObstacleUnknown, 29*time.Second), "Staged wait DrainFailing", "Staged Cordon Cordoned"},
		{"worth another look, and the next goes first", found(31*time.Second, fleet.ObstacleBudget, -time.Second), "Staged wait BudgetBlocks", "Staged Cordon Cordoned"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := planner.Plan(fleetOf([]fleet.Node{node("a", prepared, tc.look), node("b", prepared), node("c")}), policy.DefaultSettings())
			s, step := find(t, out, "a")
			assert.Equal(t, verdict(s), tc.want)
			if s.Act == intent.ActLook {
				assert.Assert(t, step.Eviction != nil && step.Change == nil && !step.TakesSlot)
				assert.Equal(t, out.Disrupted, 0, "nothing is taken by looking")
			}
			s, _ = find(t, out, "b")
			assert.Equal(t, verdict(s), tc.next)
		})
	}
}

// Which workloads have Ready pods on a node is seen by the look before the cordon and written with the cordon, unless
// the policy doesn't care (S7).
func TestWorkloadsAreNotedWithTheCordon(t *testing.T) {
	saw := map[string]int{"Deployment/default/web": 3}
	look := forecast(&fleet.Forecast{At: now, Next: now, Workloads: saw})
	for _, want := range []policy.OnWorkloads{policy.FailOnWorkloads, policy.IgnoreWorkloads} {
		set := policy.DefaultSettings()
		set.Verify.OnWorkloads = want
		_, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", prepared, forecast(nil)), node("b")}), set), "a")
		assert.Equal(t, step.Act, intent.ActLook)
		assert.Equal(t, step.Check != nil && step.Check.For == fleet.CheckBaseline, want == policy.FailOnWorkloads)
		_, step = find(t, planner.Plan(fleetOf([]fleet.Node{node("a", prepared, look), node("b")}), set), "a")
		assert.Equal(t, step.Act, intent.ActCordon)
		if want == policy.FailOnWorkloads {
			assert.DeepEqual(t, step.Change.Marks.Disruption.Workloads, saw)
		} else {
			assert.Assert(t, step.Change.Marks.Disruption.Workloads == nil)
		}
	}
}

// A node that can't be drained tells what stands in the way and when it is looked at again, and then is.
func TestLookAgain(t *testing.T) {
	for o, want := range map[fleet.Obstacle]plan.Reason{
		fleet.ObstacleBudget: plan.ReasonBudgetBlocks, fleet.ObstacleAwaited: plan.ReasonPodEndAwaited,
		fleet.ObstacleProtected: plan.ReasonPodProtected, fleet.ObstacleUnknown: plan.ReasonDrainFailing,
	} {
		out := planner.Plan(fleetOf([]fleet.Node{node("a", prepared, found(time.Second, o, 29*time.Second)), node("c")}), policy.DefaultSettings())
		s, _ := find(t, out, "a")
		assert.Equal(t, verdict(s), "Staged wait "+string(want))
		assert.Equal(t, s.Message.String(), "staged; x")
		assert.Equal(t, s.NotBefore, now.Add(29*time.Second))
		assert.Equal(t, out.Wake, now.Add(29*time.Second))
		out = planner.Plan(fleetOf([]fleet.Node{node("a", prepared, found(31*time.Second, o, -time.Second)), node("c")}), policy.DefaultSettings())
		s, _ = find(t, out, "a")
		assert.Equal(t, verdict(s), "Staged Look Looking")
	}
}

// No more nodes are looked at than could go, and none while nothing could (L4).
func TestLooksAreBounded(t *testing.T) {
	looks := func(set policy.Settings, others ...fleet.Node) int {
		nodes := others
		for _, name := range []string{"a", "b", "c", "d"} {
			nodes = append(nodes, node(name, prepared, forecast(nil)))
		}
		n := 0
		for _, s := range planner.Plan(fleetOf(nodes), set).Steps {
			if s.Act == intent.ActLook {
				n++
			}
		}
		return n
	}
	set := policy.DefaultSettings()
	set.MaxUnavailable = policy.Count(3)
	assert.Equal(t, looks(set), 3)
	assert.Equal(t, looks(set, node("x", draining)), 2)
	set.Pause = &policy.Pause{Reason: "x"}
	assert.Equal(t, looks(set), 0)
	set = policy.DefaultSettings()
	set.Eviction.Predict = false
	assert.Equal(t, looks(set), 0)
	set = policy.DefaultSettings()
	set.Eviction.Force = true
	assert.Equal(t, looks(set), 0, "by force everything can be drained")
}

// A start that was interrupted gives its place back if the node can't be drained any more.
func TestInterruptedStartThatCanNotGo(t *testing.T) {
	s, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", prepared, found(time.Second, fleet.ObstacleBudget, time.Minute)), node("b", prepared)}, "a"), policy.DefaultSettings()), "a")
	assert.Equal(t, verdict(s), "Staged Fence SlotUnused")
	assert.Assert(t, step.FreesSlot)
}

// However many nodes can't be drained, looking at them again keeps no other waiting (L3).
func TestBlockedNodesComeLast(t *testing.T) {
	out := planner.Plan(fleetOf([]fleet.Node{
		node("a", prepared, found(time.Minute, fleet.ObstacleBudget, -time.Second)),
		node("b", prepared, found(time.Minute, fleet.ObstacleBudget, -time.Second)),
		node("c", prepared),
		node("d", prepared, failedOnce(-time.Hour, v1)),
	}), policy.DefaultSettings())
	s, _ := find(t, out, "c")
	assert.Equal(t, verdict(s), "Staged Cordon Cordoned")
	assert.Equal(t, len(out.Steps), 4, "one start, and three that read why they wait")
}

// A node that has been staged for long is asked whether its repository answers only once nothing else is in the way
// of its cordon: one that alerts or a budget keep would be asked again and again.
func TestConfirmationComesLast(t *testing.T) {
	staged := func(look change) fleet.Snapshot {
		return fleetOf([]fleet.Node{node("a", prepared, issued(time.Hour), look), node("c")})
	}
	free := found(time.Second, fleet.ObstacleNone, -time.Second)
	alarmed := staged(free)
	alarmed.Alerts = &fleet.Alerts{At: now, URL: "http://prometheus", Active: []fleet.Alert{{Name: "NodeDown"}}}
	for _, tc := range []struct {
		name string
		s    fleet.Snapshot
		want string
	}{
		{"alerts stand", alarmed, "Staged wait AlertsFiring"},
		{"a budget was in the way, and may not be any more", staged(found(time.Minute, fleet.ObstacleBudget, -time.Second)), "Staged Look Looking"},
		{"nothing is in the way", staged(free), "Staged Confirm Confirming"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			if tc.s.Alerts != nil {
				set.Alerts.URL = "http://prometheus"
			}
			s, _ := find(t, planner.Plan(tc.s, set), "a")
			assert.Equal(t, verdict(s), tc.want)
		})
	}
}
