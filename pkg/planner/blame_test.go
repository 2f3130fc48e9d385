package planner_test

import (
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

// A failure counts only against what it says something about: a version is blamed for what its own boot did, and
// everything else that can go wrong before counts against the node alone (S10).
func TestWhomAFailureCountsAgainst(t *testing.T) {
	for _, tc := range []struct {
		happened string
		changes  []change
		reason   plan.Reason
		version  bool
	}{
		{"the host could not stage it", []change{preparing, answers(marker.StateError, "x")}, plan.ReasonStagingFailed, false},
		{"the agent did not stage it in time", []change{preparing, issued(2 * time.Hour)}, plan.ReasonStagingDeadline, false},
		{"what was staged is gone: the power was lost before the cordon", []change{prepared, answers(marker.StateError, "gone")}, plan.ReasonStagingFailed, false},
		{"the node could not be drained", []change{draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, plan.ReasonDrainDeadline, false},
		{"a pod on it can't be evicted", []change{draining, drain(fleet.Drain{Remaining: 1, Unevictable: "x"})}, plan.ReasonEvictionRefused, false},
		{"what was staged is gone in the drain", []change{draining, answers(marker.StateError, "gone")}, plan.ReasonStagingFailed, false},
		{"the agent was away during the drain", []change{draining, agentLost(time.Hour)}, plan.ReasonAgentLost, false},
		{"the agent did not begin the reboot", []change{rebooting, issued(time.Hour)}, plan.ReasonRebootDeadline, false},
		{"the activation failed: repository, disk or lock", []change{busy, answers(marker.StateError, "Metadata error")}, plan.ReasonRebootFailed, false},
		{"the host did not reboot", []change{busy, activated, answers(marker.StateError, "did not reboot")}, plan.ReasonRebootFailed, false},
		{"the power was lost in the drain", []change{powerLost}, plan.ReasonRebootedEarly, false},
		{"the power was lost after the activation had failed", []change{powerLost, answers(marker.StateError, "Metadata error")}, plan.ReasonRebootedEarly, false},
		{"the host booted it, and came back with the old one", []change{back(v1)}, plan.ReasonRolledBack, true},
		{"it fell back during the soak", []change{verifying(time.Second), with(func(n *fleet.Node) { n.OSVersion, n.Marks.Report.Current = v1, v1 })}, plan.ReasonRolledBack, true},
	} {
		t.Run(tc.happened, func(t *testing.T) {
			// Three at once, of which one failed so last week.
			before := func(n *fleet.Node) {
				n.Marks.Failure = &marker.Failure{Count: 1, Reason: string(tc.reason), At: now.Add(-7 * 24 * time.Hour), Versions: []string{v2}}
			}
			nodes := []fleet.Node{node("a", append(slices.Clone(tc.changes), before)...), node("b", tc.changes...), node("c", tc.changes...), node("d")}
			var held []string
			for _, n := range nodes[:3] {
				if n.Disrupted() {
					held = append(held, n.Name)
				}
			}
			set := policy.DefaultSettings()
			set.MaxUnavailable = policy.Unlimited
			out := planner.Plan(fleetOf(nodes, held...), set)
			for _, name := range []string{"a", "b", "c"} {
				_, step := find(t, out, name)
				assert.Assert(t, step != nil && step.Change != nil, "%s", out)
				assert.Equal(t, step.Reason, tc.reason)
				failure := step.Change.Marks.Failure
				assert.Assert(t, failure != nil && failure.Count >= 1 && failure.RetryAfter.After(now), "the node backs off")
				assert.Equal(t, len(failure.Broken) > 0, tc.version)
				assert.DeepEqual(t, failure.Versions, []string{v2})
				if tc.version {
					assert.Equal(t, step.Change.Marks.Intent.Target, "", "what it runs is not the target")
				}
			}
			assert.Equal(t, len(out.Stopped), 0)
		})
	}
}

// A Lost node counts against the version that it went down for, but not while it is well in its old boot.
func TestWhatALostNodeSaysOfItsVersion(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		// says is what was seen of it.
		says    string
		stopped bool
	}{
		{"it went down and is not heard of", []change{lost}, "has not come back from its reboot", true},
		{"it has not gone down", []change{lost, with(func(n *fleet.Node) { n.Ready = true })}, "has not begun to reboot", false},
		{"its kubelet is back and not Ready", []change{lost, with(func(n *fleet.Node) { n.BootID = "b2" })}, "has not become Ready on its new boot", true},
		{"its kubelet is back and well, and its agent silent", []change{lost, with(func(n *fleet.Node) { n.BootID, n.Ready = "b2", true })},
			"is Ready on its new boot, and its agent does not say the same of it", true},
		{"its agent is back and its kubelet is not", []change{lost, with(func(n *fleet.Node) { n.Marks.Report.BootID = "b2" })},
			"is back by its agent's word, and its kubelet has not reported the new boot", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.MaxFailed = policy.Count(1)
			out := planner.Plan(fleetOf([]fleet.Node{node("a", tc.changes...), node("b", prepared), node("c")}, "a"), set)
			got, _ := find(t, out, "a")
			assert.Equal(t, got.Phase, intent.PhaseLost)
			assert.Assert(t, strings.HasPrefix(got.Message.String(), "a "+tc.says+"; "), "%s", got.Message)
			assert.Equal(t, len(out.Stopped) > 0, tc.stopped)
		})
	}
}

