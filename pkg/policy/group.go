package policy

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// place returns the part that a node is in: the first group that chooses it, or what is in no group.
func (p *planner) place(n *fleet.Node) *part {
	for _, g := range p.groups {
		if g.group.Selector.Matches(n.Labels) {
			return g
		}
	}
	return p.rest
}

// GroupOf names the group that has a node with these labels: the first that chooses it; empty if none does.
func (s Settings) GroupOf(labels map[string]string) string {
	for i := range s.Groups {
		if s.Groups[i].Selector.Matches(labels) {
			return s.Groups[i].Name
		}
	}
	return ""
}

// wave is a group's question for a version: do the groups before it have it?
type wave struct {
	group   *part
	version string
}

// afterOthers says which group, and which node in it, a group waits for.
func (p *planner) afterOthers(g *part, version string) verdict {
	if g.group == nil || len(g.group.After) == 0 {
		return verdict{}
	}
	key := wave{g, version}
	v, known := p.waves[key]
	if !known {
		v = p.judgeWave(g, version)
		p.waves[key] = v
	}
	return v
}

func (p *planner) judgeWave(g *part, version string) verdict {
	for _, name := range g.group.After {
		for _, before := range p.groups {
			if before.group.Name != name {
				continue
			}
			if before.members == 0 {
				return verdict{ReasonAfterGroup, say("group {s} goes first, and no node is in it: its selector chooses none").with(name)}
			}
			for i := range p.Nodes {
				n := &p.Nodes[i]
				if !p.ours(n) || p.place(n) != before || n.Leaving != "" {
					continue
				}
				if v := p.hasSoaked(n, g.group, name, version); v.reason != "" {
					return v
				}
			}
		}
	}
	return verdict{}
}

// hasSoaked says why a node of a group that goes first holds the others up.
func (p *planner) hasSoaked(n *fleet.Node, g *Group, name, version string) verdict {
	m := &n.Marks
	switch {
	case len(n.Problems) > 0 || m.Report.Current == "" || marker.CompareVersions(m.Report.Current, version) < 0:
		return verdict{ReasonAfterGroup, say("group {s} goes first, and {s2} in it does not run {s3} yet").with(name, n.Name, version)}
	case n.Disrupted() || n.Phase() == intent.PhaseResetting || !n.Ready:
		return verdict{ReasonAfterGroup, say("group {s} goes first, and {s2} in it is not back in service with {s3} yet").with(name, n.Name, version)}
	}
	for i := len(m.History) - 1; i >= 0; i-- {
		a := &m.History[i]
		if a.Outcome != marker.OutcomeUpdated || marker.CompareVersions(a.Version, version) < 0 {
			continue
		}
		if end := a.Ended.Add(g.AfterSoak); p.Now.Before(end) && !a.Ended.After(p.Now.Add(p.set.RetryMax)) {
			p.wakeAt(end)
			return verdict{ReasonAfterGroup, say("group {s} goes first, and {s2} in it must run {s3} until {t}").with(name, n.Name, version).at(end).over(end)}
		}
		break
	}
	return verdict{}
}
