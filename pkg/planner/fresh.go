package planner

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
)

// proveFresh finds out, for nodes that have no workloads yet, which version their groups have proven.
func (p *planner) proveFresh() {
	proven := map[*group]string{}
	for i := range p.members {
		m := &p.members[i]
		if !m.Fresh() {
			continue
		}
		version, known := proven[m.group]
		if !known {
			version = p.provenIn(m.group)
			proven[m.group] = version
		}
		m.Proven = version
	}
}

// provenIn returns the highest version that the policy lets a group go to, that failed on no node, and that a node of
// the group has run for its soak, by kubelet and agent; empty if there is none.
func (p *planner) provenIn(g *group) string {
	best := ""
	for i := range p.members {
		m := &p.members[i]
		version := m.OSVersion
		if m.group != g || m.FreshTaint || m.Wish != nil || !m.Labelled() || version == "" || best != "" && marker.CompareVersions(version, best) <= 0 {
			continue
		}
		if r := &m.Marks.Report; r.Current == version && r.BootID == m.BootID && p.failed[version] == 0 && !p.aims(g, version).Refuses() && p.soaked(m, version) {
			best = version
		}
	}
	return best
}

// aims is why nodes of a group may not go to a version.
func (p *planner) aims(g *group, version string) plan.Refusal {
	v := p.version(g.scope.Rules(), version)
	if v.Denied.Refuses() {
		return v.Denied
	}
	return v.Young
}

// soaked reports whether a node is in service with the version it runs, and has been for its soak.
func (p *planner) soaked(m *member, version string) bool {
	since, seen := p.FirstSeen[version]
	w := &check.Wave{Version: version, Soak: m.Rules.Soak, Seen: seen, Since: since}
	return !w.HeldUp(&m.View, version, "").Refuses()
}
