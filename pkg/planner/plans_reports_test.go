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

// What users of rancher/system-upgrade-controller and of k3s reported of its plans, replayed. What reports say of pods is
// replayed in pkg/runner/next.
func TestPlanReports(t *testing.T) {
	up := k3s(k2)
	decide := func(set policy.Settings, nodes ...fleet.Node) plan.Plan {
		s := fleetOf(nodes)
		for i := range s.Nodes {
			if s.Nodes[i].Disrupted() {
				s.Slots[s.Nodes[i].UID] = s.Nodes[i].Name
			}
		}
		s.PlanTargets = targets()
		return planner.Plan(s, set)
	}
	with := func(plans ...policy.Plan) policy.Settings {
		set := policy.DefaultSettings()
		set.Plans = plans
		return set
	}
	prepared := then(onItsWay(up, k2), answers(marker.StateReady, ""))

	t.Run("system-upgrade-controller 71: a plan is deleted, and its node stays cordoned", func(t *testing.T) {
		_, step := find(t, decide(with(), node("a", onItsWay(up, k2), outOf), node("z")), "a")
		assert.Equal(t, step.Act, intent.ActAbandon)
		assert.Equal(t, *step.Change.Unschedulable, false)
	})
	t.Run("system-upgrade-controller 71: a plan fails, and its node stays cordoned", func(t *testing.T) {
		_, step := find(t, decide(with(up), node("a", onItsWay(up, k2), acting, answers(marker.StateError, "x"), because(marker.ReasonPodFailed)), node("z")), "a")
		assert.Equal(t, step.Act, intent.ActReturn)
		assert.Equal(t, *step.Change.Unschedulable, false)
	})
	t.Run("system-upgrade-controller 77: more nodes at once than allowed", func(t *testing.T) {
		out := decide(with(up), node("a", prepared), node("b", prepared), node("c", prepared), node("z"))
		assert.Equal(t, starts(out), 1)
	})
	for name, first := range map[string]change{
		"163: the next node before the last one is Ready":   then(onItsWay(up, k2), acting, answers(marker.StateReady, ""), said(version(up, k2)), kubelet(k2), notReady),
		"282: the next node before the last one is back":    then(onItsWay(up, k2), acting, answers(marker.StateReady, "")),
		"282: the next node while the last one is drained":  then(onItsWay(up, k2), outOf),
		"282: the next node before the last one was proven": then(onItsWay(up, k2), acting, said(version(up, k2)), kubelet(k2), soaking(time.Second)),
	} {
		t.Run("system-upgrade-controller "+name, func(t *testing.T) {
			d, _ := find(t, decide(with(up), node("a", first), node("b", prepared), node("z")), "b")
			assert.Equal(t, d.Reason, plan.ReasonUnavailableLimit)
		})
	}
	t.Run("system-upgrade-controller 225: two plans at work at once", func(t *testing.T) {
		ready := then(onItsWay(files, "content"), answers(marker.StateReady, ""))
		d, _ := find(t, decide(with(up, files), node("a", onItsWay(up, k2), outOf), node("b", ready), node("z")), "b")
		assert.Equal(t, d.Reason, plan.ReasonUnavailableLimit)
	})
	t.Run("system-upgrade-controller 262: the job is complete, and the version is the old one", func(t *testing.T) {
		_, step := find(t, decide(with(up), node("a", onItsWay(up, k2), acting, answers(marker.StateError, "x"), because(marker.ReasonNoEffect)), node("z")), "a")
		assert.Equal(t, step.Reason, plan.ReasonNoEffect)
		h := step.Change.Marks.History
		assert.Equal(t, h[len(h)-1].Outcome, marker.OutcomeFailed)
	})
	t.Run("system-upgrade-controller 315: a plan is to run again, though nothing of it has changed", func(t *testing.T) {
		// What the nodes have isn't run again; another word in the template makes it other content.
		s := fleetOf([]fleet.Node{node("a", planned, func(n *fleet.Node) { n.Marks.PlanDone = map[string]string{files.Name: digest} }), node("z")})
		for again, want := range map[string]plan.Reason{digest: plan.ReasonUpToDate, "fedcba9876543210": plan.ReasonUpdateAvailable} {
			s.PlanTargets = targets()
			changed := s.PlanTargets[files.Name]
			changed.Digest = again
			s.PlanTargets[files.Name] = changed
			d, _ := find(t, planner.Plan(s, with(files)), "a")
			assert.Equal(t, d.Reason, want)
		}
	})
	t.Run("system-upgrade-controller 341: it uncordons what an administrator cordoned", func(t *testing.T) {
		theirs := func(n *fleet.Node) { n.Marks.Disruption.WasUnschedulable = true }
		for _, changes := range [][]change{
			{onItsWay(up, k2), acting, answers(marker.StateReady, ""), said(version(up, k2)), kubelet(k2), theirs},
			{onItsWay(up, k2), acting, answers(marker.StateError, "x"), because(marker.ReasonPodFailed), theirs},
			{onItsWay(up, k2), acting, answers(marker.StateError, "x"), because(marker.ReasonPodRefused), theirs},
		} {
			_, step := find(t, decide(with(up), node("a", changes...), node("z")), "a")
			assert.Assert(t, step.Change.Unschedulable == nil, step.Act)
		}
	})
	// What the runner keeps of a channel is in pkg/runner; here it has lost that, and shows what the channel does.
	for report, from := range map[string]struct{ has, shown string }{
		"14282: a channel shows two releases in turns, and nodes are cordoned to go back": {"v1.36.2+k3s1", "v1.35.5+k3s1"},
		"14530: a channel goes back to 1.26, and the control plane is taken back with it": {"v1.36.3+k3s1", "v1.26.3+k3s1"},
	} {
		t.Run("k3s "+report, func(t *testing.T) {
			set := with(k3s(""))
			set.Plans[0].Target = policy.PlanTarget{Channel: "https://example.com/stable"}
			s := fleetOf([]fleet.Node{node("a", planned, kubelet(from.has)), node("z")})
			s.PlanTargets = map[string]fleet.PlanTarget{"k3s": {Prepare: "pull", Apply: "upgrade", Digest: digest, Channel: "https://example.com/stable", Version: from.shown}}
			d, step := find(t, planner.Plan(s, set), "a")
			assert.Equal(t, d.Reason, plan.ReasonUpToDate)
			assert.Assert(t, step == nil)
		})
	}
}
