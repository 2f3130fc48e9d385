package planner_test

import (
	"fmt"
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

// asks is a user's request for a cycle of the node.
func asks(id string) change { return func(n *fleet.Node) { n.Marks.Cycle = id } }

// cycleStaged is a node that was asked whether it runs its own version, and said yes.
func cycleStaged(n *fleet.Node) {
	prepared(n)
	n.Marks.Report.Available, n.Marks.Intent.Target, n.Marks.Cycle = "", v1, "x"
}

func cycleDraining(n *fleet.Node) {
	draining(n)
	cycleStaged(n)
	n.Marks.Intent.RebootFrom, n.Marks.Disruption.Cycle = "b1", "x"
	n.Marks.Waiting.Reason = string(plan.ReasonDraining)
}

func cycleRebooting(n *fleet.Node) {
	rebooting(n)
	n.Marks.Report.Available, n.Marks.Intent.Target, n.Marks.Cycle, n.Marks.Disruption.Cycle = "", v1, "x", "x"
}

// cycleBack is a host that came back with a version.
func cycleBack(version string) change {
	return func(n *fleet.Node) {
		cycleRebooting(n)
		n.BootID, n.Marks.Report.BootID = "b2", "b2"
		n.OSVersion, n.Marks.Report.Current = version, version
		answers(marker.StateReady, "")(n)
		if version != v1 {
			answers(marker.StateError, "the host came back with "+version)(n)
		}
	}
}

func cycleVerifying(ago time.Duration) change {
	return func(n *fleet.Node) {
		cycleBack(v1)(n)
		verifying(ago)(n)
		n.OSVersion, n.Marks.Report.Current, n.Marks.Intent.Target, n.Marks.Cycle, n.Marks.Disruption.Cycle = v1, v1, v1, "x", "x"
	}
}

func protocol(p int) change { return func(n *fleet.Node) { n.Marks.Report.Protocol = p } }

// A node for which a user asks for a cycle, beside another that takes its pods: the same way as that of an update.
func TestCycle(t *testing.T) {
	ended := func(o marker.Outcome, id string) change {
		return func(n *fleet.Node) {
			n.Marks.History = append(n.Marks.History, marker.Attempt{Outcome: o, Cycle: id, Ended: now.Add(-time.Minute)})
		}
	}
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
	}{
		{"with nothing offered", []change{asks("x")}, "Waiting Stage CycleWanted"},
		{"what failed here before is another version's", []change{asks("x"), failedOnce(time.Hour, v2)}, "Waiting Stage CycleWanted"},
		{"with an update offered it is an update", []change{asks("x"), offered(v2)}, "Waiting Stage UpdateAvailable"},
		{"which waits as always", []change{asks("x"), offered(v2), failedOnce(time.Hour, v2)}, "Waiting wait BackingOff"},
		{"a lower version is offered", []change{asks("x"), offered("1.0.0")}, "Waiting wait LowerVersionOffered"},
		{"a paused node (S6)", []change{asks("x"), paused}, "Waiting wait Paused"},
		{"a node that isn't Ready", []change{asks("x"), notReady}, "Waiting wait NodeNotReady"},
		{"the agent is away", []change{asks("x"), agentAway}, "Waiting wait AgentNotReady"},
		{"the agent is of an older build, which knows no cycles", []change{asks("x"), protocol(2)}, "Waiting wait AgentNotReady"},
		{"something else is activated on the host", []change{asks("x"), answers(marker.StateError, "x"), because(marker.ReasonUnrequestedActivation)}, "Waiting wait AnotherUpdater"},
		{"a user uncordoned it a moment ago", []change{asks("x"), ended(marker.OutcomeUncordoned, "w")}, "Waiting wait RecentlyUncordoned"},
		{"cycles that failed tire as updates do", []change{asks("x"), ended(marker.OutcomeFailed, "u"), ended(marker.OutcomeFailed, "v"), ended(marker.OutcomeFailed, "w")}, "Waiting wait BackingOff"},
		{"those that succeeded don't", []change{asks("x"), ended(marker.OutcomeCycled, "u"), ended(marker.OutcomeCycled, "v"), ended(marker.OutcomeCycled, "w")}, "Waiting Stage CycleWanted"},
		{"one request, one attempt", []change{asks("x"), ended(marker.OutcomeFailed, "x")}, "Waiting Dismiss CycleRefused"},
		{"wherever the node is", []change{draining, asks("x"), ended(marker.OutcomeCycled, "x")}, "Draining Dismiss CycleRefused"},
		{"of plans there is none that changes nothing", []change{planned, asks("x")}, "Waiting Dismiss CycleRefused"},
		{"nor where no plan chooses the node", []change{planned, asks("x"), with(func(n *fleet.Node) { n.Labels = map[string]string{"system": "else"} })}, "Waiting Dismiss CycleRefused"},

		{"the agent is silent", []change{cycleStaged, unanswered}, "Staging wait Staging"},
		{"the agent says that it runs", []change{cycleStaged}, "Staged Cordon Cordoned"},
		{"long ago: no repository is asked", []change{cycleStaged, issued(time.Hour)}, "Staged Cordon Cordoned"},
		{"the request is gone before the cordon", []change{cycleStaged, asks("")}, "Staged Stabilize AlreadyOnTarget"},
		{"a version is offered by now", []change{cycleStaged, offered(v2)}, "Staged Stabilize UpdateAvailable"},
		{"the agent was replaced by an older one", []change{cycleStaged, protocol(2)}, "Staged wait AgentNotReady"},
		{"paused before the cordon (S6)", []change{cycleStaged, paused}, "Staged wait Paused"},

		{"drained", []change{cycleDraining, drain(fleet.Drain{})}, "Draining Reboot RebootRequested"},
		{"an update that is offered meanwhile comes after it", []change{cycleDraining, offered(v2), drain(fleet.Drain{})}, "Draining Reboot RebootRequested"},
		{"the request is gone in the drain", []change{cycleDraining, asks("")}, "Draining Abandon RequestWithdrawn"},
		{"or is another one", []change{cycleDraining, asks("y")}, "Draining Abandon RequestWithdrawn"},
		{"another's reboot counts: there is no second one", []change{cycleDraining, with(func(n *fleet.Node) { n.BootID = "b2" })}, "Draining Reboot RebootedEarly"},
		{"a user took the cordon away", []change{cycleDraining, schedulable}, "Draining Abandon UncordonedByUser"},
		{"the drain takes too long", []change{cycleDraining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, "Draining Abandon DrainDeadline"},

		{"asked to reboot", []change{cycleRebooting}, "Rebooting wait Rebooting"},
		{"the request is gone before busy", []change{cycleRebooting, asks("")}, "Rebooting Abandon RequestWithdrawn"},
		{"the request is gone after it", []change{cycleRebooting, answers(marker.StateBusy, ""), asks("")}, "Rebooting wait Rebooting"},
		{"the agent refuses", []change{cycleRebooting, answers(marker.StateError, "another set boots next")}, "Returning Abandon RebootFailed"},
		{"it never comes back", []change{cycleRebooting, answers(marker.StateBusy, ""), issued(time.Hour), notReady}, "Lost wait Lost"},
		{"it is back by both witnesses (S7)", []change{cycleBack(v1)}, "Returning Return Uncordoned"},
		{"and not by one", []change{cycleBack(v1), with(func(n *fleet.Node) { n.BootID = "b1" })}, "Returning wait Returning"},
		{"it came back with another version", []change{cycleBack(v3)}, "Returning Return HostError"},
		{"the soak runs", []change{cycleVerifying(time.Second)}, "Verifying wait Soaking"},
		{"the soak is over", []change{cycleVerifying(time.Minute)}, "Verifying Finish Cycled"},
		{"it falls back in the soak", []change{cycleVerifying(time.Second), with(func(n *fleet.Node) { n.OSVersion, n.Marks.Report.Current = v2, v2 })}, "Verifying Soak RolledBack"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", tc.changes...)
			var held []string
			if n.Disrupted() {
				held = append(held, n.Name)
			}
			s := fleetOf([]fleet.Node{n, node("b")}, held...)
			s.PlanTargets = targets()
			set := policy.DefaultSettings()
			// The node has what this plan wants, where that chooses it.
			set.Plans = []policy.Plan{k3s(k1)}
			set.Plans[0].Selector = policy.Selector{{Key: "system", Operator: policy.DoesNotExist}}
			got, _ := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, verdict(got), tc.want, got.Message)
		})
	}
}

