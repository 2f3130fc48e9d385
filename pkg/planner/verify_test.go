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

// looked is a look that was made just now, if it doesn't say when.
func looked(l fleet.Checked) change {
	if l.At.IsZero() {
		l.At = now
	}
	return func(n *fleet.Node) { n.Checked = &l }
}

func unlooked(n *fleet.Node) { n.Checked = nil }

// noted is the baseline of a node that had Ready pods of two workloads.
func noted(n *fleet.Node) {
	n.Marks.Disruption.Workloads = map[string]int{"Deployment/default/web": 2, "StatefulSet/default/db": 3}
}

func withPods(s *policy.Settings) {
	s.Verify.Pods = []policy.PodSelector{{Namespace: "kube-system", Selector: policy.Selector{{Key: "app", Operator: policy.In, Values: []string{"cni"}}}}}
}

// What must be well beside the node: its workloads are noted before the first eviction and looked for after the soak,
// pods of its own before the uncordon.
func TestVerify(t *testing.T) {
	soon, ago := now.Add(time.Minute), now.Add(-time.Second)
	soaked := func(d time.Duration) change { return verifying(time.Minute + d) }
	missing := fleet.Checked{For: fleet.CheckWorkloads, Problem: "Deployment default/web has 1 Ready pods, and had 2 before the drain", Next: soon}
	noCNI := fleet.Checked{For: fleet.CheckPods, Problem: "no pod of app=cni in kube-system is there", Next: soon}
	ignoring := func(s *policy.Settings) { s.Verify.OnWorkloads = policy.IgnoreWorkloads }
	byDefault := func(*policy.Settings) {}
	both := func(s *policy.Settings) { withPods(s); withHooks(s) }
	for _, tc := range []struct {
		name    string
		set     func(*policy.Settings)
		changes []change
		want    string
	}{
		{"a baseline before the first eviction", byDefault, []change{draining, unlooked}, "Draining Check Draining"},
		{"it is noted", byDefault, []change{draining, looked(fleet.Checked{For: fleet.CheckBaseline, Workloads: map[string]int{"Deployment/default/web": 1}})}, "Draining wait Draining"},
		{"and then the drain begins", byDefault, []change{draining, noted}, "Draining Drain Draining"},
		{"nothing to note", byDefault, []change{draining, looked(fleet.Checked{For: fleet.CheckBaseline})}, "Draining Drain Draining"},
		{"nothing is evicted without it", byDefault, []change{draining, looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "x", Next: soon})}, "Draining wait CheckFailing"},
		{"it is tried again", byDefault, []change{draining, looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "x", Next: ago})}, "Draining Check CheckFailing"},
		{"not for ever", byDefault, []change{draining, cordonedSince(time.Hour), looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "x", Next: soon})}, "Draining Abandon DrainDeadline"},
		{"a human's hand comes first", byDefault, []change{draining, unlooked, schedulable}, "Draining Abandon UncordonedByUser"},
		{"a drain that goes on has none to make", byDefault, []change{draining, unlooked, drain(fleet.Drain{Remaining: 1})}, "Draining Drain Draining"},
		{"the policy wants none", ignoring, []change{draining, unlooked}, "Draining Drain Draining"},

		{"workloads are looked for when the soak is over", byDefault, []change{soaked(0), noted}, "Verifying Check WorkloadsAwaited"},
		{"and not before", byDefault, []change{soaked(-time.Second), noted}, "Verifying wait Soaking"},
		{"there were none", byDefault, []change{soaked(0)}, "Verifying Finish Updated"},
		{"they are not back", byDefault, []change{soaked(0), noted, looked(missing)}, "Verifying wait WorkloadsAwaited"},
		{"they are", byDefault, []change{soaked(0), noted, looked(fleet.Checked{For: fleet.CheckWorkloads})}, "Verifying Finish Updated"},
		{"they were before the soak began anew", byDefault, []change{soaked(0), noted, looked(fleet.Checked{For: fleet.CheckWorkloads, At: now.Add(-time.Second)})}, "Verifying Check WorkloadsAwaited"},
		{"an older look at something else is none", byDefault, []change{soaked(time.Hour), noted, looked(fleet.Checked{For: fleet.CheckBaseline})}, "Verifying Check WorkloadsAwaited"},
		{"nor is the trouble that it found", byDefault, []change{soaked(time.Hour), noted, looked(noCNI)}, "Verifying Check WorkloadsAwaited"},
		{"they don't come back", byDefault, []change{soaked(10 * time.Minute), noted, looked(missing)}, "Verifying Finish WorkloadsNotReady"},
		{"a new leader looks first", byDefault, []change{soaked(10 * time.Minute), noted, unlooked}, "Verifying Check WorkloadsAwaited"},
		{"and passes over it first", byDefault, []change{soaked(10 * time.Minute), noted, looked(missing), firstLook}, "Verifying wait WorkloadsAwaited"},
		{"the check fails", byDefault, []change{soaked(10 * time.Minute), noted, looked(fleet.Checked{For: fleet.CheckWorkloads, Failed: "x"})}, "Verifying Finish WorkloadsNotReady"},
		{"the policy ignores them by now", ignoring, []change{soaked(0), noted, looked(missing)}, "Verifying Finish Updated"},

		{"pods of its own before the uncordon", withPods, []change{back(v2), unlooked}, "Returning Check PodsNotReady"},
		{"they aren't Ready", withPods, []change{back(v2), looked(noCNI)}, "Returning wait PodsNotReady"},
		{"they are Ready", withPods, []change{back(v2), looked(fleet.Checked{For: fleet.CheckPods})}, "Returning Return Uncordoned"},
		{"rolled back, and they aren't", withPods, []change{back(v1), looked(noCNI)}, "Returning wait PodsNotReady"},
		{"they don't come back", withPods, []change{back(v2), looked(noCNI), issued(55 * time.Minute)}, "Lost wait Lost"},
		{"and still may", withPods, []change{back(v2), looked(noCNI), issued(55*time.Minute - time.Second)}, "Returning wait PodsNotReady"},
		{"Lost, and looked at on and on", withPods, []change{back(v2), looked(fleet.Checked{For: fleet.CheckPods, Problem: "x", Next: ago}), issued(time.Hour)}, "Lost Check Lost"},
		{"late, and well", withPods, []change{back(v2), looked(fleet.Checked{For: fleet.CheckPods}), issued(time.Hour)}, "Returning Return Uncordoned"},
		{"well, but a hook is silent", both, []change{back(v2), looked(fleet.Checked{For: fleet.CheckPods}), asked("before-uncordon.", time.Hour)}, "Lost wait Lost"},
		{"a hook is silent, and a new leader looks for pods first", both, []change{back(v2), unlooked, asked("before-uncordon.", time.Hour)}, "Returning Check PodsNotReady"},
		{"a new leader calls nothing Lost that it hasn't looked at", withPods, []change{back(v2), unlooked, issued(time.Hour)}, "Returning Check PodsNotReady"},

		{"pods of its own are looked at again after the soak", withPods, []change{soaked(0), looked(fleet.Checked{For: fleet.CheckPods, At: ago})}, "Verifying Check PodsNotReady"},
		{"and not in it", withPods, []change{soaked(-time.Second), looked(noCNI)}, "Verifying wait Soaking"},
		{"they are still Ready", withPods, []change{soaked(0), looked(fleet.Checked{For: fleet.CheckPods})}, "Verifying Finish Updated"},
		{"they were called Ready by what the kubelet said before the reboot", withPods, []change{soaked(0), looked(noCNI)}, "Verifying wait PodsNotReady"},
		{"the check of them fails", withPods, []change{soaked(0), looked(fleet.Checked{For: fleet.CheckPods, Failed: "x", Next: soon})}, "Verifying wait CheckFailing"},
		{"then workloads", withPods, []change{soaked(0), noted, looked(fleet.Checked{For: fleet.CheckPods})}, "Verifying Check WorkloadsAwaited"},
		{"and no pods any more", withPods, []change{soaked(0), noted, looked(missing)}, "Verifying wait WorkloadsAwaited"},
		{"all is well", withPods, []change{soaked(0), noted, looked(fleet.Checked{For: fleet.CheckWorkloads})}, "Verifying Finish Updated"},
		{"the soak began anew", withPods, []change{soaked(0), noted, looked(fleet.Checked{For: fleet.CheckWorkloads, At: ago})}, "Verifying Check PodsNotReady"},
		{"not Ready for too long", withPods, []change{soaked(10 * time.Minute), looked(noCNI)}, "Lost wait Lost"},
		{"a new leader passes over it first", withPods, []change{soaked(10 * time.Minute), looked(noCNI), firstLook}, "Verifying wait PodsNotReady"},
		{"and looks first", withPods, []change{soaked(10 * time.Minute), unlooked}, "Verifying Check PodsNotReady"},
		{"Lost after the soak, and looked at on and on", withPods, []change{soaked(10 * time.Minute), looked(fleet.Checked{For: fleet.CheckPods, Problem: "x", Next: ago})}, "Lost Check Lost"},
		{"late after the soak, and well", withPods, []change{soaked(time.Hour), looked(fleet.Checked{For: fleet.CheckPods})}, "Verifying Finish Updated"},
		{"nothing is cordoned again for it", withPods, []change{soaked(time.Hour), noted, looked(fleet.Checked{For: fleet.CheckPods})}, "Verifying Check WorkloadsAwaited"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			standing, _ := planOf(t, tc.set, tc.changes...)
			assert.Equal(t, verdict(standing), tc.want, "%s", standing.Message)
		})
	}
}

