package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// budget counts the nodes of one part of the fleet against one limit.
type budget struct {
	// of says what the limit is about, for people: "the fleet", "group canary", "zone=a".
	of string
	// nodes is the capacity that a share is taken of; limit follows from it.
	nodes, limit int
	// held are in our hands, but for Lost ones that lend their place on; others are out of service by somebody
	// else's hand.
	held, others int
	// gone are slots of nodes that are gone, or not seen yet: they may be of any part of the fleet.
	gone int
	// names are the first of those that use it up. theirs tells which of them the operator didn't take out of service, and
	// until how long these count; zero if that isn't known yet.
	names  []string
	theirs [maxNames]bool
	until  [maxNames]time.Time
}

// maxNames is how many nodes a sentence names.
const maxNames = 3

func (b *budget) used() int { return b.held + b.gone + b.others }

func (b *budget) use(name string, held bool, until time.Time) {
	if held {
		b.held++
	} else {
		b.others++
	}
	if len(b.names) < maxNames {
		b.theirs[len(b.names)], b.until[len(b.names)] = !held, until
		b.names = append(b.names, name)
	}
}

// full tells if a node may not be taken. One that holds a slot is among those in our hands already, and one that
// is out of service by somebody else's hand among the others: they take no second place. But of those in our
// hands there are never more than the limit (S1).
func (b *budget) full(counted, slot bool) bool {
	used, held := b.used(), b.held+b.gone
	switch {
	case slot:
		used, held = used-1, held-1
	case counted:
		used--
	}
	return used >= b.limit || held >= b.limit
}

