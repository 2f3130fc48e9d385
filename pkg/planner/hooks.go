package planner

import (
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// What a hook-id begins with.
const (
	afterDrain     = "after-drain."
	beforeUncordon = "before-uncordon."
)

// unanswered returns the first hook that is still waited for, and the first that must not be waited for any longer
// and may not be ignored; nil if there is none. Hooks that weren't asked yet are both waited for and in time.
func (p *planner) unanswered(n *fleet.Node, hooks []policy.Hook) (waiting, late *policy.Hook) {
	asked := n.Marks.Disruption.Asked
	for i := range hooks {
		h := &hooks[i]
		switch {
		case asked == nil:
			return h, nil
		case slices.Contains(n.HooksAnswered, h.Annotation):
		case !p.past(n, *asked, h.Timeout):
			if waiting == nil {
				waiting = h
			}
		case h.OnTimeout == policy.Abort && late == nil:
			late = h
		}
	}
	return waiting, late
}

// hooked settles a node that hooks of a stage hold up; false: nothing does.
func (p *planner) hooked(n *fleet.Node, phase intent.Phase, stage string, hooks []policy.Hook) bool {
	if len(hooks) == 0 {
		return false
	}
	if !strings.HasPrefix(n.Marks.HookID, stage) || n.Marks.Disruption.Asked == nil {
		c := keep(n)
		at := p.Now.Truncate(time.Millisecond)
		c.Marks.HookID, c.Marks.Disruption.Asked = stage+newID(n, p.Now), &at
		message := awaited(&hooks[0], at).String()
		c.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonHookAwaited), Message: marker.Clip(message, marker.MaxMessage)}
		p.step(n, phase, intent.ActNote, plan.ReasonHookAwaited, message, c)
		return true
	}
	waiting, late := p.unanswered(n, hooks)
	switch {
	case late != nil && stage == afterDrain:
		p.giveBack(n, phase, plan.ReasonHookFailed, silent(late), true)
	case late != nil:
		p.wait(n, intent.PhaseLost, plan.ReasonLost, plan.Say("{s} is well, but {s2}; it stays cordoned until that answers, or the node is deleted or its label removed").
			With(n.Name, silent(late)))
	case waiting != nil:
		p.wait(n, phase, plan.ReasonHookAwaited, awaited(waiting, *n.Marks.Disruption.Asked))
	default:
		return false
	}
	return true
}

func awaited(h *policy.Hook, since time.Time) plan.Message {
	return plan.Say("hook {s} is awaited since {t}: the annotation {s2} is to have the value of {s3}").With(h.Name, h.Annotation, string(marker.KeyHookID)).
		At(since).Over(since.Add(h.Timeout)).Naming()
}

func silent(h *policy.Hook) string {
	return "hook " + h.Name + " has not answered within " + h.Timeout.String()
}

// hookLate tells if a node that is well must not be uncordoned, because a hook was silent for too long.
func (p *planner) hookLate(n *fleet.Node) bool {
	if !strings.HasPrefix(n.Marks.HookID, beforeUncordon) || n.Marks.Disruption.Asked == nil {
		return false
	}
	_, late := p.unanswered(n, p.place(n).rules.Hooks.BeforeUncordon)
	return late != nil
}

// unhook ends what is asked of hooks.
func (c *change) unhook() {
	c.Marks.HookID = ""
	if c.Marks.Disruption != nil {
		c.Marks.Disruption.Asked = nil
	}
}
