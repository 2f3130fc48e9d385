package policy

import (
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
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
		w.disrupt = verdict{ReasonFrozen, say("frozen until {t}: {s}").at(w.Freeze.To).with(orNoReason(w.Freeze.Reason)).over(w.Opens)}
		w.stage = w.disrupt
		if g.rules.StageOutside {
			w.stage.sentence = w.stage.sentence.over(w.Freeze.To)
		}
		p.wakeAt(w.Freeze.To)
	case !w.Open && w.Opens.IsZero():
		w.disrupt = verdict{ReasonWindowClosed, say("the window is closed, and does not open again in years")}
	case !w.Open:
		w.disrupt = verdict{ReasonWindowClosed, say("the window opens {t}").at(w.Opens).over(w.Opens)}
		p.wakeAt(w.Opens)
	case !w.Ends.IsZero():
		p.wakeAt(w.Ends)
		if g.rules.FitWindow {
			if takes := p.typical(); p.Now.Add(takes).After(w.Ends) {
				w.disrupt = verdict{ReasonWindowTooShort, say("the window closes {t}, and an update takes {d} here").
					at(w.Ends).lasting(takes).over(c.At(w.Ends).Opens)}
			}
		}
	}
	if w.stage.reason == "" && !w.Open && !g.rules.StageOutside {
		w.stage = w.disrupt
	}
	return w
}

// typical is how long nine of ten nodes took, from the cordon to the end of the soak, when they were updated last;
// 0 if none was yet.
func (p *planner) typical() time.Duration {
	if p.typically >= 0 {
		return p.typically
	}
	var took []time.Duration
	for i := range p.Nodes {
		if d := lastUpdate(&p.Nodes[i]); d > 0 {
			took = append(took, d)
		}
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

// paused says why a part is paused: the fleet's own word first.
func (p *planner) paused(g *part) *Pause {
	if p.set.Pause != nil {
		return p.set.Pause
	}
	if g.group != nil {
		return g.group.Pause
	}
	return nil
}
