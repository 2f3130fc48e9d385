package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Wish is what the policy's plans want of a node: the first plan in their order whose target the node doesn't have.
type Wish struct {
	// Plan is what the next attempt would do; without a name where there is nothing to do.
	Plan marker.Plan
	// Prepare is the PodTemplate of a pod for the time before the cordon; empty: there is none.
	Prepare string
	// Downgrade: a lower target may be gone to. SkipsMinor: the target is too many minor versions ahead.
	Downgrade, SkipsMinor bool
	// NoTarget is why it isn't known what the node is to go to.
	NoTarget plan.Refusal
	// Has are the targets that the node has, as PLAN/TARGET.
	Has []string
}

const (
	// actFor is how long the runner may take to begin.
	actFor = 5 * time.Minute
	// actGrace is how long after that a node is still awaited on which the runner could not begin.
	actGrace = time.Minute
	// minPlanSoak is the least soak after a plan that boots nothing: the Ready condition of a dead kubelet stays for 40 s
	// (kube-controller-manager --node-monitor-grace-period) and the time until it is looked at.
	minPlanSoak = time.Minute
)

// mustReboot reports whether what was done to the node shows by a new boot.
func (v *View) mustReboot() bool {
	p := v.Marks.Plan
	return p == nil || p.Effect == marker.EffectReboot && v.answer() != marker.StateError
}

// cordons reports whether the node is cordoned for its attempt.
func (v *View) cordons() bool {
	return v.Marks.Plan == nil || v.Marks.Plan.Drain != marker.DrainNothing
}

// beginTime is how long a node may take to begin what it was asked for once it was drained.
func (v *View) beginTime() time.Duration {
	if v.Marks.Plan != nil {
		return actFor + actGrace
	}
	return v.Settings.Deadlines.Reboot
}

// actTime is how long it may take to its end: of a plan, to begin, to run, and to settle.
func (v *View) actTime() time.Duration {
	if p := v.Marks.Plan; p != nil {
		return actFor + actGrace + p.Within() + intent.RebootPatience
	}
	return v.Settings.Deadlines.Reboot
}

// soakTime is how long the node must be Ready.
func (v *View) soakTime() time.Duration {
	if p := v.Marks.Plan; p != nil && p.Effect != marker.EffectReboot {
		return max(v.Rules.Soak, minPlanSoak)
	}
	return v.Rules.Soak
}

// inPlace is why the node's pods stay where they are, with a sentence on it.
func (v *View) inPlace() (plan.Reason, string) {
	if !v.planLeavesInPlace() {
		return plan.ReasonSingleNode, inPlaceMessage
	}
	return plan.ReasonDraining, v.leftInPlace()
}

// planLeavesInPlace reports whether it is the plan that leaves the pods where they are, however many nodes there are.
func (v *View) planLeavesInPlace() bool {
	return v.Marks.Plan != nil && v.Marks.Plan.Drain != marker.DrainAll
}

func (v *View) leftInPlace() string {
	if p := v.Marks.Plan; p.Drain == marker.DrainCordon {
		return "the plan " + p.Name + " runs on the cordoned node, with its pods in place"
	}
	return "the plan " + v.Marks.Plan.Name + " runs on the node in service"
}

// back is how a node came back.
func (v *View) back() string {
	if p := v.Marks.Plan; p != nil && p.Effect != marker.EffectReboot {
		return "Ready after the plan " + p.Name
	}
	return "Ready on its new boot"
}

// described is what an attempt is about, for a reader: the plan's name, its target and its effect.
func described(p *marker.Plan, target string) string {
	return marker.ShortVersion(target) + " (effect: " + string(p.Effect) + ")"
}

func preparing(p *marker.Plan, target string) string {
	return "the runner prepares " + described(p, target)
}

// awaitPrepared lets a node wait for what its plan prepares.
func (v *View) awaitPrepared() Next {
	if !v.AgentReady {
		return v.wait(intent.PhaseStaging, plan.ReasonAgentNotReady, plan.Messagef("to prepare %s; no runner is Ready", described(v.Marks.Plan, v.Marks.Intent.Target)))
	}
	return v.wait(intent.PhaseStaging, plan.ReasonStaging, plan.Text(preparing(v.Marks.Plan, v.Marks.Intent.Target)))
}

// otherInterface reports whether the node's label asks for another interface than the attempt that is under way was
// begun for.
func (v *View) otherInterface() bool {
	m := &v.Marks
	switch v.Interface {
	case fleet.InterfaceUpdateAPI:
		return m.Plan != nil
	case fleet.InterfacePlan:
		return m.Plan == nil && (m.Intent.Target != "" || m.Disruption != nil)
	default:
		return false
	}
}