// A Lost node that is well by its kubelet's word counts against its version until it was so for a whole soak, whatever
// its agent says; after that it doesn't.
func TestWhatALostNodeSaysInItsSoak(t *testing.T) {
	for ago, stopped := range map[time.Duration]bool{time.Second: true, time.Hour: false} {
		set := policy.DefaultSettings()
		set.MaxFailed = policy.Count(1)
		lies := node("a", verifying(ago), issued(2*time.Hour), with(func(n *fleet.Node) { n.Marks.Report.BootID = "b3" }))
		out := planner.Plan(fleetOf([]fleet.Node{lies, node("b", prepared), node("c")}, "a"), set)
		got, _ := find(t, out, "a")
		assert.Equal(t, got.Phase, intent.PhaseLost)
		assert.Equal(t, len(out.Stopped) > 0, stopped, "%s", out)
	}
}

func activated(n *fleet.Node) { n.Marks.Report.ActivatedID = n.Marks.Intent.ID }

// A successor that finds a drain whose time was over before it led evicts nothing more and abandons the attempt, and that
// is no failure: the node may go again at once.
func TestDrainThatNothingLed(t *testing.T) {
	evicting := node("a", draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour))
	for _, tc := range []struct {
		name    string
		watched time.Time
		fails   bool
	}{
		{"it led all the time", now.Add(-time.Hour), true},
		{"it led at the end", now.Add(-31 * time.Minute), true},
		{"it began to lead later", now.Add(-time.Second), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := evicting
			n.WatchedSince = tc.watched
			_, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, "a"), policy.DefaultSettings()), "a")
			assert.Equal(t, step.Act, intent.ActAbandon)
			assert.Equal(t, step.Change.Marks.Failure != nil, tc.fails)
		})
	}
}

// Where no agent at all is Ready the proxies are away: an attempt is given up, and that is no failure of the node.
func TestNoAgentIsReady(t *testing.T) {
	for reason, changes := range map[plan.Reason][]change{
		plan.ReasonAgentLost:       {draining, agentLost(time.Hour)},
		plan.ReasonStagingDeadline: {preparing, issued(time.Hour), agentAway},
	} {
		for _, others := range []bool{true, false} {
			b := node("b", func(n *fleet.Node) { n.AgentReady = others })
			_, step := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", changes...), b}), policy.DefaultSettings()), "a")
			assert.Equal(t, step.Reason, reason)
			assert.Equal(t, step.Change.Marks.Failure != nil, others)
		}
	}
}