// What ends a cycle ends its request in the same patch, with a line in the history, and says nothing of a version: it
// neither blames one nor clears what one is to blame for (S10).
func TestEndOfACycle(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		act     intent.Act
		outcome marker.Outcome
	}{
		{"a success", []change{cycleVerifying(time.Hour)}, intent.ActFinish, marker.OutcomeCycled},
		{"a drain without end", []change{cycleDraining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, intent.ActAbandon, marker.OutcomeFailed},
		{"a refusal of the agent", []change{cycleRebooting, answers(marker.StateError, "x")}, intent.ActAbandon, marker.OutcomeFailed},
		{"another version", []change{cycleBack(v3)}, intent.ActReturn, marker.OutcomeFailed},
		{"another version in the soak", []change{cycleVerifying(time.Second), with(func(n *fleet.Node) { n.OSVersion, n.Marks.Report.Current = v3, v3 })}, intent.ActSoak, marker.OutcomeFailed},
		{"workloads that are worse than before", []change{cycleVerifying(time.Hour), with(func(n *fleet.Node) {
			n.Marks.Disruption.Workloads = map[string]int{"Deployment/a/b": 1}
			n.Checked = &fleet.Checked{For: fleet.CheckWorkloads, At: now, Problem: "x"}
		})}, intent.ActFinish, marker.OutcomeFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, failure := range []*marker.Failure{nil, {Count: 1, Versions: []string{v1, v2}, Broken: []string{v1, v2}, At: now, RetryAfter: now.Add(time.Hour)}} {
				n := node("a", append(tc.changes, func(n *fleet.Node) { n.Marks.Failure = failure })...)
				c := stepOf(t, n, tc.act).Change
				assert.Assert(t, c.DropCycle && c.EndsAttempt)
				last := c.Marks.History[len(c.Marks.History)-1]
				assert.Equal(t, fmt.Sprint(last.Outcome, last.Cycle, last.Version), fmt.Sprint(tc.outcome, "x", v1))
				if failure == nil {
					assert.Assert(t, c.Marks.Failure == nil)
				} else {
					assert.Equal(t, fmt.Sprint(*c.Marks.Failure), fmt.Sprint(*failure))
				}
			}
		})
	}

	taken := stepOf(t, node("a", cycleDraining, asks("y")), intent.ActAbandon).Change
	assert.Assert(t, !taken.DropCycle && taken.Marks.History[0].Cycle == "x", "another request stays, and gets an attempt of its own")
	assert.Assert(t, stepOf(t, node("a", verifying(time.Hour), asks("y")), intent.ActFinish).Change.DropCycle, "an update that is under way fulfils a request")
	leaving := stepOf(t, node("a", cycleDraining, unlabelled), intent.ActLeave).Change
	assert.Assert(t, leaving.DropCycle && leaving.RemoveAll, "no request is left for when the label is back")
	cordon := stepOf(t, node("a", cycleStaged), intent.ActCordon).Change
	assert.Equal(t, cordon.Marks.Disruption.Cycle, "x", "what it is stands on the node from the cordon on")
	assert.Equal(t, stepOf(t, node("a", prepared, asks("y")), intent.ActCordon).Change.Marks.Disruption.Cycle, "")
}

