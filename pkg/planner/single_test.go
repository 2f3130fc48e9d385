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
)

// The only node of a cluster is updated with its workloads in place if the policy says so, and else waits and says why
// (S2; brupop_501, FLUO_123).
func TestSingleNode(t *testing.T) {
	leaving := func(n *fleet.Node) { n.Leaving = "it is being removed by Karpenter" }
	other := func(changes ...change) fleet.Node {
		n := fleet.Node{Name: "z", UID: "uid-z", Ready: true}
		for _, c := range changes {
			c(&n)
		}
		return n
	}
	elsewhere := fleet.Node{Name: "y", UID: "uid-y", Ready: true, Unschedulable: true}
	web := map[string]int{"Deployment/default/web": 1}
	blind := looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "x", Next: now.Add(time.Second)})
	for _, tc := range []struct {
		name   string
		single policy.SingleNode
		nodes  []fleet.Node
		want   string
	}{
		{"never", policy.SingleNodeNever, []fleet.Node{node("a", prepared)}, "Staged wait OnlySchedulableNode"},
		{"never, though its user cordoned it", policy.SingleNodeNever, []fleet.Node{node("a", prepared, cordoned)}, "Staged wait OnlySchedulableNode"},
		{"allow", policy.SingleNodeAllow, []fleet.Node{node("a", prepared, controller)}, "Staged Cordon Cordoned"},
		{"allow, and its pods are not looked at", policy.SingleNodeAllow, []fleet.Node{node("a", prepared, forecast(nil))}, "Staged Cordon Cordoned"},
		{"allow, whatever keeps its pods there", policy.SingleNodeAllow, []fleet.Node{node("a", prepared, found(0, fleet.ObstacleBudget, time.Hour))}, "Staged Cordon Cordoned"},
		{"allow, beside one that is being taken away", policy.SingleNodeAllow, []fleet.Node{node("a", prepared), other(leaving)}, "Staged Cordon Cordoned"},
		{"not the one that is being taken away", policy.SingleNodeAllow, []fleet.Node{node("a", prepared, leaving), other(notReady)}, "Staged wait BeingRemoved"},
		{"allow is for a cluster of one: another that is cordoned", policy.SingleNodeAllow, []fleet.Node{node("a", prepared), other(cordoned)}, "Staged wait OnlySchedulableNode"},
		{"another that isn't Ready", policy.SingleNodeAllow, []fleet.Node{node("a", prepared), other(notReady)}, "Staged wait OnlySchedulableNode"},
		{"another that is on its way out can't take its pods (S2)", policy.SingleNodeNever, []fleet.Node{node("a", prepared), other(leaving), elsewhere}, "Staged wait OnlySchedulableNode"},
		{"a pause holds here too", policy.SingleNodeAllow, []fleet.Node{node("a", prepared, paused)}, "Staged wait Paused"},

		{"no eviction", policy.SingleNodeAllow, []fleet.Node{node("a", draining)}, "Draining Reboot SingleNode"},
		{"whatever is left on it", policy.SingleNodeAllow, []fleet.Node{node("a", draining, drain(fleet.Drain{Remaining: 3, Blocked: "x"}))}, "Draining Reboot SingleNode"},
		{"not before its workloads are noted", policy.SingleNodeAllow, []fleet.Node{node("a", draining, unlooked)}, "Draining Check SingleNode"},
		{"they are", policy.SingleNodeAllow, []fleet.Node{node("a", draining, looked(fleet.Checked{For: fleet.CheckBaseline, Workloads: web}))}, "Draining wait SingleNode"},
		{"and then it goes down", policy.SingleNodeAllow, []fleet.Node{node("a", draining, noted, unlooked)}, "Draining Reboot SingleNode"},
		{"they can't be", policy.SingleNodeAllow, []fleet.Node{node("a", draining, blind)}, "Draining wait CheckFailing"},
		{"which is not waited for for ever (L2)", policy.SingleNodeAllow, []fleet.Node{node("a", draining, blind, cordonedSince(time.Hour))}, "Draining Abandon DrainDeadline"},
		{"a new leader looks first, however late", policy.SingleNodeAllow, []fleet.Node{node("a", draining, unlooked, cordonedSince(time.Hour))}, "Draining Check SingleNode"},
		{"workloads are looked for after the soak", policy.SingleNodeAllow, []fleet.Node{node("a", verifying(time.Minute), noted)}, "Verifying Check WorkloadsAwaited"},
		{"not without its agent", policy.SingleNodeAllow, []fleet.Node{node("a", draining, agentAway)}, "Draining wait AgentNotReady"},
		{"for which it doesn't wait for ever", policy.SingleNodeAllow, []fleet.Node{node("a", draining, agentAway, cordonedSince(time.Hour))}, "Draining Abandon DrainDeadline"},
		{"nor when a user took the cordon away", policy.SingleNodeAllow, []fleet.Node{node("a", draining, schedulable)}, "Draining Abandon UncordonedByUser"},
		{"nor when it is paused", policy.SingleNodeAllow, []fleet.Node{node("a", draining, paused)}, "Draining Abandon Paused"},
		{"another node joined meanwhile", policy.SingleNodeAllow, []fleet.Node{node("a", draining), other()}, "Draining Drain Draining"},
		{"the policy doesn't say so any more", policy.SingleNodeNever, []fleet.Node{node("a", draining)}, "Draining Drain Draining"},
		{"another's reboot is one", policy.SingleNodeAllow, []fleet.Node{node("a", draining, with(func(n *fleet.Node) { n.BootID = "b2" }))}, "Draining Reboot RebootedEarly"},
		{"back", policy.SingleNodeAllow, []fleet.Node{node("a", back(v2), controller)}, "Returning Return Uncordoned"},
		{"updated", policy.SingleNodeAllow, []fleet.Node{node("a", verifying(time.Hour), controller)}, "Verifying Finish Updated"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.SingleNode = tc.single
			assert.NilError(t, set.Validate())
			var held []string
			if tc.nodes[0].Disrupted() {
				held = []string{"a"}
			}
			standing, step := find(t, planner.Plan(fleetOf(tc.nodes, held...), set), "a")
			assert.Equal(t, verdict(standing), tc.want)
			if step != nil && step.Change != nil && step.Reason == plan.ReasonCordoned {
				assert.Equal(t, step.Change.Marks.Waiting.Reason, string(plan.ReasonSingleNode))
				assert.Assert(t, step.Change.Marks.Disruption != nil && step.TakesSlot)
			}
		})
	}
}

