package planner_test

import (
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
