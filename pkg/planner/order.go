package planner

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// candidate is a node that wants what others may take.
type candidate struct {
	*member
	// at is its place in the plan.
	at int
	// rank comes before the version, and whether it is away after it.
	rank int
	// place is what these three come to: the lower goes first, and of those that have the same their names decide.
	place int
	// round is how many nodes of its zone go before it.
	round int
}

func (p *planner) candidate(i int) candidate {
	m := &p.members[i]
	c := candidate{member: m, at: i}
	blocked := m.Forecast != nil && m.Forecast.Obstacle != fleet.ObstacleNone
	for _, behind := range [...]bool{!m.Slot, !m.Fresh(), m.ControllerHere, m.Behind(), blocked, m.Marks.Cycle == ""} {
		c.rank <<= 1
		if behind {
			c.rank |= 1
		}
	}
	return c
}

// order puts candidates in their order: interrupted starts first, which hold a slot already, then nodes that have no
// workloads yet; the controller's own node last, nodes that failed or had their turn behind the others, and then those
// that could not be drained at the last look: however many they are, looking at them again keeps no other waiting. Then
// those that a user asks for, before their like alone. Then the oldest version first, those that are away already, and
// by name.
func order(all []candidate) {
	ages := agesOf(all)
	for i := range all {
		c := &all[i]
		c.place = (c.rank*len(ages) + ages[c.OSVersion]) * 2
		if !c.away {
			c.place++
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.place-b.place, a.at-b.at) })
}

// agesOf numbers the versions that kubelets report from the oldest on, so that each is read once.
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
// fewest disrupted nodes.
func spread(alike []candidate, zones map[string]int) {
	for i := range alike {
		c := &alike[i]
		c.round = zones[c.Zone]
		zones[c.Zone]++
	}
	slices.SortFunc(alike, func(a, b candidate) int { return cmp.Or(a.round-b.round, a.at-b.at) })
}

// disruptedIn counts the disrupted nodes by their zones.
func (p *planner) disruptedIn() map[string]int {
	zones := map[string]int{}
	for i := range p.members {
		if m := &p.members[i]; m.Disrupted() || m.Slot {
			zones[m.Zone]++
		}
	}
	return zones
}