// After the soak pods of the node are looked at until they are well, then workloads until they are, and no look goes
// back to what the other has settled; then the node is done (L1, S7).
func TestLooksInTurn(t *testing.T) {
	set := policy.DefaultSettings()
	withPods(&set)
	n := node("a", verifying(time.Minute), noted, looked(fleet.Checked{For: fleet.CheckPods, At: now.Add(-time.Minute)}))
	s := fleetOf(nil, "a")
	var looks []fleet.CheckFor
	unwell := map[fleet.CheckFor]int{fleet.CheckPods: 2, fleet.CheckWorkloads: 3}
	for range 100 {
		s.Nodes = []fleet.Node{n, node("b")}
		_, step := find(t, planner.Plan(s, set), "a")
		if step == nil {
			s.Now = s.Now.Add(time.Second)
			continue
		}
		switch step.Act {
		case intent.ActNote:
			n.Marks = step.Change.Marks
		case intent.ActCheck:
			n.Checked = &fleet.Checked{For: step.Check.For, At: s.Now, Next: s.Now.Add(5 * time.Second)}
			looks = append(looks, step.Check.For)
			if unwell[step.Check.For] > 0 {
				unwell[step.Check.For]--
				n.Checked.Problem = "x"
			}
		default:
			assert.Equal(t, step.Reason, plan.ReasonUpdated)
			assert.DeepEqual(t, looks, []fleet.CheckFor{fleet.CheckPods, fleet.CheckPods, fleet.CheckPods,
				fleet.CheckWorkloads, fleet.CheckWorkloads, fleet.CheckWorkloads, fleet.CheckWorkloads})
			return
		}
	}
	t.Fatalf("it has no end: %v", looks)
}

