package planner

import (
	"maps"
	"slices"
)

// witnesses are how many nodes must name a version before its age begins, so that the word of one of them begins none.
const witnesses = 2

// names counts the nodes that name a version: they are offered it by their agents' word, or run it by their kubelets'.
type names struct {
	count map[string]*int
	// last is the version that was counted last: most nodes name the same.
	last string
	at   *int
}

func (n *names) add(version string) {
	if version == "" {
		return
	}
	if version != n.last || n.at == nil {
		n.last, n.at = version, n.count[version]
		if n.at == nil {
			n.at = new(int)
			n.count[version] = n.at
		}
	}
	*n.at++
}

// see notes the versions whose age begins with this plan.
func (p *planner) see() {
	if p.SlotsProblem != "" {
		return
	}
	for version := range p.names.count {
		if _, seen := p.Seen[version]; !seen && p.known(version) {
			p.out.Saw = append(p.out.Saw, version)
		}
	}
	if len(p.out.Saw) > 0 {
		slices.Sort(p.out.Saw)
		p.out.Named = slices.Sorted(maps.Keys(p.names.count))
	}
}

// known reports whether enough nodes name a version. The word of one is enough where no other could go to it: then it
// moves that one alone.
func (p *planner) known(version string) bool {
	count := p.names.count[version]
	if count == nil {
		return false
	}
	if *count >= witnesses {
		return true
	}
	could := 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if c := p.compare(version, n.OSVersion); n.Labelled() && n.Leaving == "" && (c > 0 || c < 0 && p.set.Versions.Downgrade) {
			could++
		}
	}
	return could <= 1
}
