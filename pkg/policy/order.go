package policy

import (
	"cmp"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// before puts those who could go in their order: interrupted starts first, whose slot is theirs already; nodes
// that failed behind the others, and the controller's own node last. Then the oldest version first, those that
// are out of service already, and by name.
func (p *planner) before(a, b candidate) int {
	return cmp.Or(
		-compareBool(p.slot(a.Node), p.slot(b.Node)),
		compareBool(a.ControllerHere, b.ControllerHere),
		compareBool(a.Marks.Failure != nil, b.Marks.Failure != nil),
		marker.CompareVersions(a.Marks.Report.Current, b.Marks.Report.Current),
		-compareBool(p.otherwiseOut(a.Node), p.otherwiseOut(b.Node)),
		cmp.Compare(a.Name, b.Name),
	)
}

// zoneLabel is what nodes are spread over.
const zoneLabel = "topology.kubernetes.io/zone"

// spread lets nodes go in their order, and among those that come first alike one from the zone with the fewest
// nodes in our hands.
func (p *planner) spread(all []candidate, let func(candidate)) {
	zones := map[string]int{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Disrupted() || p.slot(n) {
			zones[n.Labels[zoneLabel]]++
		}
	}
	for len(all) > 0 {
		// Where nothing can be had any more, all wait alike.
		if p.fleet.full(false, false) {
			for _, c := range all {
				let(c)
			}
			return
		}
		best := 0
		for i := 1; i < len(all) && p.alike(all[0], all[i]) && zones[all[best].Labels[zoneLabel]] > 0; i++ {
			if zones[all[i].Labels[zoneLabel]] < zones[all[best].Labels[zoneLabel]] {
				best = i
			}
		}
		c := all[best]
		copy(all[1:best+1], all[:best])
		all = all[1:]
		before := p.fleet.held
		let(c)
		if p.fleet.held > before {
			zones[c.Labels[zoneLabel]]++
		}
	}
}

// alike tells if only their names decide which of two comes first.
func (p *planner) alike(a, b candidate) bool {
	return p.slot(a.Node) == p.slot(b.Node) && a.ControllerHere == b.ControllerHere && (a.Marks.Failure != nil) == (b.Marks.Failure != nil) &&
		marker.CompareVersions(a.Marks.Report.Current, b.Marks.Report.Current) == 0 && p.otherwiseOut(a.Node) == p.otherwiseOut(b.Node)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