// A node whose own pods aren't Ready after the soak is Lost, holds its slot and lends it on (L3); it is in service, so
// nothing says that it is cordoned.
func TestPodsThatAreNotReadyAfterTheSoak(t *testing.T) {
	set := policy.DefaultSettings()
	withPods(&set)
	unwell := node("a", verifying(time.Hour), looked(fleet.Checked{For: fleet.CheckPods, Problem: "no pod of app=cni is there", Next: now.Add(time.Second)}))
	out := planner.Plan(fleetOf([]fleet.Node{unwell, node("b", prepared), node("c")}, "a"), set)
	assert.Equal(t, out.LostUncounted, 1)
	standing, step := find(t, out, "a")
	assert.Equal(t, standing.Message.String(), "a is back, but no pod of app=cni is there; it counts as Lost until it is healthy, deleted, or its label is removed")
	assert.Assert(t, step.Act == intent.ActNote && !step.FreesSlot && step.Change.Unschedulable == nil && step.Change.Marks.Disruption != nil)
	standing, _ = find(t, out, "b")
	assert.Equal(t, standing.Act, intent.ActCordon)
}

// Pods that a policy wanted, and that were seen not to be well, keep no node back once another policy doesn't (S7).
func TestPodsThatNoPolicyWantsAnyMore(t *testing.T) {
	standing, _ := planOf(t, func(*policy.Settings) {}, back(v2), issued(2*time.Hour), looked(fleet.Checked{For: fleet.CheckPods, Problem: "p"}))
	assert.Equal(t, verdict(standing), "Returning Return Uncordoned")
	s := policy.DefaultSettings()
	out := planner.Plan(fleetOf([]fleet.Node{node("a", back(v2), issued(2*time.Hour), looked(fleet.Checked{For: fleet.CheckPods, Problem: "p"})), node("b")}, "a"), s)
	assert.Equal(t, out.LostUncounted, 0)
}

