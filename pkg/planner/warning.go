package planner

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// warn names what the policy allows and was probably not meant.
func (p *planner) warn() {
	warn := func(of string, m plan.Message) {
		p.out.Warnings = append(p.out.Warnings, plan.Warning{Of: of, Message: m})
	}
	for _, text := range slices.Concat(p.PolicyWarnings, p.set.Warnings()) {
		// Nothing is counted in these.
		warn(text, plan.Text(text))
	}
	for _, g := range p.groups {
		if g.scope.Members() == 0 {
			warn("members of "+g.scope.Of(), p.emptyGroup(g))
		}
	}
	p.ungrouped(warn)
	p.tainted(warn)
	for _, g := range append([]*group{p.fleet}, p.groups...) {
		r := g.scope.Rules()
		if !r.FitWindow {
			continue
		}
		longest := check.Longest(r.Calendar)
		if takes := p.takes(r); takes >= longest {
			warn("window of "+g.scope.Of(), plan.Messagef("an update takes %s in %s, and no window of it is longer than %s: "+
				"it starts whenever one is open", takes.Round(time.Second), g.scope.Of(), longest))
		}
	}
}

// ungrouped warns of nodes that no group chooses: one that has lost its label, or joined without, is among them.
func (p *planner) ungrouped(warn func(of string, m plan.Message)) {
	if len(p.groups) == 0 {
		return
	}
	count, first := 0, ""
	for i := range p.members {
		if m := &p.members[i]; m.group == p.fleet {
			if count++; count == 1 {
				first = m.Name
			}
		}
	}
	one, more := "goes by the rules of the fleet", "go by the rules of the fleet"
	if p.set.Ungrouped == policy.UngroupedWait {
		one, more = "waits", "wait"
	}
	switch count {
	case 0:
	case 1:
		warn("ungrouped", plan.Messagef("no group chooses %s, which %s", first, one))
	default:
		warn("ungrouped", plan.Messagef("no group chooses %d nodes, %s among them, which %s", count, first, more))
	}
}

// tainted warns of nodes with the taint of new nodes that the operator does not take off.
func (p *planner) tainted(warn func(of string, m plan.Message)) {
	nodes := func(of, why string, keeps func(*fleet.Node) bool) {
		count, first := 0, ""
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.FreshTaint && keeps(n) {
				if count++; count == 1 {
					first = n.Name
				}
			}
		}
		if count > 0 {
			warn(of, plan.Messagef("%d nodes keep the taint %s, %s among them, since %s: kubectl taint node %[3]s %[2]s:NoSchedule-", count, marker.TaintFresh, first, why))
		}
	}
	nodes("unlabelled fresh nodes", "they have no label of the operator", func(n *fleet.Node) bool { return !p.Managed(n) && !n.Marked() })
	nodes("returning taints", "something puts it on again and again", func(n *fleet.Node) bool {
		return n.Labelled() && n.Marks.Fresh != nil && n.Marks.Fresh.Times >= marker.FreshMost
	})
}

func (p *planner) emptyGroup(g *group) plan.Message {
	chosen := 0
	for i := range p.members {
		if g.policy.Selector.Matches(p.members[i].Labels) {
			chosen++
		}
	}
	if chosen > 0 {
		return plan.Messagef("%s has no node: all %d that its selector chooses are in groups before it", g.scope.Of(), chosen)
	}
	return plan.Messagef("%s has no node: its selector chooses none that is labelled", g.scope.Of())
}
