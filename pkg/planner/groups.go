package planner

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// judgeGroup finds out what the policy says of a group now.
func (p *planner) judgeGroup(g *group) {
	pause := check.Pause(&p.set, g.policy)
	rules := g.scope.Rules()
	g.Group = check.Group{Paused: check.Paused(&p.set, g.policy, g.budgets...), Returns: pause != nil && pause.InFlight == policy.Return,
		ReturnsWhenClosed: rules.WhenClosed == policy.Return}
	if g.policy == nil {
		g.Ungrouped = check.Ungrouped(&p.set)
	}
	var window *check.Window
	g.Window = func() *check.Window {
		if window == nil {
			window = check.WindowAt(rules, p.Now, func() time.Duration { return p.takes(rules) })
		}
		return window
	}
}

// takes is how long an update of a node with these rules takes: as long as the fleet's nodes were away when they were
// updated last, and the soak of these rules. More than the deadlines allow is no measure.
func (p *planner) takes(r *policy.Rules) time.Duration {
	hooks := policy.LongestHook(r.Hooks.AfterDrain) + policy.LongestHook(r.Hooks.BeforeUncordon)
	most := r.LongestDrain() + p.set.Deadlines.Reboot + p.set.Deadlines.Return + r.Volumes.Wait + hooks
	if len(r.Verify.Pods) > 0 {
		most += r.Verify.Deadline
	}
	return min(p.typical(), most) + r.Soak
}

// typical is how long nine of ten nodes took, from the cordon to the beginning of the soak, when they were updated
// last; 0 if none was yet.
func (p *planner) typical() time.Duration {
	if p.typically == nil {
		p.typically = new(p.measure())
	}
	return *p.typically
}

func (p *planner) measure() time.Duration {
	took := make([]time.Duration, 0, len(p.members))
	for i := range p.members {
		m := &p.members[i]
		if d := lastUpdate(m.Marks.History); d > 0 {
			took = append(took, max(d-m.Rules.Soak, 0))
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[(len(took)*9-1)/10]
}

func lastUpdate(h []marker.Attempt) time.Duration {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].Outcome == marker.OutcomeUpdated {
			return h[i].Ended.Sub(h[i].Started)
		}
	}
	return 0
}

// wave is what the answer of the groups that go first depends on.
type wave struct {
	group   *group
	version string
	down    bool
}

// goesFirst says which group, and which node in it, a node waits for.
func (p *planner) goesFirst(m *member, version string) plan.Refusal {
	if m.group.policy == nil {
		return plan.Refusal{}
	}
	w := wave{m.group, version, marker.CompareVersions(version, m.Marks.Report.Current) < 0}
	r, known := p.waves[w]
	if !known {
		r = p.heldUp(w)
		p.waves[w] = r
	}
	return r
}

func (p *planner) heldUp(w wave) plan.Refusal {
	since, seen := p.FirstSeen[seenAs(w.version)]
	question := &check.Wave{Version: w.version, Down: w.down, Soak: w.group.policy.AfterSoak, Seen: seen, Since: since}
	for _, name := range w.group.policy.After {
		for _, before := range p.groups {
			if before.policy.Name != name {
				continue
			}
			if r := p.holdsUp(before, question); r.Refuses() {
				return r
			}
		}
	}
	return plan.Refusal{}
}

// holdsUp says why a group that goes first holds the others up. One without nodes shows nothing of a version.
func (p *planner) holdsUp(before *group, w *check.Wave) plan.Refusal {
	asked, others := 0, 0
	for i := range p.members {
		m := &p.members[i]
		if m.group != before || m.Leaving != "" || m.Fresh() {
			continue
		}
		runs, concerned := p.runs(m, w.Version)
		if !concerned {
			others++
			continue
		}
		asked++
		if r := w.HeldUp(&m.View, runs, before.policy.Name); r.Refuses() {
			return r
		}
	}
	// A plan says itself which nodes it is for.
	if asked == 0 && !(others > 0 && marker.PlanOf(w.Version) != "") {
		return check.NoNode(before.policy.Name, before.scope.Members(), others > 0)
	}
	return plan.Refusal{}
}
