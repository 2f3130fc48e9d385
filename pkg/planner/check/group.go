package check

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/budget"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Group is what holds for every node of a group, or for those in none.
type Group struct {
	// Paused is why the policy pauses it, and Returns: what is in flight is returned.
	Paused  plan.Refusal
	Returns bool
	// Ungrouped is why nodes in no group wait.
	Ungrouped plan.Refusal
	// Window is its calendar now.
	Window func() *Window
	// ReturnsWhenClosed: what has not begun to reboot is returned when the window closes.
	ReturnsWhenClosed bool
}

// Recall says why the policy, as it is now, returns a node of the group that is out of service and has not begun to
// reboot. A version that is too young by now is no cause: it was old enough when the node was taken.
func (g *Group) Recall(f *Fleet, noPolicy bool, lower plan.Refusal, v *Version) plan.Refusal {
	if r := g.recall(f, noPolicy, lower, v); r.Refuses() {
		return r
	}
	w := g.Window()
	if !w.Open && g.ReturnsWhenClosed {
		return w.Disrupt
	}
	return plan.Refusal{Again: w.Again}
}

// RecallFresh is Recall for a node that has no workloads yet: no window returns it, but a freeze.
func (g *Group) RecallFresh(f *Fleet, noPolicy bool, lower plan.Refusal, v *Version) plan.Refusal {
	if r := g.recall(f, noPolicy, lower, v); r.Refuses() {
		return r
	}
	if w := g.Window(); w.Disrupt.Reason == plan.ReasonFrozen && g.ReturnsWhenClosed {
		return w.Disrupt
	}
	return plan.Refusal{}
}

func (g *Group) recall(f *Fleet, noPolicy bool, lower plan.Refusal, v *Version) plan.Refusal {
	switch {
	case noPolicy:
		return f.Stopped
	case lower.Refuses():
		return lower
	case v.Denied.Refuses():
		return v.Denied
	case g.Returns:
		return g.Paused
	}
	return plan.Refusal{}
}

// Pause returns the pause that holds for a group: the fleet's first, unless the group's uncordons more. It is nil
// if there is none.
func Pause(set *policy.Settings, g *policy.Group) *policy.Pause {
	if g == nil || g.Pause == nil || set.Pause != nil && g.Pause.InFlight != policy.Return {
		return set.Pause
	}
	return g.Pause
}

// Paused says why the fleet, or a group of it, is paused. scopes are the fleet's and the group's.
func Paused(set *policy.Settings, g *policy.Group, scopes ...*budget.Scope) plan.Refusal {
	if pause := Pause(set, g); pause != nil {
		of := scopes[0]
		if pause != set.Pause {
			of = scopes[1]
		}
		reason := pause.Reason
		if reason == "" {
			reason = "no reason given"
		}
		return plan.Refuse(plan.ReasonPolicyPaused, plan.Messagef("%s is paused: %s", of.Of(), reason).Dated())
	}
	for _, s := range scopes {
		if s.Rules().MaxUnavailable.None() {
			return budget.PausedBy(s.Of())
		}
	}
	return plan.Refusal{}
}
