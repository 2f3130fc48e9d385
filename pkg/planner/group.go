package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
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

// wave is a group's question for a version: do the groups before it have it?
type wave struct {
	group   *part
	version string
	// down: it is lower than what the asking node runs, so who runs more doesn't have it.
	down bool
}

// afterOthers says which group, and which node in it, a node waits for.
func (p *planner) afterOthers(q question) verdict {
	if q.part.group == nil || len(q.part.group.After) == 0 {
		return verdict{}
	}
	key := wave{q.part, q.version, p.compare(q.version, q.current) < 0}
	v, known := p.waves[key]
	if !known {
		v = p.judgeWave(key)
		p.waves[key] = v
	}
	return v
}

func (p *planner) judgeWave(w wave) verdict {
	for _, name := range w.group.group.After {
		for _, before := range p.groups {
			if before.group.Name != name {
				continue
			}
			if v := p.hasAll(w, before); v.reason != "" {
				return v
			}
		}
	}
	return verdict{}
}

// hasAll says why a group that goes first holds the others up. One without nodes shows nothing of a version.
func (p *planner) hasAll(w wave, before *part) verdict {
	name, asked := before.group.Name, 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !p.ours(n) || p.place(n) != before || n.Leaving != "" {
			continue
		}
		asked++
		if v := p.hasSoaked(n, w, name); v.reason != "" {
			return v
		}
	}
	switch {
	case before.members == 0:
		return verdict{plan.ReasonAfterGroup, plan.Say("group {s} goes first, and no node is in it").With(name).Aging()}
	case asked == 0:
		return verdict{plan.ReasonAfterGroup, plan.Say("group {s} goes first, and all of its nodes are on their way out of the cluster").With(name).Aging()}
	}
	return verdict{}
}

// hasSoaked says why a node of a group that goes first holds the others up. What a node runs is its kubelet's word: what
// an agent says moves nothing but its own node.
func (p *planner) hasSoaked(n *fleet.Node, w wave, name string) verdict {
	m := &n.Marks
	has := func(version string) bool {
		c := marker.CompareVersions(version, w.version)
		return c == 0 || c > 0 && !w.down
	}
	switch {
	case n.OSVersion != m.Report.Current && m.Report.Current != "" && has(m.Report.Current) && !has(n.OSVersion):
		return verdict{plan.ReasonAfterGroup, plan.Say("group {s} goes first, and only its agent, not its kubelet, says that {s2} in it runs {s3}").With(name, n.Name, w.version).Aging()}
	case len(n.Problems) > 0 || !has(n.OSVersion):
		return verdict{plan.ReasonAfterGroup, plan.Say("group {s} goes first, and {s2} in it does not run {s3} yet").With(name, n.Name, w.version).Aging()}
	case n.Disrupted() || n.Phase() == intent.PhaseResetting || !n.Ready:
		return verdict{plan.ReasonAfterGroup, plan.Say("group {s} goes first, and {s2} in it is not back in service with {s3} yet").With(name, n.Name, w.version).Aging()}
	}
	if end := p.hasSince(n, w, has).Add(w.group.group.AfterSoak); p.Now.Before(end) {
		p.wakeAt(end)
		return verdict{plan.ReasonAfterGroup, plan.Say("group {s} goes first, and {s2} in it must run {s3} until {t}").With(name, n.Name, w.version).At(end).Over(end).Aging()}
	}
	return verdict{}
}

// hasSince is since when a node has a version: by its history, and where that doesn't tell, as for one that joined
// with it, not before the node was there or anybody here knew of the version.
func (p *planner) hasSince(n *fleet.Node, w wave, has func(string) bool) time.Time {
	for i := len(n.Marks.History) - 1; i >= 0; i-- {
		if a := &n.Marks.History[i]; a.Outcome == marker.OutcomeUpdated && has(a.Version) && !a.Ended.After(p.Now.Add(p.set.RetryMax)) {
			return a.Ended
		}
	}
	since, known := p.Seen[w.version]
	if !known || since.After(p.Now) {
		since = p.Now
	}
	if n.Created.After(since) && !n.Created.After(p.Now) {
		since = n.Created
	}
	return since
}
