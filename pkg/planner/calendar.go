package planner

import (
	"math"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// windowState is a part's calendar now.
type windowState struct {
	window.State
	// disrupt and stage are why neither may start.
	disrupt, stage verdict
}

// windowOf looks at a part's calendar, once in a plan.
func (p *planner) windowOf(g *part) *windowState {
	if g.window != nil {
		return g.window
	}
	c := g.rules.Calendar
	w := &windowState{State: c.At(p.Now)}
	g.window = w
	switch {
	case w.Cause == window.CauseFrozen:
		w.disrupt = verdict{plan.ReasonFrozen, plan.Say("frozen until {t}: {s}").At(w.Freeze.To).With(orNoReason(w.Freeze.Reason)).Over(w.Opens)}
		w.stage = w.disrupt
		if g.rules.StageOutside {
			w.stage.sentence = w.stage.sentence.Over(w.Freeze.To)
		}
		p.wakeAt(w.Freeze.To)
	case !w.Open && w.Opens.IsZero():
		w.disrupt = verdict{plan.ReasonWindowClosed, plan.Say("the window is closed, and does not open again in years")}
	case !w.Open:
		w.disrupt = verdict{plan.ReasonWindowClosed, plan.Say("the window opens {t}").At(w.Opens).Over(w.Opens)}
		p.wakeAt(w.Opens)
	case !w.Ends.IsZero():
		p.wakeAt(w.Ends)
		if g.rules.FitWindow {
			// What no window is long enough for would never start: it does, and the plan warns of it.
			if takes := p.takes(g, w.Ends.Sub(p.Now)); takes > w.Ends.Sub(p.Now) && takes < longest(c) {
				w.disrupt = verdict{plan.ReasonWindowTooShort, plan.Say("the window closes {t}, and an update takes {d} here").
					At(w.Ends).Lasting(takes).Over(c.At(w.Ends).Opens)}
			}
		}
	}
	if w.stage.reason == "" && !w.Open && !g.rules.StageOutside {
		w.stage = w.disrupt
	}
	return w
}

// longest is how long a window of the calendar is open; without a window it is open for ever.
func longest(c window.Calendar) time.Duration {
	if len(c.Windows) == 0 {
		return math.MaxInt64
	}
	var d time.Duration
	for _, w := range c.Windows {
		d = max(d, w.Duration)
	}
	return d
}

// takes is how long an update of a node in this part takes: as long as the fleet's nodes were away when they were
// updated last, and the soak of this part. More than the deadlines allow is no measure, and where even that is within
// enough nobody measures.
func (p *planner) takes(g *part, enough time.Duration) time.Duration {
	hooks := policy.LongestHook(g.rules.Hooks.AfterDrain) + policy.LongestHook(g.rules.Hooks.BeforeUncordon)
	most, soak := g.rules.LongestDrain()+p.set.Deadlines.Reboot+p.set.Deadlines.Return+g.rules.Volumes.Wait+hooks, g.rules.Soak
	if len(g.rules.Verify.Pods) > 0 {
		most += g.rules.Verify.Deadline
	}
	if most+soak <= enough {
		return most + soak
	}
	return min(p.typical(), most) + soak
}

// typical is how long nine of ten nodes took, from the cordon to the beginning of the soak, when they were updated
// last; 0 if none was yet.
func (p *planner) typical() time.Duration {
	if p.typically >= 0 {
		return p.typically
	}
	at, took := 0, make([]time.Duration, 0, len(p.places))
	for i := range p.Nodes {
		if !p.ours(&p.Nodes[i]) {
			continue
		}
		if d := lastUpdate(&p.Nodes[i]); d > 0 {
			took = append(took, max(d-p.places[at].rules.Soak, 0))
		}
		at++
	}
	p.typically = 0
	if len(took) > 0 {
		slices.Sort(took)
		p.typically = took[(len(took)*9-1)/10]
	}
	return p.typically
}

func lastUpdate(n *fleet.Node) time.Duration {
	for i := len(n.Marks.History) - 1; i >= 0; i-- {
		if a := &n.Marks.History[i]; a.Outcome == marker.OutcomeUpdated {
			return a.Ended.Sub(a.Started)
		}
	}
	return 0
}

// paused says why a part is paused: the fleet's own word first, unless the group's gives more back.
func (p *planner) paused(g *part) *policy.Pause {
	everywhere := p.set.Pause
	if g.group == nil || g.group.Pause == nil || everywhere != nil && g.group.Pause.InFlight != policy.Return {
		return everywhere
	}
	return g.group.Pause
}