// A Lost node in a cycle stops no version (S10); it counts as Lost all the same.
func TestLostInACycle(t *testing.T) {
	set := policy.DefaultSettings()
	set.MaxFailed = policy.Count(1)
	nodes := []fleet.Node{node("a", cycleRebooting, answers(marker.StateBusy, ""), issued(time.Hour), notReady), node("b", offered(v1), with(func(n *fleet.Node) {
		n.OSVersion, n.Marks.Report.Current = "1.0.0", "1.0.0"
	})), node("c")}
	out := planner.Plan(fleetOf(nodes, "a"), set)
	a, _ := find(t, out, "a")
	b, _ := find(t, out, "b")
	assert.Equal(t, verdict(a)+", "+verdict(b), "Lost wait Lost, Waiting Stage UpdateAvailable", "%s", b.Message)
	assert.Assert(t, len(out.Stopped) == 0 && out.LostUncounted == 1)
}

// The policy holds for cycles: its windows, pauses and budgets (S1, S6). What it says of versions does not: a cycle
// brings none.
func TestCycleByThePolicy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		set     func(*policy.Settings)
		want    string
	}{
		{"paused", []change{asks("x")}, func(s *policy.Settings) { s.Pause = &policy.Pause{Reason: "x"} }, "Waiting wait PolicyPaused"},
		{"no room", []change{cycleStaged}, func(s *policy.Settings) { s.MaxUnavailable = policy.Count(0) }, "Staged wait PolicyPaused"},
		{"a pause that returns what is in flight", []change{cycleDraining}, func(s *policy.Settings) { s.Pause = &policy.Pause{Reason: "x", InFlight: policy.Return} }, "Draining Abandon PolicyPaused"},
		{"the fleet is held at another version", []change{asks("x")}, func(s *policy.Settings) { s.Versions.Hold = v2 }, "Waiting Stage CycleWanted"},
		{"and so in the drain", []change{cycleDraining, drain(fleet.Drain{})}, func(s *policy.Settings) { s.Versions.Hold = v2 }, "Draining Reboot RebootRequested"},
		{"versions must be known for long", []change{cycleStaged}, func(s *policy.Settings) { s.Versions.MinAge = time.Hour }, "Staged Cordon Cordoned"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", tc.changes...)
			var held []string
			if n.Disrupted() {
				held = append(held, n.Name)
			}
			set := policy.DefaultSettings()
			tc.set(&set)
			got, _ := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, held...), set), "a")
			assert.Equal(t, verdict(got), tc.want, got.Message)
		})
	}
}

