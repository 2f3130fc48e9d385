package planner_test

import (
	"math"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// What becomes of a drain that doesn't come to its end: abandoned with its reason, and by force only where the policy
// says so, only past the drain's own deadline, and only for a while (S2, L3).
func TestDrainThatDoesNotEnd(t *testing.T) {
	byForce := policy.DefaultSettings()
	byForce.Eviction.Force = true
	set := policy.DefaultSettings()
	soon := now.Add(time.Second)
	for _, tc := range []struct {
		name    string
		set     policy.Settings
		changes []change
		want    string
		force   bool
	}{
		{"a pod can never be evicted", set, []change{drain(fleet.Drain{Remaining: 2, Unevictable: "x", Next: soon})}, "Draining Abandon EvictionRefused", false},
		{"a pod can't be evicted, but there is force", byForce, []change{drain(fleet.Drain{Remaining: 2, Unevictable: "x", Next: soon})}, "Draining wait EvictionBlocked", false},
		{"force is refused too", byForce, []change{drain(fleet.Drain{Remaining: 2, Unevictable: "x", Forced: true, Next: soon}), cordonedSince(31 * time.Minute)}, "Draining Abandon EvictionRefused", false},
		{"a pod must end by itself", set, []change{drain(fleet.Drain{Remaining: 1, Awaited: "x", Next: soon})}, "Draining wait PodEndAwaited", false},
		{"before the deadline", byForce, []change{drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now}), cordonedSince(29 * time.Minute)}, "Draining Drain Draining", false},
		{"past the deadline", byForce, []change{drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now}), cordonedSince(31 * time.Minute)}, "Draining Drain Draining", true},
		{"past the deadline, at a first look", byForce, []change{drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now}), cordonedSince(31 * time.Minute), firstLook}, "Draining Drain Draining", false},
		{"past the deadline, but not by force", set, []change{drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now}), cordonedSince(31 * time.Minute)}, "Draining Abandon DrainDeadline", false},
		{"force has an end", byForce, []change{drain(fleet.Drain{Remaining: 1, Waiting: "x", Next: now, Forced: true}), cordonedSince(36 * time.Minute)}, "Draining Abandon DrainDeadline", false},
		{"drained by force", byForce, []change{drain(fleet.Drain{Forced: true}), cordonedSince(32 * time.Minute)}, "Draining Reboot RebootRequested", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", append([]change{draining}, tc.changes...)...)
			n.Marks.Waiting = nil
			s, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}), tc.set), "a")
			assert.Equal(t, verdict(s), tc.want)
			assert.Equal(t, step != nil && step.Force, tc.force)
			assert.Equal(t, step != nil && step.Most == math.MaxInt, tc.force, "force has no limit")
			if s.Act == "Drain" || s.Act == "Reboot" {
				assert.Assert(t, step.Eviction != nil)
			}
		})
	}
}

// People read in the reason of a deadline what it was that did not end.
func TestDrainDeadlineSaysWhat(t *testing.T) {
	late := func(changes ...change) string {
		n := node("a", append([]change{draining, cordonedSince(time.Hour)}, changes...)...)
		s, _ := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}), policy.DefaultSettings()), "a")
		assert.Equal(t, s.Reason, plan.ReasonDrainDeadline)
		return s.Message.String()
	}
	for _, d := range []fleet.Drain{{Blocked: "web"}, {Awaited: "web"}, {Waiting: "web"}} {
		d.Remaining = 1
		assert.Equal(t, late(drain(d)), "not drained within 30m0s: web")
	}
	assert.Equal(t, late(drain(fleet.Drain{Failed: "listing pods: refused"})), "not drained within 30m0s: listing pods: refused")
	assert.Equal(t, late(looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "reading web: forbidden"})), "not drained within 30m0s: reading web: forbidden")
	assert.Equal(t, late(looked(fleet.Checked{For: fleet.CheckVolumes, Failed: "x"})), "not drained within 30m0s")
	assert.Equal(t, late(drain(fleet.Drain{}), agentAway), "drained, but no agent pod was Ready on the node within 30m0s")
}

func TestPodSelector(t *testing.T) {
	web := policy.PodSelector{Namespace: "shop", Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"web"}}}}
	labels := map[string]string{"app": "web"}
	assert.Assert(t, web.Matches("shop", labels))
	assert.Assert(t, !web.Matches("other", labels))
	assert.Assert(t, !web.Matches("shop", nil))
	web.Namespace = ""
	assert.Assert(t, web.Matches("other", labels))
	assert.Assert(t, policy.PodSelector{Namespace: "shop"}.Matches("shop", nil))
	set := policy.DefaultSettings()
	set.Eviction.Leave = []policy.PodSelector{{}}
	assert.ErrorContains(t, set.Validate(), "chooses every pod")
	set = policy.DefaultSettings()
	set.Eviction.GracePeriod = time.Millisecond
	assert.ErrorContains(t, set.Validate(), "gracePeriod is 1ms")
}