// What is done for a node that goes down is done for the only one of a cluster too: load balancers have their time, and
// hooks are asked.
func TestSingleNodeIsPrepared(t *testing.T) {
	set := policy.DefaultSettings()
	set.SingleNode = policy.SingleNodeAllow
	set.Balancers = policy.Balancers{Exclude: true, Wait: time.Minute}
	withHooks(&set)
	excluded := func(n *fleet.Node) {
		n.Marks.Disruption.Since = now.Add(-10 * time.Second)
		n.Marks.Disruption.Before = map[string]*string{marker.LabelExcluded: nil}
	}
	for _, tc := range []struct {
		changes []change
		want    string
	}{
		{[]change{draining, excluded}, "Draining wait LeavingBalancers"},
		{[]change{draining}, "Draining wait HookAwaited"},
		{[]change{draining, asked("after-drain.", time.Minute)}, "Draining wait HookAwaited"},
		{[]change{draining, asked("after-drain.", time.Minute), hooksAnswered(released, quorum)}, "Draining Reboot SingleNode"},
		{[]change{draining, asked("after-drain.", 6*time.Minute)}, "Draining Abandon HookFailed"},
	} {
		standing, _ := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", tc.changes...)}, "a"), set), "a")
		assert.Equal(t, verdict(standing), tc.want)
	}
}

// Right before the reboot of an undrained node it is looked live that it is the only one.
func TestSingleNodeIsLookedAt(t *testing.T) {
	set := policy.DefaultSettings()
	set.SingleNode = policy.SingleNodeAllow
	work := plan.NewWork(planner.Plan(fleetOf([]fleet.Node{node("a", draining)}, "a"), set))
	task, more := work.Next()
	assert.Assert(t, more && task.Kind == plan.TaskLook && task.Step.Before == plan.LookAlone)
	refused := *work
	refused.Did(false)
	for task, more := refused.Next(); more; task, more = refused.Next() {
		assert.Assert(t, task.Kind != plan.TaskWrite)
		refused.Did(true)
	}
	work.Did(true)
	task, more = work.Next()
	assert.Assert(t, more && task.Kind == plan.TaskWrite)
}