// Workloads are held against a version only if they were seen, and while no other node is out of service: its pods may
// be those that are missing. So one slow host doesn't stop the version for the whole fleet (L3).
func TestWorkloadsAndWhoIsToBlame(t *testing.T) {
	unwell := func(name string) fleet.Node {
		return node(name, verifying(time.Hour), noted, looked(fleet.Checked{For: fleet.CheckWorkloads, Problem: "x"}))
	}
	for _, tc := range []struct {
		name   string
		other  []change
		blamed bool
	}{
		{"nothing goes on elsewhere", nil, true},
		{"another waits for its turn", []change{prepared}, true},
		{"another's soak runs", []change{verifying(time.Second)}, true},
		{"another isn't Ready in its soak", []change{verifying(time.Second), notReady}, false},
		{"another was cordoned again", []change{verifying(time.Second), cordoned}, false},
		{"another is drained", []change{draining}, false},
		{"another was asked to reboot", []change{rebooting}, false},
		{"another reboots", []change{busy}, false},
		{"another is Lost", []change{lost}, false},
		{"another is back and cordoned", []change{back(v2)}, false},
		{"another undoes what it had activated", []change{resetting}, false},
		{"what another stands at can't be read", []change{draining, func(n *fleet.Node) { n.Problems = []marker.Problem{{}} }}, false},
	} {
		out := planner.Plan(fleetOf([]fleet.Node{unwell("a"), node("b", tc.other...)}, "a"), policy.DefaultSettings())
		_, step := find(t, out, "a")
		assert.Equal(t, step.Reason, plan.ReasonWorkloadsNotReady)
		f := step.Change.Marks.Failure
		assert.Check(t, f.Count == 1 && f.RetryAfter.After(now) && len(f.Versions) == 1, "%s: %+v", tc.name, f)
		assert.Check(t, (len(f.Broken) == 1) == tc.blamed, "%s: %v", tc.name, f.Broken)
	}
	blind := node("a", verifying(time.Hour), noted, looked(fleet.Checked{For: fleet.CheckWorkloads, Failed: "x"}))
	_, step := find(t, planner.Plan(fleetOf([]fleet.Node{blind, node("b")}, "a"), policy.DefaultSettings()), "a")
	assert.Assert(t, step.Change.Marks.Failure.Count == 1 && step.Change.Marks.Failure.Broken == nil, "the check failed")

	var nodes []fleet.Node
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, unwell(name))
	}
	nodes = append(nodes, node("e", lost), node("f", prepared), node("g"))
	set := policy.DefaultSettings()
	set.MaxUnavailable = policy.Count(5)
	out := planner.Plan(fleetOf(nodes, "a", "b", "c", "d", "e"), set)
	for i := range 4 {
		_, step := find(t, out, nodes[i].Name)
		nodes[i].Marks = step.Change.Marks
	}
	standing, _ := find(t, planner.Plan(fleetOf(nodes, "e"), set), "f")
	assert.Equal(t, standing.Act, intent.ActCordon, "%s", standing.Message)
}

// What a look is for goes with its step, and what it found goes into the record.
func TestLooks(t *testing.T) {
	baseline := map[string]int{"Deployment/default/web": 2}
	_, step := planOf(t, func(*policy.Settings) {}, draining, looked(fleet.Checked{For: fleet.CheckBaseline, Workloads: baseline}))
	assert.DeepEqual(t, step.Change.Marks.Disruption.Workloads, baseline)
	read, problems := marker.Decode(annotations(step.Change))
	assert.Equal(t, len(problems), 0)
	assert.DeepEqual(t, read.Disruption.Workloads, baseline)
	_, step = planOf(t, func(*policy.Settings) {}, verifying(time.Minute), noted)
	assert.Equal(t, step.Check.For, fleet.CheckWorkloads)
	assert.Equal(t, len(step.Check.Workloads), 2)
	_, step = planOf(t, withPods, back(v2), unlooked)
	assert.Assert(t, step.Check.For == fleet.CheckPods && len(step.Check.Pods) == 1 && step.Change == nil)
}

// A node whose workloads don't come back is in service with the new version, and the version is to blame: a few such
// nodes stop it.
func TestWorkloadsThatDoNotComeBack(t *testing.T) {
	unwell := []change{verifying(time.Hour), noted, looked(fleet.Checked{For: fleet.CheckWorkloads, Problem: "Deployment default/web has 1 Ready pods"})}
	_, step := planOf(t, func(*policy.Settings) {}, unwell...)
	m := step.Change.Marks
	assert.Assert(t, step.FreesSlot && m.Disruption == nil && step.Change.Unschedulable == nil && m.Intent.Target == "")
	assert.DeepEqual(t, m.Failure.Broken, []string{v2})
	assert.Equal(t, m.Failure.Message, "Deployment default/web has 1 Ready pods")
	assert.Equal(t, m.History[0].Outcome, marker.OutcomeFailed)
	set := policy.DefaultSettings()
	set.MaxFailed = policy.Count(1)
	done := node("a", func(n *fleet.Node) { n.Marks.Report.Current, n.OSVersion, n.Marks.Failure = v2, v2, m.Failure })
	standing, _ := find(t, planner.Plan(fleetOf([]fleet.Node{done, node("b", prepared), node("c")}), set), "b")
	assert.Equal(t, standing.Reason, plan.ReasonVersionStopped)
	// On a node that was rolled back the failure was counted before.
	rolledBack := append(unwell, func(n *fleet.Node) {
		n.OSVersion, n.Marks.Report.Current, n.Marks.Intent.Target = v1, v1, ""
		failedOnce(0, v2)(n)
	})
	_, step = planOf(t, func(*policy.Settings) {}, rolledBack...)
	assert.Assert(t, step.Act == intent.ActFinish && step.Reason == plan.ReasonVerified && step.Change.Marks.Failure.Count == 1)
}