// A request puts its node before those that are like it, and not before those that the order protects (L3).
func TestRequestedGoesNext(t *testing.T) {
	for _, tc := range []struct {
		name string
		more change
		want string
	}{
		{"before its like", func(*fleet.Node) {}, "c"},
		{"before one that runs an older version", func(n *fleet.Node) { n.OSVersion = v1 + "+later" }, "c"},
		{"not if it failed", failedOnce(-time.Hour, v2), "a"},
		{"not if it could not be drained", func(n *fleet.Node) {
			n.Forecast = &fleet.Forecast{At: now, Next: now.Add(time.Minute), Obstacle: fleet.ObstacleBudget, Message: "x"}
		}, "a"},
		{"not if the controller runs there", controller, "a"},
	} {
		out := planner.Plan(fleetOf([]fleet.Node{node("a", prepared), node("b", prepared), node("c", prepared, asks("x"), tc.more)}), policy.DefaultSettings())
		var went []string
		for _, s := range out.Steps {
			if s.Act == intent.ActCordon {
				went = append(went, s.Node)
			}
		}
		assert.Equal(t, strings.Join(went, " "), tc.want, tc.name)
	}
}

// Cycles push no success out of the history, by which it is known since when a canary runs its version.
func TestCyclesKeepTheLastUpdate(t *testing.T) {
	n := node("a", cycleVerifying(time.Hour))
	n.Marks.History = []marker.Attempt{{Version: v1, Outcome: marker.OutcomeUpdated, Ended: now.Add(-10 * time.Hour)}}
	for i := range 2 * marker.HistoryLength {
		n.Marks.Cycle = fmt.Sprint(i)
		n.Marks.Disruption.Cycle = n.Marks.Cycle
		n.Marks.History = stepOf(t, n, intent.ActFinish).Change.Marks.History
	}
	assert.Equal(t, len(n.Marks.History), marker.HistoryLength)
	assert.Equal(t, n.Marks.History[0].Outcome, marker.OutcomeUpdated)
	assert.Equal(t, n.Marks.History[marker.HistoryLength-1].Cycle, "9")
}
