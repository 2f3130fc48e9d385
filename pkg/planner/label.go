package planner

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// labelsAtOnce is how many nodes one pass labels, so that a fleet that is new to the operator holds up none that it
// has. Each write asks for another pass.
const labelsAtOnce = 20

// label labels nodes that were never labelled, where the policy says so. That starts no update, so a pause doesn't keep
// it; but nothing comes into the operator's care while the policy, or what stands of nodes in that care, can't be read.
func (p *planner) label() {
	if !p.set.AutoLabel || p.NoPolicy || p.PolicyProblem != "" || p.SlotsProblem != "" {
		return
	}
	var nodes []*fleet.Node
	room := labelsAtOnce
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if p.Managed(n) || !lifecycle.NeverLabelled(n) {
			continue
		}
		if n.WriteTrouble != nil {
			// They take room while no write to them succeeds: where all are refused, few are tried again and again.
			room--
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		v := lifecycle.View{Node: n, Now: p.Now, Settings: &p.set, Rules: &p.set.Rules}
		if n.WriteTrouble == nil {
			if room <= 0 {
				continue
			}
			room--
		}
		next := v.Label()
		p.wakeAt(next.Again)
		if next.Step != nil {
			next.Step.Phase = next.Phase
			p.out.Steps = append(p.out.Steps, *next.Step)
		}
	}
}
