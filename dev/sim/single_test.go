package sim_test

import (
	"bytes"
	"slices"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim"
)

// singleSeeds is the budget of TestSingleNode.
const singleSeeds = 200

// A cluster of one node, whatever goes wrong, is updated with its workloads left in place, and keeps all other promises.
func TestSingleNode(t *testing.T) {
	inPlace := 0
	count := fewer(singleSeeds)
	for seed := uint64(1); seed <= count; seed++ {
		s := sim.Generate(seed)
		s.Nodes, s.Zones, s.Canaries, s.PlanNodes, s.Runners = 1, 0, 0, 0, 0
		s.Policies = []sim.Rules{{"singleNode: allow"}}
		if seed%2 == 0 {
			s.Policies = []sim.Rules{{"singleNode: allow", "loadBalancers: {exclude: true, wait: 20s}",
				"hooks: {afterDrain: [{name: h, annotation: example.com/hook, timeout: 2m, onTimeout: ignore}]}"}}
		}
		// With its only machine a cluster is gone.
		s.Faults = slices.DeleteFunc(s.Faults, func(f sim.Fault) bool { return f.Kind == sim.NeverReturns })
		for i := range s.Faults {
			s.Faults[i].On = 0
		}
		r := sim.Run(s)
		inPlace += r.Checked[sim.LeftInPlace]
		if r.Violation != "" {
			var trace bytes.Buffer
			r.Trace(&trace, 60)
			t.Fatalf("seed %d breaks %s\n%s", seed, r.Violation, trace.String())
		}
	}
	assert.Assert(t, inPlace >= int(count)/2, "%d reboots with the workloads left in place", inPlace)
}