// planHasNoTarget is why it isn't known what a node of plans is to go to.
func planHasNoTarget(v *View) plan.Refusal {
	if v.Wish == nil {
		return plan.Refusal{}
	}
	return v.Wish.NoTarget
}

// planLower is why a target that is lower than what the node shows is none.
func (v *View) planLower(version string) plan.Refusal {
	current := v.Marks.Report.Current
	order, ordered := marker.ComparePlanTargets(marker.PlanTargetOf(version), marker.PlanTargetOf(current))
	if v.Wish.Downgrade || !ordered || order >= 0 {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonLowerVersionOffered,
		plan.Messagef("runs %s, and its plan targets the lower %s: set versions.downgrade in the plan to allow that", current, version))
}

func minorSkipped(v *View) plan.Refusal {
	if v.Wish == nil || !v.Wish.SkipsMinor {
		return plan.Refusal{}
	}
	r := &v.Marks.Report
	return plan.Refuse(plan.ReasonMinorSkipped, plan.Messagef(
		"runs %s, and %s is more minor versions ahead than maxMinorSkip of its plan allows: target one between first", r.Current, r.Available))
}

// noEffect is why a target is not tried once more whose pod succeeded and changed nothing: it would do so again.
func noEffect(v *View) plan.Refusal {
	f, m := v.Marks.Failure, &v.Marks
	if v.Wish == nil || f == nil || f.Reason != string(plan.ReasonNoEffect) || len(f.Versions) == 0 || f.Versions[len(f.Versions)-1] != m.Report.Available {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonNoEffect, plan.Messagef("%s: %s; it is tried again when the plan or its templates change, or with the annotation %s",
		m.Report.Available, f.Message, marker.KeyRetry))
}

// planFailed is why an attempt of a plan failed that had begun, and whether its target is to blame.
func (v *View) planFailed() (r plan.Reason, blamed bool) {
	switch v.Marks.Report.Reason {
	case marker.ReasonPodFailed:
		return plan.ReasonPodFailed, true
	case marker.ReasonNoEffect:
		return plan.ReasonNoEffect, true
	case marker.ReasonInterrupted:
		return plan.ReasonInterrupted, false
	default:
		if v.Marks.Plan.Effect == marker.EffectReboot && v.rebooted() {
			return plan.ReasonRolledBack, true
		}
		return plan.ReasonHostError, false
	}
}

// applied has the controller itself read what the pod of a plan says that it brought, where no kubelet shows it: the
// second witness. It is empty where there is nothing to read.
func (v *View) applied() plan.LiveCheck {
	p := v.Marks.Plan
	if p == nil || p.Proof != marker.ProofContent || v.answer() == marker.StateError {
		return plan.LiveCheck{}
	}
	return plan.LiveCheck{For: fleet.CheckApplied, Intent: v.Marks.Intent.ID, Digest: p.Digest}
}

// unapplied reports whether the controller looked at what a pod brought, and did not see that.
func (v *View) unapplied() bool {
	l := v.Checked
	return l != nil && l.For == fleet.CheckApplied && !l.Passed()
}

// planDone notes the content that a node has. For room plans are forgotten, those first that the policy doesn't name
// any more, or not for their content; of others there are never too many.
func (c *change) planDone(target string) {
	if p := c.v.Marks.Plan; p == nil || p.Proof != marker.ProofContent {
		return
	}
	if c.Marks.PlanDone == nil {
		c.Marks.PlanDone = map[string]string{}
	}
	name := marker.PlanOf(target)
	c.Marks.PlanDone[name] = marker.PlanDigestOf(target)
	gone := func(other string) int {
		if p := c.v.Settings.PlanNamed(other); p == nil || !p.Target.Content {
			return 0
		}
		return 1
	}
	others := slices.SortedFunc(maps.Keys(c.Marks.PlanDone), func(a, b string) int { return cmp.Or(gone(a)-gone(b), cmp.Compare(a, b)) })
	others = slices.DeleteFunc(others, func(other string) bool { return other == name })
	for _, other := range others[:max(0, len(others)+1-marker.MaxPlansDone)] {
		delete(c.Marks.PlanDone, other)
	}
}

// planUndone forgets the content that a node had before a pod that brought none: what it has now is not known.
func (c *change) planUndone() {
	if p := c.v.Marks.Plan; p != nil && p.Proof == marker.ProofContent {
		delete(c.Marks.PlanDone, p.Name)
	}
}
