package lifecycle

import (
	"slices"
	"strings"
	"time"

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

// awaitAfterDrainHooks asks hooks on an empty node, and abandons the attempt if one that may not be ignored stays silent.
func awaitAfterDrainHooks(in *Input) Next {
	return in.hooks(afterDrain, in.Rules.Hooks.AfterDrain, func(failed *policy.Hook) Next {
		return in.abandon(plan.ReasonHookFailed, silent(failed), marker.OutcomeFailed)
	})
}

// awaitUncordonHooks asks hooks on a node that is well on its new boot. If one that may not be ignored stays silent the
// node stays cordoned, and is Lost.
func awaitUncordonHooks(in *Input) Next {
	return in.hooks(beforeUncordon, in.Rules.Hooks.BeforeUncordon, func(failed *policy.Hook) Next {
		return in.wait(intent.PhaseLost, plan.ReasonLost, plan.Messagef(
			"%s is well, but %s; it stays cordoned until that answers, or the node is deleted or its label removed", in.Name, silent(failed)))
	})
}

// hooks asks the hooks of a stage and awaits their answers. fail is the step after one that may not be ignored.
func (v *View) hooks(stage string, hooks []policy.Hook, fail func(*policy.Hook) Next) Next {
	switch {
	case len(hooks) == 0:
		return Next{}
	case !v.hooksAsked(stage):
		return v.askHooks(stage, hooks)
	}
	var next Next
	waits := v.unanswered(hooks)
	switch {
	case waits.failed != nil:
		next = fail(waits.failed)
	case waits.waiting != nil:
		next = v.wait(v.Phase(), plan.ReasonHookAwaited, awaited(waits.waiting, *v.Marks.Disruption.Asked))
	}
	next.Again = plan.Earliest(v.Now, next.Again, waits.deadline.again)
	return next
}

func (v *View) hooksAsked(stage string) bool {
	return strings.HasPrefix(v.Marks.HookID, stage) && v.Marks.Disruption.Asked != nil
}

func (v *View) askHooks(stage string, hooks []policy.Hook) Next {
	c := v.keep()
	c.Marks.HookID, c.Marks.Disruption.Asked = stage+v.newID(), v.moment()
	message := awaited(&hooks[0], *c.Marks.Disruption.Asked).String()
	c.wait(plan.ReasonHookAwaited, message)
	return v.do(intent.ActNote, plan.ReasonHookAwaited, message, c)
}

// hookWait is what hooks that were asked are waited for.
type hookWait struct {
	// waiting is the first that is still waited for, and failed the first that must not be waited for any longer and may
	// not be ignored; nil if there is none.
	waiting, failed *policy.Hook
	// deadline is when one fails.
	deadline deadline
}

func (v *View) unanswered(hooks []policy.Hook) hookWait {
	var w hookWait
	for i := range hooks {
		h := &hooks[i]
		if slices.Contains(v.HooksAnswered, h.Annotation) {
			continue
		}
		d := v.deadline(*v.Marks.Disruption.Asked, h.Timeout)
		w.deadline.again = plan.Earliest(v.Now, w.deadline.again, d.again)
		switch {
		case !d.passed && w.waiting == nil:
			w.waiting = h
		case d.passed && h.OnTimeout == policy.Abort && w.failed == nil:
			w.failed = h
		}
		w.deadline.over = w.deadline.over || d.over && h.OnTimeout == policy.Abort
	}
	w.deadline.passed = w.failed != nil
	return w
}

// hookLate is when a node that is well must not be uncordoned, because a hook was silent for too long.
func (v *View) hookLate() deadline {
	if !v.hooksAsked(beforeUncordon) {
		return deadline{}
	}
	return v.unanswered(v.Rules.Hooks.BeforeUncordon).deadline
}

func awaited(h *policy.Hook, since time.Time) plan.Message {
	return plan.Messagef("hook %s is awaited since %s: the annotation %s is to have the value of %s", h.Name, plan.Clock(since), h.Annotation, marker.KeyHookID).
		Until(since.Add(h.Timeout)).Exact()
}

func silent(h *policy.Hook) string {
	return "hook " + h.Name + " has not answered within " + h.Timeout.String()
}

// endHooks ends what is asked of hooks.
func (c *change) endHooks() {
	c.Marks.HookID = ""
	if c.Marks.Disruption != nil {
		c.Marks.Disruption.Asked = nil
	}
}
