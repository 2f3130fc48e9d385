package planner

import (
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// start gives the room that the limits leave to nodes, in order. Nothing else does.
func (p *planner) start() {
	for _, m := range p.asked {
		p.takeRoom(m)
	}
	order(p.toStage)
	order(p.toDisrupt)
	zones := p.disruptedIn()
	for begin, end := 0, 0; begin < len(p.toDisrupt); begin = end {
		for end < len(p.toDisrupt) && p.toDisrupt[end].place == p.toDisrupt[begin].place {
			end++
		}
		alike := p.toDisrupt[begin:end]
		// Where none can go it makes no difference which is asked first.
		if !p.fleet.scope.Full() {
			spread(alike, zones)
		}
		for i := range alike {
			p.disrupt(&alike[i])
		}
	}
	for i := range p.toStage {
		p.stage(&p.toStage[i])
	}
}

// question is what a start of a member depends on.
func (p *planner) question(m *member, version string) *check.Start {
	q := &check.Start{View: &m.View, Fleet: &p.now, Group: &m.group.Group, Version: &check.Version{Name: version},
		Scopes: m.budgets, Away: m.away, OthersFirst: p.othersFirst}
	if !m.Cycles() {
		q.Version, q.GoesFirst = p.version(m.Rules, version), p.goesFirst(m, version)
	}
	return q
}

func (p *planner) disrupt(c *candidate) {
	m := c.member
	r := check.Disruption(p.question(m, m.Marks.Intent.Target))
	if r.Refuses() {
		p.refuse(c, lifecycle.WantDisruption, r)
		return
	}
	p.wakeAt(r.Again)
	p.take(c.at, lifecycle.Granted(&m.View, lifecycle.WantDisruption))
	switch p.out.Nodes[c.at].Act {
	case intent.ActConfirm:
		p.confirming++
	case intent.ActCordon:
		if !m.Unschedulable && !m.FreshTaint {
			p.now.Schedulable--
		}
		if !m.Slot && !m.Fresh() {
			p.out.Disrupted++
			if m.away {
				p.out.ByOthers--
			}
		}
	default:
		// A look takes nothing yet.
	}
	if !m.Slot {
		p.takeRoom(m)
	}
}

// takeRoom counts a node into its budgets that is being taken out of service, or keeps its place for that.
func (p *planner) takeRoom(m *member) {
	for _, s := range m.budgets {
		s.Take(m.Node, m.away)
	}
}

// othersFirst reports whether any other node is about to be staged. That is bounded: each of them either gets there or
// fails and backs off. One that the policy keeps from it, the group of this very node going first for example, may wait
// for ever, and isn't waited for. Those that are staged were asked before the controller's own node in this pass; what
// keeps them back, no other node to take their pods for example, needn't keep it back.
func (p *planner) othersFirst() bool {
	return p.staging+p.confirming > 0 || slices.ContainsFunc(p.toStage, func(c candidate) bool {
		return c.WriteTrouble == nil && !check.Policy(p.question(c.member, c.Goal())).Refuses()
	})
}

func (p *planner) stage(c *candidate) {
	m := c.member
	r := check.Staging(p.question(m, m.Goal()))
	if r.Refuses() {
		p.refuse(c, lifecycle.WantStaging, r)
		return
	}
	p.wakeAt(r.Again)
	p.now.Staging++
	p.take(c.at, lifecycle.Granted(&m.View, lifecycle.WantStaging))
}

func (p *planner) refuse(c *candidate, w lifecycle.Want, r plan.Refusal) {
	p.out.AskAlerts = p.out.AskAlerts || r.Asks
	p.take(c.at, lifecycle.Refused(&c.View, w, r))
}
