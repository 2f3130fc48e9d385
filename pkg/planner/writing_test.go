package planner_test

import (
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

// refused is a node to which no write has succeeded for so long, and none is tried for another minute.
func refused(long time.Duration) change {
	return func(n *fleet.Node) {
		n.WriteTrouble = &fleet.WriteTrouble{Message: "no, says the webhook", Since: now.Add(-long), Until: now.Add(time.Minute), ClearAt: now.Add(6 * time.Minute)}
	}
}

// writtenAgain is a node whose last write went well, after others had failed.
func writtenAgain(n *fleet.Node) {
	n.WriteTrouble = &fleet.WriteTrouble{Message: "no, says the webhook", Until: now.Add(-time.Minute), ClearAt: now.Add(4 * time.Minute)}
}

func asking(n *fleet.Node) {
	refused(time.Second)(n)
	n.WriteTrouble.Until, n.WriteTrouble.InFlight = now.Add(-time.Second), true
}

func unmarked(n *fleet.Node) { n.Marks = marker.Marks{} }

func due(n *fleet.Node) {
	refused(time.Minute)(n)
	n.WriteTrouble.Until = now
}

// A node whose writes fail gets no step that writes before its next try, and says so (S9); what only looks goes on, and
// what is troubling for another reason is still called by that.
func TestAttackWritesThatFail(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		held    bool
		want    string
		says    string
	}{
		{"one that would be staged", []change{offered(v2), refused(time.Minute)}, false, "Waiting wait WriteFailing",
			"1.2.0 is available; no, says the webhook; the next write is tried after 2026-09-20 10:01:00 UTC"},
		{"once that is over", []change{offered(v2), due}, false, "Waiting Stage UpdateAvailable", "stage 1.2.0"},
		{"while it is tried", []change{offered(v2), asking}, false, "Waiting wait WriteFailing", "1.2.0 is available; no, says the webhook; a write is under way"},
		{"one that has nothing to be written", []change{refused(time.Minute)}, false, "UpToDate wait UpToDate", "runs 1.1.0 and nothing newer is offered"},
		{"one that is staged", []change{prepared, refused(time.Minute)}, false, "Staged wait WriteFailing",
			"staged; no, says the webhook; if no other write fails the node may be taken out of service after 2026-09-20 10:06:00 UTC"},
		{"also after one that went well", []change{prepared, writtenAgain}, false, "Staged wait WriteFailing",
			"staged; no, says the webhook; if no other write fails the node may be taken out of service after 2026-09-20 10:04:00 UTC"},
		{"with a slot that its cordon was not written for", []change{prepared, refused(time.Minute)}, true, "Staged wait WriteFailing",
			"no, says the webhook; the next write is tried after 2026-09-20 10:01:00 UTC; what waits: the node holds a slot that it does not need: the slot is freed"},
		{"which is freed by a look once it is not staged any more", []change{refused(time.Minute)}, true, "Waiting Release SlotUnused",
			"the node holds a slot that it does not need: the slot is freed"},
		{"also once the label is gone", []change{refused(time.Minute), unlabelled, unmarked}, true, "New Release SlotUnused",
			"the node holds a slot that it does not need: the slot is freed"},
		{"which is freed by the next write", []change{prepared, due}, true, "Staged Fence SlotUnused", "the node holds a slot that it does not need: the slot is freed"},
		{"one that drains", []change{draining, refused(time.Minute)}, false, "Draining Drain Draining", "the node's pods are being evicted"},
		{"one whose drain is blocked, which can't be noted on it", []change{draining, drain(fleet.Drain{Remaining: 1, Blocked: "a budget", Next: now.Add(time.Second)}), refused(time.Minute)},
			false, "Draining wait EvictionBlocked", "a budget"},
		{"one that is drained", []change{draining, drain(fleet.Drain{}), refused(time.Minute)}, false, "Draining wait WriteFailing",
			"no, says the webhook; the next write is tried after 2026-09-20 10:01:00 UTC; what waits: nothing is left to evict"},
		{"and has waited for long", []change{draining, drain(fleet.Drain{}), refused(15 * time.Minute)}, false, "Lost wait Lost",
			"no, says the webhook; no write to the Node has succeeded since 2026-09-20 09:45:00 UTC: it counts as Lost until one does, or it is deleted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", tc.changes...), node("b")})
			if tc.held {
				s.Slots["uid-a"] = "a"
			}
			out := planner.Plan(s, policy.DefaultSettings())
			standing, step := find(t, out, "a")
			assert.Equal(t, verdict(standing), tc.want)
			assert.Equal(t, standing.Message.String(), tc.says)
			assert.Equal(t, step != nil, standing.Act != "")
			assert.Assert(t, step == nil || step.Act != intent.ActNote && (step.Act != intent.ActRelease || step.Before == plan.LookFenced && step.FreesSlot))
			if standing.Reason == plan.ReasonWriteFailing && !s.Nodes[0].WriteTrouble.InFlight {
				assert.Assert(t, !out.Wake.IsZero() && !out.Wake.After(now.Add(6*time.Minute)), "it is tried again by itself")
			}
		})
	}
}

