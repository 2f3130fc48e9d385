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

// fresh is a new node with the taint, made so long ago.
func fresh(ago time.Duration) change {
	return func(n *fleet.Node) { n.FreshTaint, n.Created = true, now.Add(-ago) }
}

// takenFresh is a node that was taken out of service before it had workloads.
func takenFresh(n *fleet.Node) { n.Marks.Disruption.Fresh = true }

func freshed(times int) change {
	return func(n *fleet.Node) { n.Marks.Fresh = &marker.Fresh{Why: "UpToDate", Times: times} }
}

func remembers(o marker.Outcome) change {
	return func(n *fleet.Node) {
		n.Marks.History = []marker.Attempt{{Version: v2, Outcome: o, Started: now.Add(-time.Hour), Ended: now.Add(-30 * time.Minute)}}
	}
}

// proves is another node of the fleet that has run a version for an hour.
func proves(v string, changes ...change) fleet.Node {
	n := node("z", append([]change{runs(v), with(func(n *fleet.Node) { n.Created = now.Add(-time.Hour) })}, changes...)...)
	return n
}

// A new node goes first, by its own room and without a window, to what its group has proven; and its taint goes as soon
// as nothing is to be waited for any more.
func TestFresh(t *testing.T) {
	none := func(*policy.Settings) {}
	closed := func(s *policy.Settings) {
		s.Calendar = nightly(t, "0 20 * * *", time.Hour)
	}
	frozen := func(s *policy.Settings) {
		s.Calendar.Freezes = []window.Freeze{{From: now.Add(-time.Hour), To: now.Add(time.Hour), Reason: "x"}}
	}
	two := []fleet.Node{proves(v2)}
	for _, tc := range []struct {
		name    string
		policy  func(*policy.Settings)
		others  []fleet.Node
		changes []change
		want    string
		// taint: the step takes it off.
		taint bool
	}{
		{"to what another has run", none, two, []change{fresh(0), offered(v2)}, "Waiting Stage UpdateAvailable", false},
		{"outside the window", closed, two, []change{fresh(0), prepared}, "Staged Cordon Cordoned", false},
		{"not in a freeze", frozen, two, []change{fresh(0), offered(v2)}, "Waiting Untaint Frozen", true},
		{"its agent is not there yet", none, two, []change{fresh(0), agentAway}, "Waiting wait AgentNotReady", false},
		{"nor its kubelet", none, two, []change{fresh(0), offered(v2), notReady}, "Waiting wait NodeNotReady", false},
		{"nothing is offered", none, two, []change{fresh(0)}, "UpToDate Untaint UpToDate", true},
		{"it runs what the others run", none, two, []change{fresh(0), runs(v2), offered(v3)}, "Waiting Untaint FreshUnproven", true},
		{"none has proven anything", none, nil, []change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"another has the version, by its kubelet alone", none, []fleet.Node{proves(v2, with(func(n *fleet.Node) { n.Marks.Report.Current = v1 }))},
			[]change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"another has it since a moment ago", none, []fleet.Node{proves(v2, with(func(n *fleet.Node) { n.Created = now.Add(-time.Second) }))},
			[]change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"it failed on another", none, []fleet.Node{proves(v2), node("y", failedOnce(time.Hour, v2))}, []change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"another fresh one proves nothing", none, []fleet.Node{proves(v2, fresh(time.Hour), freshed(3))}, []change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"a canary's version", none, two, []change{fresh(0), offered(v3), saysLock(marker.LockLatest), lists(v3, v2, v1)}, "Waiting Lock LockWanted", false},
		{"locked off that", none, two, []change{fresh(0), offered(v2), saysLock(v2), lists(v3, v2, v1), wantedLock(v2)}, "Waiting Stage UpdateAvailable", false},
		{"and unlocked when it is not fresh any more", none, two, []change{runs(v2), saysLock(v2), lists(v3, v2, v1), wantedLock(v2), remembers(marker.OutcomeUpdated)},
			"Waiting Lock LockWanted", false},
		{"a canary's version, and not the proven one", none, two, []change{fresh(0), offered(v3), saysLock(marker.LockLatest), lists(v3, v1)}, "Waiting Untaint PinNotOffered", true},
		{"a pin needs no proof", func(s *policy.Settings) { s.Versions.Pin = v3 }, two, []change{fresh(0), offered(v3), saysLock(v3), lists(v3)}, "Waiting Stage UpdateAvailable", false},
		{"locked by a pin that is gone", none, two, []change{fresh(0), offered(v3), saysLock(v3), lists(v3, v2, v1), wantedLock(v3)}, "Waiting Untaint FreshUnproven", true},
		{"tainted once it is staged", none, nil, []change{fresh(0), prepared}, "Staged Untaint FreshUnproven", true},
		{"staged for another than is proven", none, two, []change{fresh(0), preparedFor(v3)}, "Staged Untaint FreshUnproven", true},
		{"the node that proves it is in no care any more", none, []fleet.Node{proves(v2, unlabelled)}, []change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"what stands on it can't be read", none, two, []change{fresh(15 * time.Minute), offered(v2), with(func(n *fleet.Node) { n.Problems = []marker.Problem{{Key: marker.KeyFailure}} })}, "Unreadable wait AnnotationUnreadable", false},
		{"to the highest of two", none, []fleet.Node{node("y", runs(v3), with(func(n *fleet.Node) { n.Created = now.Add(-time.Hour) })), proves(v2)},
			[]change{fresh(0), offered(v3)}, "Waiting Stage UpdateAvailable", false},
		{"a denied version", func(s *policy.Settings) { s.Versions.Hold = v3 }, two, []change{fresh(0), offered(v2)}, "Waiting Untaint FreshUnproven", true},
		{"a paused fleet", func(s *policy.Settings) { s.Pause = &policy.Pause{Reason: "x"} }, two, []change{fresh(0), offered(v2)}, "Waiting Untaint PolicyPaused", true},
		{"paused itself", none, two, []change{fresh(0), offered(v2), paused}, "Waiting Untaint Paused", true},
		{"no room for any", func(s *policy.Settings) { s.FreshNodes.MaxUnavailable = policy.Count(0) }, two, []change{fresh(0), offered(v2)}, "Waiting Untaint PolicyPaused", true},
		{"plans update it", none, two, []change{fresh(0), with(func(n *fleet.Node) { n.Interface = fleet.InterfacePlan })}, "Waiting Untaint NoPlan", true},

		{"too old", none, two, []change{fresh(15 * time.Minute), offered(v2)}, "Waiting Untaint FreshOverdue", true},
		{"too old, and its agent never came", none, two, []change{fresh(15 * time.Minute), agentAway}, "Waiting Untaint FreshOverdue", true},
		{"too old at a leader's first look", none, two, []change{fresh(15 * time.Minute), agentAway, firstLook}, "Waiting Untaint FreshOverdue", true},
		{"too old as it is staged", none, two, []change{fresh(15 * time.Minute), preparing}, "Staging Untaint FreshOverdue", true},
		{"too old as it is drained", none, two, []change{fresh(15 * time.Minute), draining, takenFresh}, "Draining Abandon FreshOverdue", true},
		{"tainted and too old as it is drained like any other", none, two, []change{fresh(15 * time.Minute), draining}, "Draining Drain Draining", false},
		{"too old before the reboot has begun", none, two, []change{fresh(15 * time.Minute), rebooting, takenFresh}, "Rebooting Abandon FreshOverdue", true},
		{"too old after it", none, two, []change{fresh(15 * time.Minute), busy, takenFresh}, "Rebooting wait Rebooting", false},
		{"the window closes while it is drained", closed, two, []change{fresh(0), draining, takenFresh, drain(fleet.Drain{})}, "Draining Reboot RebootRequested", false},
		{"frozen while it is drained", frozen, two, []change{fresh(0), draining, takenFresh}, "Draining Uncordon Frozen", true},
		{"it is back", none, two, []change{fresh(0), back(v2), takenFresh}, "Returning Return Uncordoned", true},
		{"it came back with a failure", none, two, []change{fresh(0), back(v1), takenFresh}, "Returning Return RolledBack", true},
		{"it failed before", none, two, []change{fresh(0), offered(v2), remembers(marker.OutcomeFailed)}, "Waiting Untaint UpdateAvailable", true},
		{"the label is gone", none, two, []change{fresh(0), offered(v2), unlabelled, with(func(n *fleet.Node) { n.AgentPod = false })}, "Waiting Leave LabelRemoved", true},
		{"put back on", none, two, []change{fresh(0), freshed(1)}, "UpToDate Untaint UpToDate", true},
		{"put back on again", none, two, []change{fresh(0), freshed(2)}, "UpToDate Untaint TaintReturns", true},
		{"and again", none, two, []change{fresh(0), freshed(3)}, "UpToDate wait UpToDate", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			tc.policy(&set)
			s := fleetOf(append([]fleet.Node{node("a", tc.changes...), node("c")}, tc.others...))
			s.FirstSeen = map[string]time.Time{v2: now.Add(-time.Hour), v3: now.Add(-time.Hour)}
			d, step := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, verdict(d), tc.want, "%s", d.Message)
			assert.Equal(t, step != nil && step.Change != nil && step.Change.DropFresh, tc.taint)
			if tc.taint && step.Change.Marks.Fresh != nil {
				before := 0
				if f := s.Nodes[0].Marks.Fresh; f != nil {
					before = f.Times
				}
				after := step.Change.Marks.Fresh
				assert.Equal(t, after.Why, string(step.Reason))
				assert.Equal(t, after.Times, before+1)
			}
		})
	}
}

