package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// check has something looked at live, unless the answer is there and all is well: then it returns what was found. An
// answer from before since is none.
func (v *View) check(q plan.LiveCheck, since time.Time, waiting plan.Reason) (*fleet.Checked, Next) {
	found := v.Checked
	if found != nil && (found.For != q.For || found.Digest != q.Digest || found.At.Before(since)) {
		found = nil
	}
	r, message := waiting, plan.Messagef("the operator is looking")
	if found != nil {
		switch {
		case found.Passed():
			return found, Next{}
		case found.Failed != "":
			r, message = plan.ReasonCheckFailing, plan.Text(found.Failed)
		case q.For == fleet.CheckVolumes:
			message = plan.Text(found.Problem).Exact()
		default:
			message = plan.Text(found.Problem)
		}
		if v.Now.Before(found.Next) {
			next := v.wait(v.Phase(), r, message)
			next.Again = plan.Earliest(v.Now, next.Again, found.Next)
			return nil, next
		}
	}
	return nil, v.doCheck(q, r, message.String())
}

func (v *View) doCheck(q plan.LiveCheck, r plan.Reason, message string) Next {
	next := v.do(intent.ActCheck, r, message, nil)
	if next.Step != nil {
		next.Step.Check = &q
	}
	return next
}

// noteWorkloads notes, before the first eviction, which workloads have Ready pods on the node, unless that was seen
// before the cordon. A controller that takes over in the middle of a drain takes what is left for it, which makes the
// later check weaker, never stricter.
func noteWorkloads(in *Input) Next {
	if in.workloadsNoted() {
		return Next{}
	}
	r := plan.ReasonDraining
	if in.LeftInPlace() {
		r, _ = in.inPlace()
	}
	found, next := in.check(plan.LiveCheck{For: fleet.CheckBaseline}, time.Time{}, r)
	if found == nil || len(found.Workloads) == 0 {
		return next
	}
	c := in.keep()
	c.Marks.Disruption.Workloads = found.Workloads
	return in.do(intent.ActNote, r, fmt.Sprintf("%d workloads have Ready pods here", len(found.Workloads)), c)
}

// workloadsNoted reports whether the node needs no note of its workloads any more.
func (v *View) workloadsNoted() bool {
	return v.Rules.Verify.OnWorkloads != policy.FailOnWorkloads || v.Marks.Disruption.Workloads != nil || v.Drain != nil
}

// workloadsUnnoted is why the note that a node needs can't be made; empty if nothing is known to be in its way.
func (v *View) workloadsUnnoted() string {
	if l := v.Checked; l != nil && l.For == fleet.CheckBaseline && !v.workloadsNoted() {
		return l.Failed
	}
	return ""
}

// podsUnwell reports whether pods that the policy wants on the node itself were seen not to be well there, since some
// time.
func (v *View) podsUnwell(since time.Time) bool {
	l := v.Checked
	return len(v.Rules.Verify.Pods) > 0 && l != nil && l.For == fleet.CheckPods && !l.At.Before(since) && !l.Passed()
}

// awaitPodsOnNode lets a node that is well wait for pods that must be Ready on it, and were since some time, and for
// what else the look is for.
func (in *Input) awaitPodsOnNode(check plan.LiveCheck, since time.Time) Next {
	check.For, check.Pods = fleet.CheckPods, in.Rules.Verify.Pods
	if len(check.Pods) == 0 {
		return Next{}
	}
	if lost := in.lost(); !lost.passed || !in.podsUnwell(since) {
		_, next := in.check(check, since, plan.ReasonPodsNotReady)
		return next
	}
	return in.lostUnseen(check)
}

// lostUnseen leaves a node as it is whose look shows, past its deadline, that something is not well. It is looked at on
// and on: what ends it is that all is.
func (v *View) lostUnseen(q plan.LiveCheck) Next {
	what := "is back, but " + v.Checked.Problem + v.Checked.Failed
	if v.Now.Before(v.Checked.Next) {
		next := v.waitLost(what)
		next.Again = plan.Earliest(v.Now, next.Again, v.Checked.Next)
		return next
	}
	return v.doCheck(q, plan.ReasonLost, v.Name+" "+what).as(intent.PhaseLost)
}

// awaitPodsAgain does so once more when the soak is over. Right after a reboot pods are still called Ready that the
// kubelet has not looked at since; after the soak it has.
func awaitPodsAgain(in *Input) Next {
	soaked := in.soaked()
	if l := in.Checked; l != nil && l.For == fleet.CheckWorkloads && !l.At.Before(soaked) {
		// Workloads are looked at only after these pods were well, and their look has replaced the pods' one.
		return Next{}
	}
	return in.awaitPodsOnNode(plan.LiveCheck{}, soaked)
}

// awaitWorkloads lets a node whose soak is over wait for workloads that are less Ready than before.
func awaitWorkloads(in *Input) Next {
	d := in.Marks.Disruption
	if in.Rules.Verify.OnWorkloads != policy.FailOnWorkloads || len(d.Workloads) == 0 {
		return Next{}
	}
	overdue := in.workloadsOverdue()
	if overdue.passed {
		return Next{}
	}
	_, next := in.check(plan.LiveCheck{For: fleet.CheckWorkloads, Workloads: d.Workloads}, in.soaked(), plan.ReasonWorkloadsAwaited)
	next.Again = plan.Earliest(in.Now, next.Again, overdue.again)
	return next
}

// workloadsOverdue is when the workloads have had their time, and this process has looked at them since it leads.
func (v *View) workloadsOverdue() deadline {
	if v.Checked == nil || v.Checked.For != fleet.CheckWorkloads || v.Checked.Passed() {
		return deadline{}
	}
	return v.deadline(v.soaked(), v.Rules.Verify.Deadline)
}

// What a hook-id begins with.
const (
	afterDrain     = "after-drain."
	beforeUncordon = "before-uncordon."
)

// awaitAfterDrainHooks asks hooks on an empty node, and abandons the attempt if one that may not be ignored stays
// silent.
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
