package policy

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// Usage is how much of one limit is used.
type Usage struct {
	// Of says what the limit is about: "the fleet", "group canary", "zone=a", "staging".
	Of string `json:"of"`
	// Rule is the limit as the policy has it, and Limit what that comes to.
	Rule  string `json:"rule"`
	Limit int    `json:"limit"`
	// Used is the sum of those in the operator's hands and, if the policy counts them, of those that others took out
	// of service.
	Used    int `json:"used"`
	InHands int `json:"inHands"`
	Others  int `json:"others"`
}

// Budgets tells of every limit that the settings set how much of it is used before anything else starts: the fleet's,
// its topologies', those of each group, and the one on staging.
func Budgets(s fleet.Snapshot, set Settings) []Usage {
	p := newPlanner(s, set)
	p.count()
	var all []Usage
	for _, g := range append([]*part{p.fleet}, p.groups...) {
		all = append(all, g.usage()...)
	}
	return append(all, Usage{Of: "staging", Rule: Count(set.MaxStaging).String(), Limit: set.MaxStaging, Used: p.staging, InHands: p.staging})
}

func (p *part) usage() []Usage {
	var all []Usage
	// No limit is a limit for the fleet alone, which has places for so many.
	if p.group == nil || p.rules.MaxUnavailable != Unlimited {
		all = append(all, p.budget.usage(p.rules.MaxUnavailable))
	}
	for i := range p.domains {
		d := &p.domains[i]
		if d.MaxDomains > 0 {
			of := "values of " + d.Key
			if d.within != theFleet {
				of += " in " + d.within
			}
			all = append(all, Usage{Of: of, Rule: Count(d.MaxDomains).String(), Limit: d.MaxDomains, Used: d.out, InHands: d.ours, Others: d.out - d.ours})
		}
		if d.MaxUnavailable == Unlimited {
			continue
		}
		for _, value := range slices.Sorted(maps.Keys(d.values)) {
			all = append(all, d.values[value].usage(d.MaxUnavailable))
		}
	}
	return all
}

func (b *budget) usage(rule Limit) Usage {
	return Usage{Of: b.of, Rule: rule.String(), Limit: b.limit, Used: b.used(), InHands: b.held, Others: b.others}
}