// S1: new nodes use no budget but their own, of which there are never more out of service than it has; and no share is
// taken of them.
func TestFreshRoom(t *testing.T) {
	set := policy.DefaultSettings()
	set.FreshNodes.MaxUnavailable = policy.Count(2)
	set.MaxUnavailable = policy.Percent(50)
	cordons := func(nodes []fleet.Node, held ...string) (names string) {
		s := fleetOf(nodes, held...)
		s.FirstSeen = map[string]time.Time{v2: now.Add(-time.Hour)}
		for _, step := range planner.Plan(s, set).Steps {
			if step.TakesSlot {
				names += step.Node
			}
		}
		return names
	}
	ready := func(name string) fleet.Node { return node(name, fresh(0), prepared) }
	old := proves(v2)
	assert.Equal(t, cordons([]fleet.Node{ready("a"), ready("b"), ready("c"), node("d", prepared), node("e", prepared), old}), "abd")
	assert.Equal(t, cordons([]fleet.Node{node("a", fresh(0), busy, takenFresh), ready("b"), ready("c"), node("d", prepared), old}), "bd")
	assert.Equal(t, cordons([]fleet.Node{ready("b"), ready("c"), node("d", busy), node("e", prepared), old}), "bc")
	assert.Equal(t, cordons([]fleet.Node{node("a"), node("b", fresh(0), prepared), old}), "b")
	// Of a slot that is known by its name alone it isn't known whose room it takes.
	assert.Equal(t, cordons([]fleet.Node{ready("a"), ready("b"), node("d", prepared), old}, "gone"), "a")
	// One that only waits for its room keeps its taint meanwhile.
	s := fleetOf([]fleet.Node{ready("a"), ready("b"), ready("c"), old})
	s.FirstSeen = map[string]time.Time{v2: now.Add(-time.Hour)}
	d, _ := find(t, planner.Plan(s, set), "c")
	assert.Equal(t, verdict(d), "Staged wait UnavailableLimit")
	warned := planner.Plan(fleetOf([]fleet.Node{node("a", fresh(0), unlabelled, with(func(n *fleet.Node) { n.Marks = marker.Marks{} })), node("b", fresh(0), freshed(3))}), set).Warnings
	assert.Equal(t, len(warned), 2)
	assert.Equal(t, warned[0].String(), "1 nodes keep the taint bottlerocket.aws/fresh, a among them, since they have no label of the operator: "+
		"kubectl taint node a bottlerocket.aws/fresh:NoSchedule-")
	assert.Equal(t, warned[1].Of, "returning taints")
	usage := planner.Budgets(fleetOf([]fleet.Node{ready("a"), old}), set)
	assert.Assert(t, len(usage) > 2)
	assert.DeepEqual(t, usage[len(usage)-2], plan.Usage{Of: "fresh nodes", Rule: "2", Limit: 2})
}

// L2: the deadline ends by the clock alone, so the plan says when to look again, before the cordon and after it.
func TestFreshDeadlineIsLookedAtInTime(t *testing.T) {
	for _, n := range []fleet.Node{node("a", fresh(14*time.Minute), agentAway), node("a", fresh(14*time.Minute), draining, takenFresh)} {
		wake := planner.Plan(fleetOf([]fleet.Node{n, proves(v2)}), policy.DefaultSettings()).Wake
		assert.Assert(t, !wake.After(now.Add(time.Minute)) && wake.After(now), "%s", wake)
	}
}
