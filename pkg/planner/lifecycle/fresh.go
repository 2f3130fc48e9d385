package lifecycle

import (
	"fmt"
	"slices"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A fresh node is new, and a taint that its user had put on it keeps workloads away. It goes the way of all others,
// first of all and without a window, in a room of its own, and to a version that nodes of its group have proven. The
// taint goes as soon as nothing more is to be waited for.

// Fresh reports whether the node goes by the rules of nodes that have no workloads yet. Once it is taken out of service
// its mark says so, whatever becomes of the taint.
func (v *View) Fresh() bool {
	if d := v.Marks.Disruption; d != nil {
		return d.Fresh
	}
	return v.FreshTaint && v.Interface == fleet.InterfaceUpdateAPI && v.Marks.Fresh == nil && len(v.Marks.History) == 0 && !v.freshDeadline().passed
}

// freshDeadline is when the node is too old to keep its taint. Its age is by the API server's clock against this
// controller's. A new leader need not have seen the node before: what is over then is only that workloads stay away.
func (v *View) freshDeadline() deadline {
	d := v.deadline(v.Created, v.Settings.FreshNodes.Deadline)
	d.passed = d.over
	return d
}

// freshPin is the version that a fresh node's host is locked to, since by itself it would choose another; empty if it
// is to be locked to none.
func (v *View) freshPin() string {
	switch l := v.Marks.Lock; {
	case !v.Fresh():
		return ""
	case l != nil && !l.GiveBack:
		// What was wished stays for as long as the node is fresh, whatever others prove meanwhile.
		return l.Want
	case v.Disrupted() || v.Marks.Intent.Target != "" || v.runsProven() || !v.offered() || v.offers(v.Proven):
		return ""
	}
	return v.Proven
}

func (v *View) runsProven() bool {
	return v.Proven != "" && marker.CompareVersions(v.Marks.Report.Current, v.Proven) >= 0
}

// unproven keeps a fresh node from versions that its group has not proven. A taint that is put on a staged node makes
// it fresh as well, and what proved its target may be gone by now.
func unproven(v *View) plan.Refusal {
	goal := v.Goal()
	switch {
	case !v.Fresh():
		return plan.Refusal{}
	case v.Settings.FreshNodes.MaxUnavailable.None():
		return plan.Refuse(plan.ReasonPolicyPaused, plan.Messagef("the policy has freshNodes.maxUnavailable: 0"))
	case v.Rules.Versions.Pin != "":
		return plan.Refusal{}
	case v.Proven == "":
		return plan.Refuse(plan.ReasonFreshUnproven,
			plan.Messagef("no node of its group has proven a version that the policy allows, so it goes to none before it has workloads"))
	case v.runsProven():
		return plan.Refuse(plan.ReasonFreshUnproven,
			plan.Messagef("runs %s, and no node of its group has proven a newer version: it goes on as any other", v.Marks.Report.Current))
	case marker.CompareVersions(goal, v.Proven) > 0:
		return plan.Refuse(plan.ReasonFreshUnproven,
			plan.Messagef("no node of its group has proven %s, but %s: it goes on as any other", goal, v.Proven))
	}
	return plan.Refusal{}
}

// freshOverdue abandons the attempt of a node that kept its taint for as long as it may, unless the reboot has begun.
func freshOverdue(in *Input) Next {
	if !in.Marks.Disruption.Fresh || !in.FreshTaint {
		return Next{}
	}
	d := in.freshDeadline()
	if !d.passed {
		return none(d.again)
	}
	return in.abandon(plan.ReasonFreshOverdue, in.overdueFresh(), marker.OutcomeAbandoned)
}

func (v *View) overdueFresh() string {
	return fmt.Sprintf("the node is older than %s, for which a new one may keep the taint %s", v.Settings.FreshNodes.Deadline, marker.TaintFresh)
}

// freshEnds are the reasons that no time within the deadline ends.
var freshEnds = []plan.Reason{
	plan.ReasonUpToDate, plan.ReasonFreshUnproven, plan.ReasonLowerVersionOffered, plan.ReasonVersionDenied, plan.ReasonHeldAtVersion,
	plan.ReasonVersionTooNew, plan.ReasonVersionStopped, plan.ReasonPaused, plan.ReasonPolicyPaused, plan.ReasonFrozen, plan.ReasonAfterGroup,
	plan.ReasonUngrouped, plan.ReasonInterfaceUnsupported, plan.ReasonAnotherUpdater, plan.ReasonPinNotOffered, plan.ReasonPinLower,
	plan.ReasonLockedByOthers, plan.ReasonLockFailed,
}

// Taint returns the next step of a node with the taint of new nodes: the one that was decided on, or that the taint
// goes. While the node is out of service the taint goes with the cordon, in one patch.
func (v *View) Taint(next Next) Next {
	f := v.Marks.Fresh
	switch {
	case !v.FreshTaint, next.Want != WantNothing, len(v.Problems) > 0, f != nil && f.Times >= marker.FreshMost:
		return next
	case next.Step != nil && next.Step.Act == intent.ActLeave:
		return next
	case v.Disrupted() && v.Marks.Disruption.Soak == nil:
		if next.Step != nil && next.Step.Change != nil && backInService(next.Step.Change) {
			dropFresh(next.Step.Change, f, next.Reason)
		}
		return next
	case !v.Labelled():
		return next
	}
	why, message := next.Reason, fmt.Sprintf("the taint %s is taken off: %s", marker.TaintFresh, next.Message)
	d := v.freshDeadline()
	switch {
	case v.Fresh() && !slices.Contains(freshEnds, next.Reason):
		next.Again = plan.Earliest(v.Now, next.Again, d.again)
		return next
	case d.passed && f == nil && len(v.Marks.History) == 0:
		why, message = plan.ReasonFreshOverdue, v.overdueFresh()+": it is taken off"
	case f != nil && f.Times == marker.FreshMost-1:
		why, message = plan.ReasonTaintReturns, fmt.Sprintf("the taint %s is taken off for the last time: something puts it on again and again", marker.TaintFresh)
	}
	c := v.keep()
	dropFresh(&c.Change, f, why)
	return v.do(intent.ActUntaint, why, message, c).as(next.Phase)
}

// backInService reports whether a change ends the cordon of a node.
func backInService(c *plan.Change) bool {
	return c.Marks.Disruption == nil || c.Marks.Disruption.Soak != nil
}

func dropFresh(c *plan.Change, f *marker.Fresh, why plan.Reason) {
	next := marker.Fresh{}
	if f != nil {
		next = *f
	}
	next.Why = string(why)
	next.Times++
	c.DropFresh, c.Marks.Fresh = true, &next
}
