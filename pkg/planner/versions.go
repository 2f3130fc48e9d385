package planner

import (
	"maps"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// aim is a version as the target of a group's nodes.
type aim struct {
	rules   *policy.Rules
	version string
}

// version says what the policy says of a version as the target of nodes with these rules.
func (p *planner) version(rules *policy.Rules, version string) *check.Version {
	at := aim{rules, version}
	v := p.versions[at]
	if v == nil {
		known := check.Known{Failed: p.failed[version], Limit: p.failedLimit(), Acknowledged: p.Acknowledged[version]}
		seen := seenAs(version)
		known.Since, known.Seen = p.FirstSeen[seen]
		known.Named = p.names.count[seen] != nil
		known.Witnessed = !known.Seen && p.witnessed(seen)
		v = check.Judge(version, versionsOf(version, &p.set, rules), known, p.Now)
		p.versions[at] = v
	}
	return v
}

// seenAs is how a version's age is kept: a plan's target doesn't get younger by a change of its template.
func seenAs(version string) string {
	if target := marker.PlanTargetOf(version); target != "" && target != marker.ContentTarget {
		return marker.PlanVersion(marker.PlanOf(version), target, "")
	}
	return version
}

// failedLimit is on how many nodes a version fails before nothing starts for it.
func (p *planner) failedLimit() int { return p.set.MaxFailed.Of(p.fleet.scope.Nodes()) }

// stopVersions names all versions that failed on too many nodes and that some node would go to.
func (p *planner) stopVersions() {
	limit := p.failedLimit()
	for _, version := range slices.Sorted(maps.Keys(p.failed)) {
		if failed := p.failed[version]; failed >= limit && !p.Acknowledged[version] && p.wanted(version) {
			p.out.Stopped = append(p.out.Stopped, plan.StoppedVersion{Version: version, Message: check.Stop(version, failed, limit)})
		}
	}
}

// wanted reports whether some node is offered a version that it doesn't run, or is on its way to it.
func (p *planner) wanted(version string) bool {
	return slices.ContainsFunc(p.members, func(m member) bool {
		return m.Labelled() && m.Marks.Report.Current != version && (m.Marks.Report.Available == version || m.Marks.Intent.Target == version)
	})
}

// witnesses are how many nodes must name a version before its age begins, so that one false report begins none.
const witnesses = 2

// names counts the nodes that name a version: their agents report that it is offered, or their kubelets that it runs.
type names struct {
	count map[string]*int
	// last is the version that was counted last, and at its count: most nodes name the same.
	last string
	at   *int
}

func (n *names) add(version string) {
	if version == "" {
		return
	}
	if version != n.last || n.at == nil {
		n.last, n.at = version, n.count[version]
		if n.at == nil {
			n.at = new(int)
			n.count[version] = n.at
		}
	}
	*n.at++
}

// see notes the versions whose age begins with this plan.
func (p *planner) see() {
	if p.SlotsProblem != "" {
		return
	}
	for version := range p.names.count {
		if _, seen := p.FirstSeen[version]; !seen && p.witnessed(version) {
			p.out.Saw = append(p.out.Saw, version)
		}
	}
	if len(p.out.Saw) > 0 {
		slices.Sort(p.out.Saw)
		p.out.Named = slices.Sorted(maps.Keys(p.names.count))
	}
}

// witnessed reports whether enough nodes name a version. One is enough where no other could go to it: then it
// moves that one alone.
func (p *planner) witnessed(version string) bool {
	count := p.names.count[version]
	if count == nil {
		return false
	}
	// The policy itself names the target of a plan.
	if *count >= witnesses || marker.PlanOf(version) != "" {
		return true
	}
	could := 0
	for i := range p.members {
		m := &p.members[i]
		if c := marker.CompareVersions(version, m.OSVersion); m.Labelled() && m.Wish == nil && m.Leaving == "" && (c > 0 || c < 0 && m.Rules.Versions.Downgrade) {
			could++
		}
	}
	return could <= 1
}
