package planner_test

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// S10: the one runner of all nodes of plans that is away is no failure of any of them, also where there are agents.
func TestRunnerAway(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{k3s(k2)}
	for _, tc := range []struct {
		name    string
		changes []change
	}{
		{"asked", []change{acting, agentLost(time.Hour)}},
		{"drained", []change{outOf, agentLost(time.Hour)}},
		{"preparing", []change{issued(50 * time.Minute), agentAway}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", append([]change{onItsWay(k3s(k2), k2)}, tc.changes...)...), node("z")}, "a")
			if s.Nodes[0].Marks.Disruption == nil {
				s.Slots = nil
			}
			s.PlanTargets = targets()
			d, step := find(t, planner.Plan(s, set), "a")
			assert.Assert(t, step != nil, "%s", d.Message)
			assert.Assert(t, step.Change.Marks.Failure == nil, "%s: %+v", d.Reason, step.Change.Marks.Failure)
		})
	}
}

// S2: a plan that drains runs on the only node of a cluster with its pods in place, if a live look finds no other; one
// that drains nothing never needs that.
func TestPlanAlone(t *testing.T) {
	for drains, want := range map[marker.PlanDrain]plan.Look{marker.DrainAll: plan.LookAlone, marker.DrainCordon: plan.LookNone} {
		p := k3s(k2)
		p.Drain = drains
		set := policy.DefaultSettings()
		set.SingleNode, set.Plans = policy.SingleNodeAllow, []policy.Plan{p}
		s := fleetOf([]fleet.Node{node("a", onItsWay(p, k2), outOf)}, "a")
		s.PlanTargets = targets()
		_, step := find(t, planner.Plan(s, set), "a")
		assert.Equal(t, step.Before, want, drains)
	}
}

// S10: what the policy took back before anything was done counts against no node, also where the runner saw it first.
func TestRefusedSinceWithdrawn(t *testing.T) {
	up := k3s(k2)
	for name, tc := range map[string]struct {
		plans []policy.Plan
		want  string
		fails bool
	}{
		"as it was":  {[]policy.Plan{up}, "Returning Abandon PodRefused", true},
		"gone":       {nil, "Returning Abandon OfferWithdrawn", false},
		"retargeted": {[]policy.Plan{k3s(k3)}, "Returning Abandon OfferWithdrawn", false},
	} {
		t.Run(name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Plans = tc.plans
			s := fleetOf([]fleet.Node{node("a", onItsWay(up, k2), acting, answers(marker.StateError, "x"), because(marker.ReasonPodRefused)), node("z")}, "a")
			s.PlanTargets = targets()
			d, step := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, decided(d), tc.want, "%s", d.Message)
			assert.Equal(t, step.Change.Marks.Failure != nil, tc.fails)
		})
	}
}

// L1: a pod that prepares a node may run for as long as its plan says, where that is longer than staging may take.
func TestPrepareDeadline(t *testing.T) {
	p := k3s(k2)
	p.Deadline = 2 * time.Hour
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{p}
	for ago, want := range map[time.Duration]string{2 * time.Hour: "Staging wait Staging", 3 * time.Hour: "Staging Abandon StagingDeadline"} {
		s := fleetOf([]fleet.Node{node("a", onItsWay(p, k2), answers(marker.StateBusy, ""), issued(ago)), node("z")})
		s.PlanTargets = targets()
		d, _ := find(t, planner.Plan(s, set), "a")
		assert.Equal(t, decided(d), want, "after %s: %s", ago, d.Message)
	}
}

