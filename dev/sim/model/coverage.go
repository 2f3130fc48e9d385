package model

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Coverage is what a search came by, each with how many different times.
type Coverage struct {
	Phases   map[intent.Phase]int
	Acts     map[intent.Act]int
	Reasons  map[plan.Reason]int
	Moves    map[string]int
	Refusals map[string]int
}

func newCoverage() *Coverage {
	return &Coverage{Phases: map[intent.Phase]int{}, Acts: map[intent.Act]int{}, Reasons: map[plan.Reason]int{},
		Moves: map[string]int{}, Refusals: map[string]int{}}
}

func (c *Coverage) plan(out plan.Plan) {
	for _, n := range out.Nodes {
		c.Phases[n.Phase]++
		c.Reasons[n.Reason]++
	}
	for _, s := range out.Steps {
		if s.Change == nil {
			c.Acts[s.Act]++
		}
	}
}

func (c *Coverage) act(s plan.Step)       { c.Acts[s.Act]++; c.Reasons[s.Reason]++ }
func (c *Coverage) move(what string)      { c.Moves[what]++ }
func (c *Coverage) refused(reason string) { c.Refusals[reason]++ }
