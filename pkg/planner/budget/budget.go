package budget

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Claim is why a node uses room up.
type Claim struct {
	// Disrupted: the operator has taken it out of service, or is about to.
	Disrupted bool
	// Unreadable: that is assumed, since what the node shows of it can't be read and it holds no slot. It uses room up
	// and permits nothing: it doesn't begin its value of a label (S8).
	Unreadable bool
	// Away: it is out of service by another's doing, or not well by itself; until then, or for ever if that is zero.
	Away  bool
	Until time.Time
}

// maxNames is how many nodes a message names.
const maxNames = 3

// budget counts the nodes of one part of the fleet against one limit.
type budget struct {
	// of is what the limit is about: "the fleet", "group canary", "zone=a".
	of string
	// nodes is the capacity that a share is taken of; limit follows from it.
	nodes, limit int
	// disrupted were taken out of service by the operator, without the Lost ones that the limit leaves out; away are out
	// of service by another's.
	disrupted, away int
	// unreadable are those of the disrupted ones of which that is only assumed.
	unreadable int
	// gone are slots of nodes that are gone, or not seen yet: they may be of any part of the fleet.
	gone int
	// holders are the first of the nodes that use it up.
	holders []holder
}

type holder struct {
	name  string
	claim Claim
}

func (b *budget) used() int { return b.disrupted + b.gone + b.away }

// use counts a node that uses the budget up.
func (b *budget) use(name string, c Claim) {
	if c.Disrupted {
		b.disrupted++
		if c.Unreadable {
			b.unreadable++
		}
	} else {
		b.away++
	}
	if len(b.holders) < maxNames {
		b.holders = append(b.holders, holder{name, c})
	}
}

// takeOver counts a node that was away as one that the operator takes out of service.
func (b *budget) takeOver(name string) {
	b.away--
	b.disrupted++
	if i := slices.IndexFunc(b.holders, func(h holder) bool { return h.name == name }); i >= 0 {
		b.holders[i].claim.Disrupted = true
	}
}

// full reports whether a node may not be taken out of service. One that holds a slot is among those that are disrupted
// already, and one that is away among those: they take no second place. But of those that are disrupted there are never
// more than the limit (S1).
func (b *budget) full(away, slot bool) bool {
	used, disrupted := b.used(), b.disrupted+b.gone
	switch {
	case slot:
		used, disrupted = used-1, disrupted-1
	case away:
		used--
	}
	return used >= b.limit || disrupted >= b.limit
}

// String names the nodes that use the budget up.
func (b *budget) String() string {
	named := make([]string, len(b.holders))
	for i, h := range b.holders {
		switch named[i] = h.name; {
		case h.claim.Disrupted:
		case h.claim.Until.IsZero():
			named[i] += " (not by the operator)"
		default:
			named[i] += fmt.Sprintf(" (not by the operator; counts until it is back in service, or %s)", plan.Clock(h.claim.Until))
		}
	}
	more := ""
	if n := b.disrupted + b.away - len(b.holders); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	if b.gone > 0 {
		more += fmt.Sprintf("; %d hold a place and are gone", b.gone)
	}
	return strings.TrimPrefix(strings.Join(named, ", ")+more, "; ")
}

// refuse is what an administrator reads where the budget is full.
func (b *budget) refuse() plan.Refusal {
	return plan.Refuse(plan.ReasonUnavailableLimit,
		plan.Messagef("%s: %d of %d allowed nodes are out of service, or go next: %s", b.of, b.used(), b.limit, b).Dated())
}

// PausedBy is what an administrator reads where a limit is 0.
func PausedBy(of string) plan.Refusal {
	return plan.Refuse(plan.ReasonPolicyPaused, plan.Messagef("%s is paused: its maxUnavailable is 0", of))
}

func (b *budget) usage(rule policy.Limit) plan.Usage {
	return plan.Usage{Of: b.of, Rule: rule.String(), Limit: b.limit, Used: b.used(), Disrupted: b.disrupted, ByOthers: b.away}
}
