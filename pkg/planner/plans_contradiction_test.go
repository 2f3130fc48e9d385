package planner_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// L4: of two plans that would undo each other for ever, the one that comes later in the list waits, and says why.
func TestPlansContradict(t *testing.T) {
	set := policy.DefaultSettings()
	up, down := k3s(k2), k3s(k1)
	up.Versions.Downgrade, down.Versions.Downgrade, down.Name = true, true, "down"
	set.Plans = []policy.Plan{up, down}
	found := targets()
	found["down"] = found["k3s"]
	shows := k1
	for range 3 {
		s := fleetOf([]fleet.Node{node("a", planned, kubelet(shows)), node("z")})
		s.PlanTargets = found
		d, step := find(t, planner.Plan(s, set), "a")
		if step == nil {
			assert.Equal(t, shows, k2)
			assert.Equal(t, d.Reason, plan.ReasonPlansContradict)
			assert.Equal(t, d.Message.String(), "plan down wants "+k1+", and would take the node off k3s/"+k2+", which an earlier plan of the list wants")
			return
		}
		shows = marker.PlanTargetOf(step.Change.Marks.Intent.Target)
	}
	t.Fatal("it never ends")
}
