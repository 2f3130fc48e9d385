package planner

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// candidate is a node that could go.
type candidate struct {
	*fleet.Node
	part *part
	at   int
	zone string
	// held tells if a slot is the node's already.
	held bool
	// rank comes before the version, and out, whether it is out of service already, after it.
	rank int
	out  bool
	// place is what these three come to: the lower goes first, and of those that have the same their names decide.
	place int
	// round is how many nodes of its zone go before it.
	round int
}

// candidate is the node that is being decided on.
func (p *planner) candidate(n *fleet.Node) candidate {
	c := candidate{Node: n, part: p.places[p.at], at: p.at, zone: n.Zone, held: p.slot(n), out: p.otherwiseOut(n)}
	blocked := n.Forecast != nil && n.Forecast.Obstacle != fleet.ObstacleNone
	for _, behind := range []bool{!c.held, n.ControllerHere, p.behind(n), blocked} {
		c.rank <<= 1
		if behind {
			c.rank |= 1
		}
	}
	return c
}

// order puts those who could go in their order: interrupted starts first, whose slot is theirs already; the
// controller's own node last, nodes that failed or had their turn behind the others, and then those that could not be drained when
// somebody looked: however many they are, looking at them again keeps nobody waiting. Then the oldest version first, those that
// are out of service already, and by name.
func order(all []candidate) {
	ages, last := agesOf(all), 0
	for i := range all {
		c := &all[i]
		c.place = (c.rank*len(ages)+ages[c.OSVersion])*2 + 1
		if c.out {
			c.place--
		}
		last = max(last, c.place)
	}
	arrange(all, last, func(c *candidate) int { return c.place })
}

// agesOf numbers the versions that nodes run, by their kubelets' word, from the oldest on, so that each is read once.
func agesOf(all []candidate) map[string]int {
	ages := map[string]int{}
	for i := range all {
		ages[all[i].OSVersion] = 0
	}
	age, versions := 0, slices.SortedFunc(maps.Keys(ages), marker.CompareVersions)
	for i, v := range versions {
		if i > 0 && marker.CompareVersions(versions[i-1], v) != 0 {
			age++
		}
		ages[v] = age
	}
	return ages
}

// spread turns those that come first alike into a round through the zones, which begins with the zone that has the
// fewest nodes in our hands.
func (p *planner) spread(alike []candidate) {
	last := 0
	for i := range alike {
		c := &alike[i]
		c.round = p.zones[c.zone]
		last = max(last, c.round)
		p.zones[c.zone]++
	}
	if len(p.zones) > 1 {
		arrange(alike, last, func(c *candidate) int { return c.round })
	}
}

// takenIn counts the nodes in our hands by their zones.
func (p *planner) takenIn() map[string]int {
	zones := map[string]int{}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Disrupted() || p.slot(n) {
			zones[n.Zone]++
		}
	}
	return zones
}

// arrange orders by a number from 0 to last, and leaves those that have the same as they stand. It counts: there may
// be thousands, and few numbers.
func arrange(all []candidate, last int, number func(*candidate) int) {
	next, before, arranged := make([]int, last+2), 0, true
	for i := range all {
		n := number(&all[i])
		next[n+1]++
		before, arranged = n, arranged && before <= n
	}
	if arranged {
		return
	}
	for at := range last {
		next[at+1] += next[at]
	}
	from := slices.Clone(all)
	for i := range from {
		at := &next[number(&from[i])]
		all[*at] = from[i]
		*at++
	}
}
