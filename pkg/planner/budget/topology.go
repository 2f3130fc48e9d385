package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// topology are the budgets of one label, by its values.
type topology struct {
	*policy.Topology
	// within is the group, "" for the fleet.
	within string
	values map[string]*budget
	// out counts the values with nodes out of service, disrupted those with nodes that the operator took, once the scope
	// is settled. There may be as many values as nodes, so they can't be counted for each node.
	out, disrupted int
}

func (t *topology) of(n *fleet.Node) *budget { return t.values[n.Label(t.Key)] }

// at returns the budget of a node's value, made on demand.
func (t *topology) at(n *fleet.Node) *budget {
	value := n.Label(t.Key)
	b := t.values[value]
	if b == nil {
		b = &budget{of: t.Key + "=" + value}
		if value == "" {
			b.of = "nodes without " + t.Key
		}
		b.of += t.inGroup()
		t.values[value] = b
	}
	return b
}

func (t *topology) inGroup() string {
	if t.within == "" {
		return ""
	}
	return " in " + t.within
}

// tally adds one value to the counts, or takes it away.
func (t *topology) tally(b *budget, by int) {
	if b.disrupted+b.away > 0 {
		t.out += by
	}
	if b.disrupted > 0 {
		t.disrupted += by
	}
}

// refuses says why a node with a value may not be taken out of service.
func (t *topology) refuses(b *budget, away, slot bool, gone int) plan.Refusal {
	switch {
	case t.MaxUnavailable.None():
		return PausedBy(b.of)
	case b.full(away, slot):
		return b.refuse()
	case t.full(b, away, slot, gone):
		return plan.Refuse(plan.ReasonDomainLimit,
			plan.Messagef("nodes of at most %d values of %s may be out of service at once, and are of: %s", t.MaxDomains, t.Key, t).Dated())
	}
	return plan.Refusal{}
}

// full reports whether a node that begins a value would be beside too many others: among those with nodes out of
// service, and also among those that the operator took alone, wherever others' nodes went out meanwhile (S1). A node
// that can't be read begins none (S8).
func (t *topology) full(b *budget, away, slot bool, gone int) bool {
	if t.MaxDomains == 0 {
		return false
	}
	known := b.disrupted - b.unreadable
	begins := known+b.away == 0 || known+b.away == 1 && (slot || away)
	takes := known == 0 || known == 1 && slot
	out, disrupted := t.out, t.disrupted
	if b.disrupted+b.away > 0 {
		out--
	}
	if b.disrupted > 0 {
		disrupted--
	}
	return begins && out+gone >= t.MaxDomains || takes && disrupted+gone >= t.MaxDomains
}

// String names the values with nodes out of service.
func (t *topology) String() string {
	var names []string
	for value, b := range t.values {
		if b.disrupted+b.away > 0 {
			names = append(names, cmp.Or(value, "none"))
		}
	}
	slices.Sort(names)
	if len(names) > maxNames {
		names = append(names[:maxNames], fmt.Sprintf("%d more", len(names)-maxNames))
	}
	return strings.Join(names, ", ")
}
