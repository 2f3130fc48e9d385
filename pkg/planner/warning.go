package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// warn tells of what the policy allows and people may not have meant.
func (p *planner) warn() {
	p.out.Warnings = append(p.out.Warnings, p.PolicyWarnings...)
	p.out.Warnings = append(p.out.Warnings, p.set.Warnings()...)
	for _, g := range p.groups {
		if g.members == 0 {
			p.out.Warnings = append(p.out.Warnings, p.emptyGroup(g))
		}
	}
	if w := p.ungrouped(); w != "" {
		p.out.Warnings = append(p.out.Warnings, w)
	}
	for _, g := range append([]*part{p.fleet}, p.groups...) {
		if !g.rules.FitWindow || len(g.rules.Calendar.Windows) == 0 {
			continue
		}
		w := longest(g.rules.Calendar)
		if takes := p.takes(g, w-1); takes >= w {
			p.out.Warnings = append(p.out.Warnings, fmt.Sprintf("an update takes %s in %s, and no window of it is longer than %s: it starts whenever one is open",
				takes.Round(time.Second), g.of, w))
		}
	}
}

// ungrouped is a warning of nodes that no group chooses: one that has lost its label, or joined without, is among them.
func (p *planner) ungrouped() string {
	count := p.fleet.members
	for _, g := range p.groups {
		count -= g.members
	}
	if len(p.groups) == 0 || count == 0 {
		return ""
	}
	first := slices.IndexFunc(p.Nodes, func(n fleet.Node) bool { return p.ours(&n) && p.place(&n) == p.rest })
	if first < 0 {
		return ""
	}
	one, more := "goes by the rules of the fleet", "go by the rules of the fleet"
	if p.set.Ungrouped == policy.UngroupedWait {
		one, more = "waits", "wait"
	}
	if count == 1 {
		return fmt.Sprintf("no group chooses %s, which %s", p.Nodes[first].Name, one)
	}
	return fmt.Sprintf("no group chooses %d nodes, %s among them, which %s", count, p.Nodes[first].Name, more)
}

func (p *planner) emptyGroup(g *part) string {
	chosen := 0
	// What the first group chooses is in it.
	if g != p.groups[0] {
		for i := range p.Nodes {
			if n := &p.Nodes[i]; p.ours(n) && g.group.Selector.Matches(n.Labels) {
				chosen++
			}
		}
	}
	if chosen > 0 {
		return fmt.Sprintf("%s has no node: all %d that its selector chooses are in groups before it", g.of, chosen)
	}
	return fmt.Sprintf("%s has no node: its selector chooses none that is labelled", g.of)
}
