package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// Show returns the plan with what is shown of it and a pass has no use for: every limit with what uses it up,
// the groups, the versions and which are proven, and of each node its group, what it is offered, and when it could be
// taken out of service.
func Show(s fleet.Snapshot, set policy.Settings) plan.Plan {
	out := Plan(s, set)
	p := newPlanner(s, set)
	out.Time, out.Budgets = s.Now.UTC().Truncate(time.Second), p.budgets()
	out.Versions, out.VersionsLeftOut = p.shownVersions()
	out.Proofs = p.proofs()
	// For programs that read JSON nothing is a list too.
	out.Steps = append([]plan.Step{}, out.Steps...)
	s.Nodes, _ = withWishes(&s, &set)
	nodes := make(map[string]*fleet.Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	groups := make(map[string]*shownGroup, len(set.Groups)+1)
	for i := range set.Groups {
		g := &set.Groups[i]
		shown := newShownGroup(s.Now, &set, &g.Rules)
		shown.Name, shown.After, shown.AfterSoak = g.Name, g.After, plain.Duration(g.AfterSoak)
		groups[g.Name] = shown
	}
	groups[""] = newShownGroup(s.Now, &set, &set.Rules)
	for i := range out.Nodes {
		d := &out.Nodes[i]
		n := nodes[d.Node]
		d.Group = set.GroupOf(n.Labels)
		if d.Target == "" {
			d.Target = d.Goes(&n.Marks)
		}
		g := groups[d.Group]
		g.count(d)
		if !d.Starts() && d.Target != "" && !n.Disrupted() {
			d.NotBefore = g.opening(d.NotBefore)
		}
	}
	for i := range set.Groups {
		out.Groups = append(out.Groups, groups[set.Groups[i].Name].Group)
	}
	out.Groups = append(out.Groups, groups[""].Group)
	return out
}

// shownVersions returns what each version is in the fleet, and how many are left out. Nothing of it is asked by what
// decides.
func (p *planner) shownVersions() (versions []plan.Version, leftOut int) {
	nodes := make([]*fleet.Node, len(p.members))
	for i := range p.members {
		nodes[i] = p.members[i].Node
	}
	versions, leftOut = plan.VersionsOf(nodes, p.FirstSeen, p.Now)
	for i := range versions {
		v := &versions[i]
		judged := p.version(p.fleet.scope.Rules(), v.Version)
		v.Failed, v.Target = new(p.failed[v.Version]), &plan.Target{Allowed: true}
		for _, r := range []plan.Refusal{check.NoPolicy(&p.Snapshot), judged.Denied, judged.Young} {
			if r.Refuses() {
				v.Target = &plan.Target{Reason: r.Reason, Message: r.Message, NotBefore: r.Again}
				break
			}
		}
	}
	return versions, leftOut
}

// shownGroup is a group whose nodes are being counted.
type shownGroup struct {
	plan.Group
	calendar window.Calendar
	now      time.Time
	// openings are when the window is open again, by the times that were asked for.
	openings map[time.Time]time.Time
}

func newShownGroup(now time.Time, set *policy.Settings, r *policy.Rules) *shownGroup {
	g := &shownGroup{Group: plan.Group{Window: shownWindow(r.Calendar, now)}, calendar: r.Calendar, now: now, openings: map[time.Time]time.Time{}}
	for _, pause := range []*policy.Pause{r.Pause, set.Pause} {
		if pause != nil {
			g.Paused = &pause.Reason
		}
	}
	return g
}

func (g *shownGroup) count(d *plan.Decision) {
	g.Nodes++
	switch {
	case d.Starts():
		g.Starting++
	case d.Phase == intent.PhaseUpToDate:
		g.UpToDate++
	case d.Phase == intent.PhaseWaiting || d.Phase == intent.PhaseNew || d.Phase == intent.PhaseUnreadable:
		g.Waiting++
	default:
		g.InProgress++
	}
}

// opening is the first moment from t on at which the window is open; zero if that is now, or never.
func (g *shownGroup) opening(t time.Time) time.Time {
	at, known := g.openings[t]
	if !known {
		from := t
		if at = t; from.Before(g.now) {
			at, from = time.Time{}, g.now
		}
		if s := g.calendar.At(from); !s.Open {
			at = s.Opens
		}
		g.openings[t] = at
	}
	return at
}

func shownWindow(c window.Calendar, now time.Time) plan.Window {
	s := c.At(now)
	w := plan.Window{Open: s.Open, Opens: s.Opens, Closes: s.Ends}
	switch {
	case s.Cause == window.CauseFrozen:
		w.Frozen = &s.Freeze.Reason
		fallthrough
	case !s.Open:
		if !s.Opens.IsZero() {
			w.Closes = c.At(s.Opens).Ends
		}
	case !s.Ends.IsZero():
		w.Opens = c.At(s.Ends).Opens
	}
	return w
}
