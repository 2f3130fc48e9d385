package policy

import (
	"cmp"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// candidate is a node that could go.
type candidate struct {
	*fleet.Node
	part *part
	at   int
	// rank comes before the version, and out, whether it is out of service already, after it.
	rank uint8
	out  bool
	// round is how many nodes of its zone go before it.
	round int
}

// candidate is the node that is being decided on.
func (p *planner) candidate(n *fleet.Node) candidate {
	c := candidate{Node: n, part: p.places[p.at], at: p.at, out: p.otherwiseOut(n)}
	for _, behind := range []bool{!p.slot(n), n.ControllerHere, n.Marks.Failure != nil} {
		c.rank <<= 1
		if behind {
			c.rank |= 1
		}
	}
	return c
}

// before puts those who could go in their order: interrupted starts first, whose slot is theirs already; the
// controller's own node last, and nodes that failed behind the others. Then the oldest version first, those that
// are out of service already, and by name.
func before(a, b candidate) int {
	return cmp.Or(alike(a, b), cmp.Compare(a.at, b.at))
}

// alike is 0 if only their names decide which of two comes first.
func alike(a, b candidate) int {
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	if c := marker.CompareVersions(a.Marks.Report.Current, b.Marks.Report.Current); c != 0 {
		return c
	}
	switch {
	case a.out == b.out:
		return 0
	case a.out:
		return -1
	}
	return 1
}

// zoneLabel is what nodes are spread over.
const zoneLabel = "topology.kubernetes.io/zone"

// spread turns those that come first alike into a round through the zones, which begins with the zone that has the
// fewest nodes in our hands.
func (p *planner) spread(all []candidate) {
	zones := map[string]int{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Disrupted() || p.slot(n) {
			zones[n.Labels[zoneLabel]]++
		}
	}
	for begin := 0; begin < len(all); {
		end := begin
		for ; end < len(all) && alike(all[begin], all[end]) == 0; end++ {
			zone := all[end].Labels[zoneLabel]
			all[end].round = zones[zone]
			zones[zone]++
		}
		slices.SortFunc(all[begin:end], func(a, b candidate) int { return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.at, b.at)) })
		begin = end
	}
}
