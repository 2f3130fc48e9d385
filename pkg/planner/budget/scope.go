package budget

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Scope is the fleet, or a group of it, with all its budgets.
type Scope struct {
	budget
	rules      *policy.Rules
	topologies []topology
	// group: it is not the whole fleet.
	group bool
	// members counts all nodes in it.
	members int
}

// theFleet is what messages call the whole of it.
const theFleet = "the fleet"

// Fleet returns the scope of all nodes.
func Fleet(r *policy.Rules) *Scope { return newScope(theFleet, "", r) }

// Group returns the scope of a group's nodes.
func Group(g *policy.Group) *Scope {
	of := "group " + g.Name
	s := newScope(of, of, &g.Rules)
	s.group = true
	return s
}

// freshNodes is what messages call nodes that have no workloads yet.
const freshNodes = "fresh nodes"

// Fresh returns the scope of nodes that have no workloads yet, of which so many may be out of service.
func Fresh(most policy.Limit) *Scope {
	s := newScope(freshNodes, freshNodes, &policy.Rules{MaxUnavailable: most})
	s.group = true
	return s
}

func newScope(of, within string, r *policy.Rules) *Scope {
	s := &Scope{rules: r, budget: budget{of: of}}
	for i := range r.Topology {
		s.topologies = append(s.topologies, topology{Topology: &r.Topology[i], within: within, values: map[string]*budget{}})
	}
	return s
}

// Of is what messages call the scope.
func (s *Scope) Of() string { return s.of }

// Rules are those that it goes by.
func (s *Scope) Rules() *policy.Rules { return s.rules }

// Members is how many nodes are in it, and Nodes how many of them a share is taken of.
func (s *Scope) Members() int { return s.members }

// Nodes is how many of its members a share is taken of.
func (s *Scope) Nodes() int { return s.nodes }

// Limit is how many of its nodes may be out of service, and Away how many are by another's doing.
func (s *Scope) Limit() int { return s.limit }

// Away is how many of its nodes are out of service by another's doing.
func (s *Scope) Away() int { return s.away }

// Full reports whether no node of it may be taken that isn't out of service, and holds no slot, already.
func (s *Scope) Full() bool { return s.full(false, false) }

// Add counts a node in: as capacity, and as one that uses budgets up.
func (s *Scope) Add(n *fleet.Node, capacity bool, c Claim) {
	s.members++
	s.each(n, func(b *budget) {
		if capacity {
			b.nodes++
		}
		if c.Disrupted || c.Away {
			b.use(n.Name, c)
		}
	})
}

func (s *Scope) each(n *fleet.Node, do func(*budget)) {
	do(&s.budget)
	for i := range s.topologies {
		do(s.topologies[i].at(n))
	}
}

// Settle works the limits out, once all nodes are in. gone is how many slots are of nodes that are not.
func (s *Scope) Settle(gone int) {
	s.limit, s.gone = s.rules.MaxUnavailable.Of(s.nodes), gone
	for i := range s.topologies {
		t := &s.topologies[i]
		for _, b := range t.values {
			b.limit, b.gone = t.MaxUnavailable.Of(b.nodes), gone
			t.tally(b, 1)
		}
	}
}

// Take counts a node that is taken out of service. away: it was out of service already.
func (s *Scope) Take(n *fleet.Node, away bool) {
	move := func(b *budget) {
		if away {
			b.takeOver(n.Name)
		} else {
			b.use(n.Name, Claim{Disrupted: true})
		}
	}
	move(&s.budget)
	for i := range s.topologies {
		t := &s.topologies[i]
		if b := t.of(n); b != nil {
			t.tally(b, -1)
			move(b)
			t.tally(b, 1)
		}
	}
}

// Refuses says which budget has no room for a node. away: it is out of service already; slot: it holds one.
func (s *Scope) Refuses(n *fleet.Node, away, slot bool) plan.Refusal {
	if s.full(away, slot) {
		return s.refuse()
	}
	for i := range s.topologies {
		t := &s.topologies[i]
		if b := t.of(n); b != nil {
			if r := t.refuses(b, away, slot, s.gone); r.Refuses() {
				return r
			}
		}
	}
	return plan.Refusal{}
}

// Usage is how much of each limit is used.
func (s *Scope) Usage() []plan.Usage {
	var all []plan.Usage
	// No limit is a limit for the fleet alone, which has places for so many.
	if !s.group || s.rules.MaxUnavailable != policy.Unlimited {
		all = append(all, s.usage(s.rules.MaxUnavailable))
	}
	for i := range s.topologies {
		t := &s.topologies[i]
		if t.MaxDomains > 0 {
			all = append(all, plan.Usage{Of: "values of " + t.Key + t.inGroup(), Rule: policy.Count(t.MaxDomains).String(), Limit: t.MaxDomains,
				Used: t.out, Disrupted: t.disrupted, ByOthers: t.out - t.disrupted})
		}
		if t.MaxUnavailable == policy.Unlimited {
			continue
		}
		for _, value := range slices.Sorted(maps.Keys(t.values)) {
			all = append(all, t.values[value].usage(t.MaxUnavailable))
		}
	}
	return all
}