func (b *budget) String() string {
	if b == nil {
		return ""
	}
	named := slices.Clone(b.names)
	for i := range named {
		switch {
		case !b.theirs[i]:
		case b.until[i].IsZero():
			named[i] += " (not by the operator's doing)"
		default:
			named[i] += fmt.Sprintf(" (not by the operator's doing; counts until it is back in service, or %s)", plan.Clock(b.until[i]))
		}
	}
	more := ""
	if n := b.held + b.others - len(b.names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	if b.gone > 0 {
		more += fmt.Sprintf("; %d hold a place and are gone", b.gone)
	}
	return strings.TrimPrefix(strings.Join(named, ", ")+more, "; ")
}

// domains are the budgets of one topology, by the value of its label.
type domains struct {
	*policy.Topology
	within string
	values map[string]*budget
	// out counts the values with nodes out of service, ours those with nodes in our hands, once the part is settled.
	out, ours int
}

func (d *domains) of(n *fleet.Node) *budget { return d.values[n.Label(d.Key)] }

// tally adds one value to the counts, or takes it away. There may be as many values as nodes, so that nobody can
// count them for each node.
func (d *domains) tally(b *budget, by int) {
	if b.held+b.others > 0 {
		d.out += by
	}
	if b.held > 0 {
		d.ours += by
	}
}

// full tells if a node that begins a value would be beside too many others: among those with nodes out of service,
// and also among those in our hands alone, wherever somebody else's nodes went out meanwhile (S1).
func (d *domains) full(b *budget, counted, slot bool, gone int) bool {
	if d.MaxDomains == 0 {
		return false
	}
	begins := b.held+b.others == 0 || b.held+b.others == 1 && (slot || counted)
	takes := b.held == 0 || b.held == 1 && slot
	out, ours := d.out, d.ours
	if b.held+b.others > 0 {
		out--
	}
	if b.held > 0 {
		ours--
	}
	return begins && out+gone >= d.MaxDomains || takes && ours+gone >= d.MaxDomains
}

// String names the domains with nodes out of service.
func (d *domains) String() string {
	var names []string
	for value, b := range d.values {
		if b.held+b.others > 0 {
			names = append(names, cmp.Or(value, "none"))
		}
	}
	slices.Sort(names)
	if len(names) > maxNames {
		names = append(names[:maxNames], fmt.Sprintf("%d more", len(names)-maxNames))
	}
	return strings.Join(names, ", ")
}

// part is the fleet, or a group of it, with its budgets.
type part struct {
	// group is nil for what the whole fleet has in common, and for nodes in no group.
	group *policy.Group
	rules *policy.Rules
	budget
	domains []domains
	// members counts all nodes in it.
	members int
	// closed is why its window lets nothing start now; found out when it is first asked for.
	window *windowState
}

func newPart(of string, g *policy.Group, r *policy.Rules) *part {
	p := &part{group: g, rules: r, budget: budget{of: of}}
	for i := range r.Topology {
		p.domains = append(p.domains, domains{Topology: &r.Topology[i], within: of, values: map[string]*budget{}})
	}
	return p
}

// add takes a node in: as capacity, and as one that uses budgets up.
func (p *part) add(n *fleet.Node, capacity, held, others bool, until time.Time) {
	p.members++
	p.count(&p.budget, n, capacity, held, others, until)
	for i := range p.domains {
		d := &p.domains[i]
		value := n.Label(d.Key)
		b := d.values[value]
		if b == nil {
			b = &budget{of: d.Key + "=" + value}
			if value == "" {
				b.of = "nodes without " + d.Key
			}
			if d.within != theFleet {
				b.of += " in " + d.within
			}
			d.values[value] = b
		}
		p.count(b, n, capacity, held, others, until)
	}
}

func (p *part) count(b *budget, n *fleet.Node, capacity, held, others bool, until time.Time) {
	if capacity {
		b.nodes++
	}
	if held || others {
		b.use(n.Name, held, until)
	}
}

// settle works the limits out, once all nodes are in.
func (p *part) settle(gone int) {
	p.limit, p.gone = p.rules.MaxUnavailable.Of(p.nodes), gone
	for i := range p.domains {
		d := &p.domains[i]
		for _, b := range d.values {
			b.limit, b.gone = d.MaxUnavailable.Of(b.nodes), gone
			d.tally(b, 1)
		}
	}
}

// take counts a node that is being taken into our hands; counted: it was out of service already.
func (p *part) take(n *fleet.Node, counted bool) {
	p.move(&p.budget, n, counted)
	for i := range p.domains {
		d := &p.domains[i]
		if b := d.of(n); b != nil {
			d.tally(b, -1)
			p.move(b, n, counted)
			d.tally(b, 1)
		}
	}
}

func (p *part) move(b *budget, n *fleet.Node, counted bool) {
	if !counted {
		b.use(n.Name, true, time.Time{})
		return
	}
	b.others--
	b.held++
	if i := slices.Index(b.names, n.Name); i >= 0 {
		b.theirs[i] = false
	}
}

// room says which budget of this part has no room for a node; a reason without a value: there is room.
func (p *part) room(n *fleet.Node, counted, slot bool) (plan.Reason, plan.Message) {
	if p.full(counted, slot) {
		return plan.ReasonUnavailableLimit, limited(&p.budget)
	}
	for i := range p.domains {
		d := &p.domains[i]
		b := d.of(n)
		if b == nil {
			continue
		}
		if d.MaxUnavailable.None() {
			return plan.ReasonPolicyPaused, noneOf(b.of)
		}
		if b.full(counted, slot) {
			return plan.ReasonUnavailableLimit, limited(b)
		}
		if d.full(b, counted, slot, p.gone) {
			s := plan.Say("{n} values of {s} may have nodes out of service at once, and these do: {holders}").Count(d.MaxDomains).With(d.Key)
			s = s.Holding(d)
			return plan.ReasonDomainLimit, s
		}
	}
	return "", plan.Message{}
}

// noneOf is what people read where a limit is 0.
func noneOf(what string) plan.Message {
	return plan.Say("{s} is paused: no node of it may be unavailable, maxUnavailable is 0").With(what)
}

func limited(b *budget) plan.Message {
	s := plan.Say("of {s} at most {n2} may be unavailable, and {n} are, or go next: {holders}").Count(b.used(), b.limit).With(b.of)
	return s.Holding(b)
}

const theFleet = "the fleet"
