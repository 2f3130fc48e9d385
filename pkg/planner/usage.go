package planner

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Budgets tells of every limit that the settings set how much of it is used before anything else starts: the fleet's,
// its topologies', those of each group, and the one on staging.
func Budgets(s fleet.Snapshot, set policy.Settings) []plan.Usage {
	p := newPlanner(s, set)
	p.count()
	var all []plan.Usage
	for _, g := range append([]*part{p.fleet}, p.groups...) {
		all = append(all, g.usage()...)
	}
	return append(all, plan.Usage{Of: "staging", Rule: policy.Count(set.MaxStaging).String(), Limit: set.MaxStaging, Used: p.staging, InHands: p.staging})
}

func (p *part) usage() []plan.Usage {
	var all []plan.Usage
	// No limit is a limit for the fleet alone, which has places for so many.
	if p.group == nil || p.rules.MaxUnavailable != policy.Unlimited {
		all = append(all, p.budget.usage(p.rules.MaxUnavailable))
	}
	for i := range p.domains {
		d := &p.domains[i]
		if d.MaxDomains > 0 {
			of := "values of " + d.Key
			if d.within != theFleet {
				of += " in " + d.within
			}
			all = append(all, plan.Usage{Of: of, Rule: policy.Count(d.MaxDomains).String(), Limit: d.MaxDomains, Used: d.out, InHands: d.ours, Others: d.out - d.ours})
		}
		if d.MaxUnavailable == policy.Unlimited {
			continue
		}
		for _, value := range slices.Sorted(maps.Keys(d.values)) {
			all = append(all, d.values[value].usage(d.MaxUnavailable))
		}
	}
	return all
}

func (b *budget) usage(rule policy.Limit) plan.Usage {
	return plan.Usage{Of: b.of, Rule: rule.String(), Limit: b.limit, Used: b.used(), InHands: b.held, Others: b.others}
}
