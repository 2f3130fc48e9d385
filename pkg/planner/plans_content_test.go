package planner_test

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// L2: what a pod brought that the controller itself can't see keeps no node for ever: past its deadline it is Lost.
func TestContentUnseen(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{files}
	for found, checked := range map[string]fleet.Checked{
		"nothing": {For: fleet.CheckApplied, At: now, Digest: digest, Next: now.Add(time.Minute), Problem: "the pod of the plan is not there any more"},
		"failing": {For: fleet.CheckApplied, At: now, Digest: digest, Next: now.Add(time.Minute), Failed: "forbidden"},
	} {
		t.Run(found, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", onItsWay(files, "content"), acting, answers(marker.StateReady, ""), said(version(files, "content")), issued(24*time.Hour),
				func(n *fleet.Node) { n.Checked = &checked }), node("z")}, "a")
			s.PlanTargets = targets()
			d, _ := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, decided(d), "Lost Note Lost", "%s", d.Message)
			checked.Next = now
			d, step := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, decided(d), "Lost Check Lost", "it is looked at on and on")
			assert.Equal(t, step.Check.For, fleet.CheckApplied)
		})
	}
}

// L4: content that a node has is not run again, with as many plans as the policy can have, and others that were theirs.
func TestManyContents(t *testing.T) {
	set := policy.DefaultSettings()
	found, done := map[string]fleet.PlanTarget{}, map[string]string{}
	for i := range marker.MaxPlansDone {
		p := files
		p.Name = fmt.Sprintf("files-%02d", i)
		set.Plans = append(set.Plans, p)
		found[p.Name] = fleet.PlanTarget{Apply: "files", Digest: digest}
	}
	set.Plans = append(set.Plans, k3s(k1))
	done["k3s"], done["gone"] = digest, digest
	ran := map[string]int{}
	for range 100 {
		s := fleetOf([]fleet.Node{node("a", planned, with(func(n *fleet.Node) { n.Marks.PlanDone = done })), node("z")})
		s.PlanTargets = found
		_, step := find(t, planner.Plan(s, set), "a")
		if step == nil {
			assert.Equal(t, len(ran), marker.MaxPlansDone)
			return
		}
		at, target := now.Add(-time.Hour), step.Change.Marks.Intent.Target
		name := marker.PlanOf(target)
		ran[name]++
		assert.Equal(t, ran[name], 1, "%s runs again", name)
		n := node("a", onItsWay(*set.PlanNamed(name), "content"), acting, said(target), func(n *fleet.Node) {
			n.Marks.Intent.Action, n.Marks.PlanDone = marker.ActionStabilize, done
			n.Marks.Disruption.Soak, n.Marks.Disruption.Returned, n.Marks.Disruption.Ready = &at, &at, "r1"
		})
		s = fleetOf([]fleet.Node{n, node("z")}, "a")
		s.PlanTargets = found
		d, step := find(t, planner.Plan(s, set), "a")
		assert.Equal(t, decided(d), "Verifying Finish Updated")
		done = step.Change.Marks.PlanDone
	}
	t.Fatal("it never ends")
}

// S7: a node has the content that was proven last, and none where a pod failed: a user who goes back to the content of
// before has it run again.
func TestContentAfterFailure(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{files}
	set.Verify.OnWorkloads = policy.FailOnWorkloads
	had := func(n *fleet.Node) { n.Marks.PlanDone = map[string]string{"files": digest2} }
	served := func(n *fleet.Node) {
		soaking(24 * time.Hour)(n)
		n.Marks.Disruption.Workloads = map[string]int{"default/web": 2}
		n.Checked = &fleet.Checked{For: fleet.CheckWorkloads, At: now, Next: now.Add(time.Minute), Problem: "web has 1 Ready pod of 2"}
	}
	for name, tc := range map[string]struct {
		changes []change
		want    string
		has     map[string]string
	}{
		"its pod failed":      {[]change{acting, answers(marker.StateError, "x"), because(marker.ReasonPodFailed)}, "Returning Return PodFailed", map[string]string{}},
		"nothing was done":    {[]change{acting, answers(marker.StateError, "x"), because(marker.ReasonPodRefused)}, "Returning Abandon PodRefused", map[string]string{"files": digest2}},
		"its workloads broke": {[]change{acting, said(version(files, "content")), served}, "Verifying Finish WorkloadsNotReady", map[string]string{"files": digest}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", append([]change{onItsWay(files, "content"), had}, tc.changes...)...), node("z")}, "a")
			s.PlanTargets = targets()
			d, step := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, decided(d), tc.want, "%s", d.Message)
			assert.DeepEqual(t, step.Change.Marks.PlanDone, tc.has)
		})
	}
}