// A node that can't be written to keeps no other waiting (S8, L3): it is granted no slot, its place among those that
// stage is free once its time is over, and one that is disrupted lends its place on like a Lost one once it has been out
// of reach for long, as far as maxLost goes (S1).
func TestAttackPlacesOfWritesThatFail(t *testing.T) {
	expired := issued(time.Hour)
	for _, tc := range []struct {
		name string
		bad  []change
		held bool
		set  func(*policy.Settings)
		good []change
		want string
	}{
		{"a staged one takes no place", []change{prepared, refused(time.Hour)}, false, nil, []change{prepared}, "Staged Cordon Cordoned"},
		{"one whose cordon failed keeps its place at first", []change{prepared, refused(time.Minute)}, true, nil, []change{prepared}, "Staged wait UnavailableLimit"},
		{"and lends it on later", []change{prepared, refused(time.Hour)}, true, nil, []change{prepared}, "Staged Cordon Cordoned"},
		{"so does one that drains", []change{draining, refused(time.Hour)}, true, nil, []change{prepared}, "Staged Cordon Cordoned"},
		{"but not before", []change{draining, refused(14 * time.Minute)}, true, nil, []change{prepared}, "Staged wait UnavailableLimit"},
		{"nor where its last write went well", []change{draining, writtenAgain}, true, nil, []change{prepared}, "Staged wait UnavailableLimit"},
		{"nor beyond maxLost", []change{draining, refused(time.Hour)}, true, func(s *policy.Settings) { s.MaxLost = policy.Count(0) }, []change{prepared},
			"Staged wait TooManyLost"},
		{"one that stages keeps its place for its time", []change{preparing, refused(time.Minute)}, false, func(s *policy.Settings) { s.MaxStaging = 1 }, []change{offered(v2)},
			"Waiting wait StagingLimit"},
		{"and not longer", []change{preparing, expired, refused(time.Minute)}, false, func(s *policy.Settings) { s.MaxStaging = 1 }, []change{offered(v2)},
			"Waiting Stage UpdateAvailable"},
		{"one that would be staged takes no place", []change{offered(v2), refused(time.Minute)}, false, func(s *policy.Settings) { s.MaxStaging = 1 }, []change{offered(v2)},
			"Waiting Stage UpdateAvailable"},
		{"and the controller's own node doesn't wait for it", []change{offered(v2), due}, false, nil, []change{prepared, controller}, "Staged Cordon Cordoned"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", tc.bad...), node("b", tc.good...), node("c")})
			if tc.held {
				s.Slots["uid-a"] = "a"
			}
			set := policy.DefaultSettings()
			if tc.set != nil {
				tc.set(&set)
			}
			standing, _ := find(t, planner.Plan(s, set), "b")
			assert.Equal(t, verdict(standing), tc.want)
		})
	}
}

// A reboot that has begun is awaited whatever becomes of writes (S3).
func TestRebootIsAwaitedBesideWritesThatFail(t *testing.T) {
	n := node("a", busy, refused(time.Hour), unlabelled)
	standing, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}), policy.DefaultSettings()), "a")
	assert.Assert(t, step == nil)
	assert.Equal(t, standing.Reason, plan.ReasonLabelRemoved)
	assert.Equal(t, n.Marks.Intent.Action, marker.ActionRebootUpdate)
}

// A drain that took too long while nothing could be written to its node is no failure of the node (S10).
func TestDrainBesideWritesThatFail(t *testing.T) {
	for _, tc := range []struct {
		trouble change
		counted bool
	}{{with(func(*fleet.Node) {}), true}, {due, false}} {
		n := node("a", draining, cordonedSince(time.Hour), drain(fleet.Drain{Remaining: 1, Next: now.Add(time.Second)}), tc.trouble)
		n.WatchedSince = now.Add(-2 * time.Hour)
		_, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}), policy.DefaultSettings()), "a")
		assert.Equal(t, step.Reason, plan.ReasonDrainDeadline)
		assert.Equal(t, step.Change.Marks.Failure != nil, tc.counted)
	}
}
