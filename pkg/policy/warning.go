package policy

import (
	"fmt"
	"time"
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