// S6, S9: without a policy that can be read it isn't known which plans there are. Nothing starts for that reason, and
// what is under way is not taken for withdrawn.
func TestPlansUnknown(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
	}{
		{"at rest", []change{planned}, "Waiting wait PolicyUnreadable"},
		{"preparing", []change{onItsWay(k3s(k2), k2)}, "Staging wait Staging"},
		{"prepared", []change{onItsWay(k3s(k2), k2), answers(marker.StateReady, "")}, "Staged Note PolicyUnreadable"},
		{"asked, and running", []change{onItsWay(k3s(k2), k2), acting, answers(marker.StateBusy, "")}, "Rebooting wait Rebooting"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", tc.changes...), node("z")}, "a")
			if s.Nodes[0].Marks.Disruption == nil {
				s.Slots = nil
			}
			s.PlanTargets, s.PolicyProblem, s.NoPolicy = targets(), "ConfigMap update-policy: no", true
			d, _ := find(t, planner.Plan(s, policy.DefaultSettings()), "a")
			assert.Equal(t, decided(d), tc.want, "%s", d.Message)
		})
	}
}

// S8: plans that come and go, each under another name, leave no mark that can't be read.
func TestPlansDoneAreBounded(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{files}
	done := map[string]string{}
	for i := range 66 {
		done[fmt.Sprintf("a-plan-with-a-name-that-is-as-long-as-%d", 100+i)] = digest
	}
	at := now.Add(-time.Hour)
	n := node("a", onItsWay(files, "content"), acting, said(version(files, "content")), func(n *fleet.Node) {
		n.Marks.Intent.Action, n.Marks.PlanDone = marker.ActionStabilize, done
		n.Marks.Disruption.Soak, n.Marks.Disruption.Returned, n.Marks.Disruption.Ready = &at, &at, "r1"
	})
	s := fleetOf([]fleet.Node{n, node("z")}, "a")
	s.PlanTargets = targets()
	d, step := find(t, planner.Plan(s, set), "a")
	assert.Equal(t, decided(d), "Verifying Finish Updated", "%s", d.Message)
	written := map[string]string{}
	for k, v := range marker.Encode(step.Change.Marks) {
		written[string(k)] = v
	}
	marks, problems := marker.Decode(written)
	assert.Equal(t, len(problems), 0, "%+v", problems)
	assert.Equal(t, marks.PlanDone["files"], digest)
}

// The last of the versions that failed is what the failure's reason is about: without effect, it is not tried again.
func TestNoEffectAgain(t *testing.T) {
	up, other := k3s(k2), version(k3s(k3), k3)
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{up}
	failedBefore := func(n *fleet.Node) {
		n.Marks.Failure = &marker.Failure{Versions: []string{version(up, k2), other}, Count: 2, Reason: "Interrupted", At: now.Add(-time.Hour), RetryAfter: now.Add(-time.Hour)}
	}
	s := fleetOf([]fleet.Node{node("a", onItsWay(up, k2), acting, failedBefore, answers(marker.StateError, "x"), because(marker.ReasonNoEffect)), node("z")}, "a")
	s.PlanTargets = targets()
	d, step := find(t, planner.Plan(s, set), "a")
	assert.Equal(t, decided(d), "Returning Return NoEffect")
	failure := step.Change.Marks.Failure
	assert.DeepEqual(t, failure.Versions, []string{other, version(up, k2)})
	failure.RetryAfter = now.Add(-time.Minute)
	s = fleetOf([]fleet.Node{node("a", planned, func(n *fleet.Node) { n.Marks.Failure = failure }), node("z")})
	s.PlanTargets = targets()
	d, _ = find(t, planner.Plan(s, set), "a")
	assert.Equal(t, decided(d), "Waiting wait NoEffect")
}

// S9: what is done to a node of plans names the plan, its target and its effect, and not what only tells contents apart.
func TestPlanIsNamed(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{k3s(k2)}
	what := "k3s/" + k2 + " (effect: restart)"
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"preparing": {nil, "the runner prepares " + what},
		"asked":     {[]change{acting}, "the runner was asked to run " + what},
		"no runner": {[]change{acting, agentAway}, "to run " + what + "; no runner is Ready"},
		"running":   {[]change{acting, answers(marker.StateBusy, "")}, "the runner's pod runs " + what},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", append([]change{onItsWay(k3s(k2), k2)}, tc.changes...)...), node("z")})
			if s.Nodes[0].Disrupted() {
				s.Slots[s.Nodes[0].UID] = "a"
			}
			s.PlanTargets = targets()
			d, _ := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, d.Message.String(), tc.want)
		})
	}
}
