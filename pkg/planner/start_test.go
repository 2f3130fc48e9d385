package planner_test

import (
	"math/rand/v2"
	"slices"
	"strings"
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

func broken(n *fleet.Node) {
	n.Problems = []marker.Problem{{Key: marker.KeyDisruption, Why: "x"}}
	n.Marks.Disruption = &marker.Disruption{}
}

// givenUp is a node whose last attempt ended without success.
func givenUp(ago time.Duration) change {
	return func(n *fleet.Node) {
		n.Marks.History = []marker.Attempt{{Version: v2, Outcome: marker.OutcomeAbandoned, Ended: now.Add(-ago)}}
	}
}

func inZones(s policy.Settings, t policy.Topology) policy.Settings {
	s.Topology = []policy.Topology{t}
	return s
}

// What the limits leave, and which nodes get it.
func TestStart(t *testing.T) {
	limit := func(unavailable, staging, maxLost int) policy.Settings {
		s := policy.DefaultSettings()
		s.MaxUnavailable, s.MaxStaging, s.MaxLost = policy.Count(unavailable), staging, policy.Count(maxLost)
		return s
	}
	stage := offered(v2)
	for _, tc := range []struct {
		name  string
		set   policy.Settings
		nodes []fleet.Node
		held  []string
		// want is what holds for each node, by name; others aren't looked at.
		want map[string]string
	}{
		{"one at a time, by name", limit(1, 10, 1), []fleet.Node{node("a", prepared), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit"}},
		{"as many as the limit", limit(2, 10, 1), []fleet.Node{node("a", prepared), node("b", prepared), node("c", prepared), node("d")}, nil,
			map[string]string{"a": "Cordon Cordoned", "b": "Cordon Cordoned", "c": "wait UnavailableLimit"}},
		{"a disrupted node counts", limit(1, 10, 1), []fleet.Node{node("a", draining), node("b", prepared), node("c")}, nil,
			map[string]string{"b": "wait UnavailableLimit"}},
		{"a slot and a disruption of one node count once", limit(2, 10, 1), []fleet.Node{node("a", draining), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"b": "Cordon Cordoned"}},
		{"a slot without a disruption counts", limit(1, 10, 1), []fleet.Node{node("a", paused, prepared), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"a": "Fence SlotUnused", "b": "wait UnavailableLimit"}},
		{"a slot of a node that is gone counts, and is released", limit(1, 10, 1), []fleet.Node{node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"b": "wait UnavailableLimit"}},
		{"those that are asked whether their stage stands have a place", limit(2, 10, 1),
			[]fleet.Node{node("a", confirming), node("b", prepared, issued(time.Hour)), node("c", prepared, issued(time.Hour)), node("d", prepared), node("e")}, nil,
			map[string]string{"a": "wait Confirming", "b": "Confirm Confirming", "c": "wait UnavailableLimit", "d": "wait UnavailableLimit"}},
		{"what an interrupted start holds is not asked again", limit(1, 10, 1), []fleet.Node{node("a", prepared, issued(time.Hour)), node("b")}, []string{"a"},
			map[string]string{"a": "Cordon Cordoned"}},
		{"in its zone too, whichever that is", inZones(limit(2, 10, 1), policy.Topology{Key: zoneKey, MaxUnavailable: policy.Count(1)}),
			[]fleet.Node{node("b", zone("x"), prepared), node("c", zone("y"))}, []string{"a"},
			map[string]string{"b": "wait UnavailableLimit"}},
		{"and as a zone", inZones(limit(2, 10, 1), policy.Topology{Key: zoneKey, MaxUnavailable: policy.Unlimited, MaxDomains: 1}),
			[]fleet.Node{node("b", zone("x"), prepared), node("c", zone("y"))}, []string{"a"},
			map[string]string{"b": "wait DomainLimit"}},
		{"an unreadable disruption counts as a slot", limit(1, 10, 1), []fleet.Node{node("a", broken), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "wait AnnotationUnreadable", "b": "wait UnavailableLimit"}},
		{"and is not Lost, whatever else its Node shows", limit(1, 10, 1), []fleet.Node{node("a", lost, broken), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "wait AnnotationUnreadable", "b": "wait UnavailableLimit"}},
		{"a verifying node counts", limit(1, 10, 1), []fleet.Node{node("a", verifying(1)), node("b", prepared), node("c")}, nil,
			map[string]string{"b": "wait UnavailableLimit"}},
		{"a resetting node doesn't", limit(1, 10, 1), []fleet.Node{node("a", resetting), node("b", prepared), node("c")}, nil,
			map[string]string{"b": "Cordon Cordoned"}},
		{"an interrupted start goes first", limit(1, 10, 1), []fleet.Node{node("a", prepared), node("b", prepared), node("c")}, []string{"b"},
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},
		{"also where one alone can go", limit(3, 10, 1), []fleet.Node{node("a", prepared), node("b", prepared), node("c", cordoned)}, []string{"b"},
			map[string]string{"a": "wait OnlySchedulableNode", "b": "Cordon Cordoned"}},
		{"nodes that aren't managed come and go", limit(1, 10, 1), []fleet.Node{{Name: "0", UID: "uid-0", Ready: true}, node("a", prepared), node("c")}, nil,
			map[string]string{"a": "Cordon Cordoned"}},
		{"builds of one version are as old as each other", limit(1, 10, 1),
			[]fleet.Node{node("a", prepared, runs(v1+"+c")), node("b", prepared, runs(v1+"+b")), node("c", prepared), node("d", prepared, runs(v1+"+a"))}, nil,
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit", "c": "wait UnavailableLimit", "d": "wait UnavailableLimit"}},
		{"a lowered limit takes a slot that isn't used yet", limit(1, 10, 1), []fleet.Node{node("a", draining), node("b", prepared), node("c")}, []string{"a", "b"},
			map[string]string{"a": "Drain Draining", "b": "Fence SlotUnused"}},

		{"never failed first", limit(1, 10, 1), []fleet.Node{node("a", prepared, failedOnce(0, v1)), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},
		{"what was given up lately comes later", limit(1, 10, 1), []fleet.Node{node("a", prepared, givenUp(time.Minute)), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},
		{"and what was long ago doesn't", limit(1, 10, 1), []fleet.Node{node("a", prepared, givenUp(48*time.Hour)), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit"}},
		{"what others took out of service is staged first", limit(1, 1, 1), []fleet.Node{node("a", stage), node("b", stage, cordoned), node("c")}, nil,
			map[string]string{"a": "wait StagingLimit", "b": "Stage UpdateAvailable"}},
		{"the controller's node waits for those that are asked in this pass", limit(3, 10, 1),
			[]fleet.Node{node("a", prepared, controller), node("b", prepared, issued(time.Hour)), node("c")}, nil,
			map[string]string{"a": "wait ControllerLast", "b": "Confirm Confirming"}},
		{"and for those that were asked", limit(3, 10, 1), []fleet.Node{node("a", prepared, controller), node("b", confirming, issued(0)), node("c")}, nil,
			map[string]string{"a": "wait ControllerLast", "b": "wait Confirming"}},
		{"the controller's own node last", limit(1, 10, 1), []fleet.Node{node("a", prepared, controller), node("b", prepared), node("c")}, nil,
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},
		{"even after those that failed", limit(1, 10, 1), []fleet.Node{node("a", prepared, controller), node("b", prepared, failedOnce(0, v1)), node("c")}, nil,
			map[string]string{"a": "wait UnavailableLimit", "b": "Cordon Cordoned"}},
		{"it waits for those that still stage", limit(1, 10, 1), []fleet.Node{node("a", prepared, controller), node("b", preparing), node("c")}, nil,
			map[string]string{"a": "wait ControllerLast"}},
		{"and for those about to stage", limit(1, 10, 1), []fleet.Node{node("a", prepared, controller), node("b", stage), node("c")}, nil,
			map[string]string{"a": "wait ControllerLast", "b": "Stage UpdateAvailable"}},
		{"not for those that can't go on", limit(1, 10, 1), []fleet.Node{node("a", prepared, controller), node("b", prepared, paused), node("c", stage, agentAway)}, nil,
			map[string]string{"a": "Cordon Cordoned"}},
		{"not for one that waits for it: a user cordoned the controller's node (L1)", limit(1, 10, 1),
			[]fleet.Node{node("a", prepared, controller, cordoned), node("b", prepared)}, nil,
			map[string]string{"a": "Cordon Cordoned", "b": "wait UnavailableLimit"}},

		{"the only node of a cluster", limit(1, 10, 1), []fleet.Node{node("a", prepared)}, nil,
			map[string]string{"a": "wait OnlySchedulableNode"}},
		{"the only one that others could take pods from", limit(3, 10, 1), []fleet.Node{node("a", prepared), node("b", cordoned), node("c", notReady)}, nil,
			map[string]string{"a": "wait OnlySchedulableNode"}},
		{"two in one pass leave one", limit(2, 10, 1), []fleet.Node{node("a", prepared), node("b", prepared)}, nil,
			map[string]string{"a": "Cordon Cordoned", "b": "wait OnlySchedulableNode"}},
		{"a slot that can't be used is freed", limit(1, 10, 1), []fleet.Node{node("a", prepared)}, []string{"a"},
			map[string]string{"a": "Fence SlotUnused"}},
		{"a node that takes no pods anyway goes", limit(1, 10, 1), []fleet.Node{node("a", prepared, cordoned), node("b")}, nil,
			map[string]string{"a": "Cordon Cordoned"}},
		{"a node without label takes pods too", limit(1, 10, 1), []fleet.Node{node("a", prepared), {Name: "b", UID: "uid-b", Ready: true}}, nil,
			map[string]string{"a": "Cordon Cordoned"}},

		{"a Lost node's slot is not counted", limit(1, 10, 1), []fleet.Node{node("a", lost), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"a": "wait Lost", "b": "Cordon Cordoned"}},
		{"no more than one, by that limit", limit(1, 10, 1), []fleet.Node{node("a", lost), node("b", prepared), node("c", draining), node("d")}, []string{"a"},
			map[string]string{"b": "wait UnavailableLimit"}},
		{"two Lost stop all", limit(3, 10, 1), []fleet.Node{node("a", lost), node("b", prepared), node("c", lost), node("d", stage)}, []string{"a"},
			map[string]string{"b": "wait TooManyLost", "d": "wait TooManyLost"}},
		{"as many as lend may be Lost", limit(3, 10, 2), []fleet.Node{node("a", lost), node("b", prepared), node("c", lost), node("d", stage)}, []string{"a"},
			map[string]string{"b": "Cordon Cordoned", "d": "Stage UpdateAvailable"}},
		{"none may be Lost", limit(3, 10, 0), []fleet.Node{node("a", lost), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"b": "wait TooManyLost"}},
		{"a new leader starts nothing that it would not at its second look", limit(3, 10, 0), []fleet.Node{node("a", lost, firstLook), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"a": "wait Rebooting", "b": "wait TooManyLost"}},
		{"and its slot is counted", limit(1, 10, 1), []fleet.Node{node("a", lost, firstLook), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"b": "wait UnavailableLimit"}},
		{"a node is not Lost at first sight, and its slot is counted", limit(1, 10, 1), []fleet.Node{node("a", lost, firstLook), node("b", prepared), node("c")}, []string{"a"},
			map[string]string{"b": "wait UnavailableLimit"}},

		{"staging has a limit of its own", limit(1, 2, 1), []fleet.Node{node("a", stage), node("b", stage), node("c", stage)}, nil,
			map[string]string{"a": "Stage UpdateAvailable", "b": "Stage UpdateAvailable", "c": "wait StagingLimit"}},
		{"those that stage count", limit(1, 1, 1), []fleet.Node{node("a", preparing), node("b", stage)}, nil,
			map[string]string{"b": "wait StagingLimit"}},
		{"those that are staged don't", limit(1, 1, 1), []fleet.Node{node("a", prepared), node("b", stage), node("c")}, nil,
			map[string]string{"b": "Stage UpdateAvailable"}},
		{"one that was taken out of our care while it staged doesn't", limit(1, 1, 1), []fleet.Node{node("a", preparing, unlabelled), node("b", stage)}, nil,
			map[string]string{"b": "Stage UpdateAvailable"}},
		{"nor one that is labelled for another interface by now", limit(1, 1, 1),
			[]fleet.Node{node("a", preparing, with(func(n *fleet.Node) { n.Interface = "3.0.0" })), node("b", stage)}, nil,
			map[string]string{"a": "wait InterfaceUnsupported", "b": "Stage UpdateAvailable"}},
		{"never failed stages first", limit(1, 1, 1), []fleet.Node{node("a", stage, failedOnce(0, v2)), node("b", stage)}, nil,
			map[string]string{"a": "wait StagingLimit", "b": "Stage UpdateAvailable"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := planner.Plan(fleetOf(tc.nodes, tc.held...), tc.set)
			for name, want := range tc.want {
				got, step := find(t, out, name)
				_, verdict, _ := strings.Cut(verdict(got), " ")
				assert.Equal(t, verdict, want, "%s: %s", name, got.Message)
				switch got.Act {
				case intent.ActCordon:
					assert.Assert(t, step.TakesSlot && !step.FreesSlot)
					assert.Equal(t, step.Change.Marks.Intent.RebootFrom, "b1", "in one patch with the cordon")
					assert.Assert(t, step.Change.Marks.Disruption != nil)
				case intent.ActFence:
					assert.Assert(t, step.FreesSlot && step.Change.Marks.Intent.ID != "i1")
				default:
				}
			}
		})
	}
}

// While the list of slots can't be read nothing starts, and what is under way goes on.
func TestSlotsUnreadable(t *testing.T) {
	s := fleetOf([]fleet.Node{node("a", prepared), node("b", offered(v2)), node("c", draining, drain(fleet.Drain{}))})
	s.SlotsProblem, s.Slots = "broken", nil
	out := planner.Plan(s, policy.DefaultSettings())
	for name, want := range map[string]string{
		"a": "Staged wait StateUnreadable", "b": "Waiting wait StateUnreadable", "c": "Draining Reboot RebootRequested",
	} {
		got, _ := find(t, out, name)
		assert.Equal(t, verdict(got), want)
	}
	assert.Equal(t, out.Wake, now.Add(30*time.Second), "it is read again")
	for _, problem := range []string{"", "broken"} {
		s.PolicyUnrecorded, s.SlotsProblem = true, problem
		assert.Equal(t, planner.Plan(s, policy.DefaultSettings()).RecordPolicy, problem == "", "where the slots are, the policy is noted too")
	}
}

// Slots whose node shows no disruption end by a write that makes an older cordon fail, then by release.
func TestFence(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change change
		act    intent.Act
		action marker.Action
	}{
		{"new", func(n *fleet.Node) { n.Marks = marker.Marks{} }, intent.ActStabilize, marker.ActionStabilize},
		{"idle", func(*fleet.Node) {}, intent.ActFence, marker.ActionStabilize},
		{"preparing", preparing, intent.ActFence, marker.ActionStabilize},
		{"resetting, and what is activated is still to be undone", resetting, intent.ActFence, marker.ActionResetState},
		{"for another interface", func(n *fleet.Node) { n.Interface = "3.0.0" }, intent.ActFence, marker.ActionStabilize},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", tc.change)}, "a"), policy.DefaultSettings()), "a")
			assert.Equal(t, step.Act, tc.act)
			assert.Equal(t, step.Change.Marks.Intent.Action, tc.action)
			if tc.act == intent.ActFence {
				assert.Assert(t, step.FreesSlot)
			}
		})
	}
	out := planner.Plan(fleetOf([]fleet.Node{node("a")}, "gone"), policy.DefaultSettings())
	_, released := find(t, plan.Plan{Nodes: []plan.Decision{{Node: "gone"}}, Steps: out.Steps}, "gone")
	assert.Equal(t, released.Act, intent.ActRelease)
	assert.Assert(t, released.FreesSlot && released.Change == nil)
	again := node("a")
	again.UID = "uid-a-2"
	out = planner.Plan(fleetOf([]fleet.Node{again}, "a"), policy.DefaultSettings())
	assert.Equal(t, out.Steps[0].Act, intent.ActRelease, "a node recreated under its name is another node")
	assert.Equal(t, out.Steps[0].UID, "uid-a")
	out = planner.Plan(fleetOf([]fleet.Node{node("a", unlabelled)}, "a", "f", "d", "e", "b", "c"), policy.DefaultSettings())
	var freed []string
	for _, step := range out.Steps {
		assert.Assert(t, step.FreesSlot)
		freed = append(freed, string(step.Act)+" "+step.UID)
	}
	assert.DeepEqual(t, freed, []string{"Leave uid-a", "Release uid-b", "Release uid-c", "Release uid-d", "Release uid-e", "Release uid-f"})
}

// A plan changes nothing in the snapshot it was made from.
func TestPlanLeavesTheSnapshotAlone(t *testing.T) {
	nodes := func() []fleet.Node {
		return []fleet.Node{node("a", verifying(1), notReady, failedOnce(0, v1)), node("b", back(v1), failedOnce(0, v1)),
			node("c", offered(v2), failedOnce(9e16, v2)), node("d", draining, schedulable), node("e", prepared)}
	}
	s := fleetOf(nodes(), "e")
	planner.Plan(s, policy.DefaultSettings())
	for i, n := range nodes() {
		assert.DeepEqual(t, marker.Encode(s.Nodes[i].Marks), marker.Encode(n.Marks))
	}
	assert.Equal(t, len(s.Slots), 1)
}

// Who goes doesn't depend on the order in which nodes are given.
func TestOrderIsDeterministic(t *testing.T) {
	set := policy.DefaultSettings()
	set.MaxUnavailable, set.MaxStaging = policy.Count(3), 2
	nodes := []fleet.Node{node("a", prepared, controller), node("b", prepared, failedOnce(0, v1)), node("c", prepared), node("d", offered(v2)),
		node("e", offered(v2), failedOnce(0, v1)), node("f", offered(v2)), node("g", draining), node("h", prepared)}
	want := planner.Plan(fleetOf(slices.Clone(nodes)), set).String()
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		s := fleet.Snapshot{Now: now, Nodes: nodes, Slots: map[string]string{}}
		got := planner.Plan(s, set)
		assert.Equal(t, got.String(), want)
	}
}
