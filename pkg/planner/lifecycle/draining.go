package lifecycle

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// draining is the next step of a cordoned node: its pods are evicted, and once nothing is left to evict it is asked to
// reboot.
func draining(in *Input) Next {
	return first(in, rebootedEarly, uncordonedOrPaused, requestWithdrawn, pinChanged, freshOverdue, recalled, attemptEnded, agentLost, drainInPlace, emptied, unevictable, drainAgain,
		drainUnled, drainOverdue, awaitBalancers, noteWorkloads, evict, awaitPods)
}

// rebootedEarly takes a reboot after the cordon for the one that would be asked for, whatever caused it: the agent's
// answer says what came of it.
func rebootedEarly(in *Input) Next {
	switch {
	case !in.rebooted():
		return Next{}
	case in.Marks.Plan != nil:
		// Nothing of the plan was done by then, and its pod is for the boot that is over.
		return in.abandon(plan.ReasonRebootedEarly, "the node rebooted after its cordon, before its plan ran", marker.OutcomeAbandoned)
	}
	return in.askReboot(plan.LookNone, plan.ReasonRebootedEarly, "the node rebooted after its cordon, before it was asked to")
}

// uncordonedOrPaused abandons an attempt that the node's user ends.
func uncordonedOrPaused(in *Input) Next {
	switch {
	case !in.Unschedulable && in.cordons():
		return in.abandon(plan.ReasonUncordonedByUser, "a user uncordoned the node", marker.OutcomeUncordoned)
	case in.Marks.Paused:
		return in.abandon(plan.ReasonPaused, "paused: "+orNoReason(in.Marks.PausedReason), marker.OutcomeAbandoned)
	}
	return Next{}
}

// recalled undoes the cordon of a node that the policy has returned. It keeps what it has staged, and waits with it.
func recalled(in *Input) Next {
	r := in.Recall
	if !r.Refuses() {
		return none(r.Again)
	}
	if in.Marks.Cycles() {
		// It has nothing staged to wait with, and its request ends with it.
		return recallReboot(in)
	}
	c := in.keep()
	c.uncordon()
	c.endProtection()
	c.endHooks()
	c.end(marker.OutcomeAbandoned, r.Reason)
	c.Marks.Disruption, c.Marks.Intent.RebootFrom = nil, ""
	c.Marks.Waiting = r.Message.After(plan.Staged).Waiting(r.Reason, in.Now)
	next := in.do(intent.ActUncordon, r.Reason, r.Message.String(), c).freeing(true)
	next.Again = plan.Earliest(in.Now, r.Again, next.Again)
	return next
}

// attemptEnded abandons an attempt whose agent failed, or whose target the host isn't offered any more.
func attemptEnded(in *Input) Next {
	m := &in.Marks
	switch {
	case in.answer() == marker.StateError:
		return in.abandon(plan.ReasonStagingFailed, m.Report.Message, marker.OutcomeFailed)
	case in.withdrawn():
		return in.abandon(plan.ReasonOfferWithdrawn, withdrawn(m), marker.OutcomeAbandoned)
	}
	return Next{}
}

// agentLost abandons an attempt on a node whose agent has been away for too long. Where no agent at all is Ready the
// proxies are away, which is no failure of the node.
func agentLost(in *Input) Next {
	d := in.agentAway()
	if !d.passed {
		return none(d.again)
	}
	return in.abandon(plan.ReasonAgentLost, fmt.Sprintf("no agent pod has been Ready on the node for %s, though its kubelet is",
		agentPatience), failedIf(in.AgentsReady))
}

// emptied goes on with a node that has nothing left to evict.
func emptied(in *Input) Next {
	if d := in.Drain; d == nil || d.Failed != "" || d.Remaining > 0 || !in.AgentReady {
		return Next{}
	}
	return first(in, awaitVolumes, awaitAfterDrainHooks, rebootEmptied)
}

func rebootEmptied(in *Input) Next {
	return in.askReboot(plan.LookEmpty, plan.ReasonRebootRequested, "nothing is left to evict")
}

// askReboot asks the agent to activate the target and to reboot.
func (in *Input) askReboot(before plan.Look, r plan.Reason, message string) Next {
	within, waits := in.Settings.Deadlines.Reboot, "the agent activates the update and reboots"
	if p := in.Marks.Plan; p != nil {
		within, waits = actFor, "the runner runs "+described(p, in.Marks.Intent.Target)
	}
	if in.Marks.Cycles() {
		waits = "the agent reboots the host"
	}
	c := in.begin(marker.ActionRebootUpdate, within, plan.ReasonRebooting, waits)
	if p := in.Marks.Plan; p != nil {
		c.Marks.Intent.Template = p.Apply
	}
	c.endHooks()
	if until := &c.Marks.Intent.Until; !in.Closes.IsZero() && in.Closes.Before(*until) && !in.rebooted() {
		// Also if no controller is there to take it back then.
		*until = in.Closes.Truncate(time.Second)
	}
	next := in.do(intent.ActReboot, r, message, c)
	if next.Step != nil {
		next.Step.Before, next.Step.Eviction = before, &in.Rules.Eviction
	}
	return next
}

// unevictable abandons an attempt whose drain can't end.
func unevictable(in *Input) Next {
	d := in.Drain
	if d == nil || d.Failed != "" || d.Unevictable == "" || !d.Forced && in.Rules.Eviction.Force {
		return Next{}
	}
	return in.abandon(plan.ReasonEvictionRefused, d.Unevictable, marker.OutcomeFailed)
}

// drainAgain takes a node for one that isn't empty, if pods were found on it while its volumes or hooks were awaited,
// such as tolerate the cordon. When it is empty again its volumes are awaited, and hooks asked, anew.
func drainAgain(in *Input) Next {
	d := in.Marks.Disruption
	if in.Drain == nil || in.Drain.Failed != "" || in.Drain.Remaining == 0 || d.Drained == nil && d.Asked == nil {
		return Next{}
	}
	c := in.keep()
	c.endHooks()
	c.Marks.Disruption.Drained = nil
	if d.NotEmpty == nil {
		c.Marks.Disruption.NotEmpty = in.moment()
	}
	waits := in.drainWait()
	c.Marks.Waiting = waits.Message.Waiting(waits.Reason, in.Now)
	return in.do(intent.ActNote, waits.Reason, waits.Message.String(), c)
}

// drainSince is since when a drain has its time, and how much more than that. What volumes and hooks take on the empty
// node is theirs. When pods first come late the drain has its time once more, and whichever comes later has what is
// left of that.
func (v *View) drainSince() (since time.Time, more time.Duration) {
	switch d := v.Marks.Disruption; {
	case d.Asked != nil:
		return *d.Asked, policy.LongestHook(v.Rules.Hooks.AfterDrain)
	case d.Drained != nil:
		return *d.Drained, v.Rules.Volumes.Wait
	case d.NotEmpty != nil:
		return *d.NotEmpty, 0
	default:
		return d.Since, 0
	}
}

// drainUnled abandons an attempt whose drain was over before this process led: what nothing was there to do is no
// failure. At the first look nothing is evicted for it, and the second one acts, as with any deadline.
func drainUnled(in *Input) Next {
	since, more := in.drainSince()
	end := since.Add(in.Rules.LongestDrain() + more)
	switch {
	case in.Now.Before(end), in.PassedOver && !in.WatchedSince.After(end):
		return Next{}
	case in.PassedOver:
		return in.abandon(plan.ReasonDrainDeadline, "no controller was leading when the time of the drain ended", marker.OutcomeAbandoned)
	}
	return in.waitDraining(in.Now.Add(time.Second))
}

// drainOverdue abandons an attempt whose drain took too long, the time in which it may use force included.
func drainOverdue(in *Input) Next {
	since, more := in.drainSince()
	d := in.deadline(since, in.Rules.LongestDrain()+more)
	if in.Rules.Eviction.Force {
		d.again = plan.Earliest(in.Now, d.again, since.Add(in.Rules.Drain+more))
	}
	if !d.passed {
		return none(d.again)
	}
	// What could not be written to the node in that time is no failure of its drain.
	return in.abandon(plan.ReasonDrainDeadline, in.drainDeadline(), failedIf(in.WriteTrouble == nil))
}

// awaitBalancers lets load balancers have the time that they are given to send nothing to the node any more; those that
// nothing was asked of need none.
func awaitBalancers(in *Input) Next {
	d := in.Marks.Disruption
	end := d.Since
	if _, asked := d.Before[marker.LabelExcluded]; asked {
		end = end.Add(in.Rules.Balancers.Wait)
	}
	if !in.Now.Before(end) {
		return Next{}
	}
	next := in.wait(intent.PhaseDraining, plan.ReasonLeavingBalancers,
		plan.Messagef("load balancers have until %s to take the node out", plan.Clock(end)).Until(end))
	next.Again = plan.Earliest(in.Now, next.Again, end)
	return next
}

// evict makes an eviction pass when one is due.
func evict(in *Input) Next {
	if in.Drain != nil && in.Now.Before(in.Drain.Next) {
		return Next{}
	}
	waits := in.drainWait()
	next := in.do(intent.ActDrain, waits.Reason, waits.Message.String(), nil)
	next.Again = waits.Again
	if next.Step == nil {
		return next
	}
	e := &in.Rules.Eviction
	next.Step.Eviction, next.Step.Most = e, max(0, e.PerHour-in.Evicted)
	if e.Force {
		// What is left at the deadline is deleted.
		since, more := in.drainSince()
		d := in.deadline(since, in.Rules.Drain+more)
		next.Again = plan.Earliest(in.Now, next.Again, d.again)
		if next.Step.Force = d.passed; d.passed {
			next.Step.Most = math.MaxInt
		}
	}
	return next
}

func awaitPods(in *Input) Next { return in.waitDraining(in.Drain.Next) }

func (v *View) waitDraining(again time.Time) Next {
	waits := v.drainWait()
	next := v.wait(intent.PhaseDraining, waits.Reason, waits.Message)
	next.Again = plan.Earliest(v.Now, next.Again, waits.Again, again)
	return next
}

// drainWait is what a drain waits for.
func (v *View) drainWait() plan.Refusal {
	switch d := v.Drain; {
	case d == nil:
		return plan.Refuse(plan.ReasonDraining, plan.Text("the node's pods are being evicted"))
	case d.Failed != "":
		return plan.Refuse(plan.ReasonDrainFailing, plan.Text(d.Failed))
	case d.Remaining > 0 && !d.Forced && v.evictionsSpent():
		return plan.Refusal{Reason: plan.ReasonEvictionLimit, Message: plan.Text(v.evictionLimit()), Again: v.EvictedUntil}
	case cmp.Or(d.Unevictable, d.Blocked) != "":
		return plan.Refuse(plan.ReasonEvictionBlocked, plan.Text(cmp.Or(d.Unevictable, d.Blocked)))
	case d.Remaining == 0:
		return plan.Refuse(plan.ReasonAgentNotReady, plan.Text("drained, but no agent pod is Ready on the node"))
	case d.Awaited != "":
		return plan.Refuse(plan.ReasonPodEndAwaited, plan.Text(d.Awaited))
	default:
		return plan.Refuse(plan.ReasonDraining, plan.Text(cmp.Or(d.Waiting, "the node's pods are being evicted")))
	}
}

// drainDeadline says why a drain was not done in its time.
func (v *View) drainDeadline() string {
	why, within := v.workloadsUnnoted(), v.Rules.Drain
	if d := v.Drain; d != nil {
		why = cmp.Or(d.Failed, d.Unevictable, d.Blocked, d.Awaited, d.Waiting)
		if v.evictionsSpent() {
			why = v.evictionLimit()
		}
		if why == "" && d.Remaining == 0 {
			return fmt.Sprintf("drained, but no agent pod was Ready on the node within %s", within)
		}
	}
	if why == "" {
		return fmt.Sprintf("not drained within %s", within)
	}
	return fmt.Sprintf("not drained within %s: %s", within, why)
}

func (v *View) evictionsSpent() bool { return v.Evicted >= v.Rules.Eviction.PerHour }

// evictionLimit says that as many pods were evicted from a node as may be, as they are if one comes back each time.
func (v *View) evictionLimit() string {
	return fmt.Sprintf("%d pods were evicted from the node within an hour, the most that drain.evictionsPerHour allows: look for a pod that comes back to the node each time, or raise the limit", v.Evicted)
}

// drainInPlace asks the only node of a cluster to reboot with its workloads left in place. What else is done for a node
// that goes down is done here too: load balancers, the note of its workloads, hooks.
func drainInPlace(in *Input) Next {
	if !in.LeftInPlace() {
		return Next{}
	}
	return first(in, awaitBalancers, inPlaceOverdue, noteWorkloads, awaitAgentInPlace, awaitAfterDrainHooks, rebootInPlace)
}

func inPlaceOverdue(in *Input) Next {
	why := in.workloadsUnnoted()
	if why == "" && in.AgentReady {
		return Next{}
	}
	since, more := in.drainSince()
	within := in.Rules.Drain + more
	d := in.deadline(since, within)
	switch {
	case !d.passed:
		return none(d.again)
	case why != "":
		return in.abandon(plan.ReasonDrainDeadline, fmt.Sprintf("its workloads could not be noted within %s: %s", within, why), marker.OutcomeFailed)
	}
	return in.abandon(plan.ReasonDrainDeadline, fmt.Sprintf("no agent pod was Ready on the node within %s", within), marker.OutcomeFailed)
}

func awaitAgentInPlace(in *Input) Next {
	if in.AgentReady {
		return Next{}
	}
	return in.wait(intent.PhaseDraining, plan.ReasonAgentNotReady, plan.Messagef("no agent pod is Ready on the node"))
}

func rebootInPlace(in *Input) Next {
	if in.planLeavesInPlace() {
		return in.askReboot(plan.LookNone, plan.ReasonRebootRequested, in.leftInPlace())
	}
	return in.askReboot(plan.LookAlone, plan.ReasonSingleNode, inPlaceMessage)
}

// awaitVolumes lets volumes of an empty node be detached, for as long as the policy gives them.
func awaitVolumes(in *Input) Next {
	rules, d := &in.Rules.Volumes, in.Marks.Disruption
	// Once hooks are asked volumes have been waited for.
	if rules.Wait == 0 || d.Asked != nil {
		return Next{}
	}
	// What was seen before pods came after the drain says nothing of their volumes.
	var since time.Time
	if d.NotEmpty != nil {
		since = *d.NotEmpty
	}
	found := in.Checked
	seen := found != nil && found.For == fleet.CheckVolumes && !found.At.Before(since)
	var over deadline
	if seen && !found.Passed() {
		if d.Drained == nil {
			return in.beginVolumes(found.Problem + found.Failed)
		}
		over = in.deadline(*d.Drained, rules.Wait)
	}
	switch {
	case over.passed && rules.OnTimeout != policy.Abort:
		return Next{}
	case over.passed:
		return in.abandon(plan.ReasonVolumesDeadline, found.Problem+found.Failed+", "+rules.Wait.String()+" after the drain", marker.OutcomeFailed)
	}
	check := plan.LiveCheck{For: fleet.CheckVolumes}
	if seen {
		check.Attachments = found.Attachments
	}
	_, next := in.check(check, since, plan.ReasonVolumesAttached)
	next.Again = plan.Earliest(in.Now, next.Again, over.again)
	return next
}

// beginVolumes writes down since when volumes are awaited, for whichever controller leads.
func (v *View) beginVolumes(message string) Next {
	c := v.keep()
	c.Marks.Disruption.Drained = v.moment()
	c.wait(plan.ReasonVolumesAttached, message)
	return v.do(intent.ActNote, plan.ReasonVolumesAttached, message, c)
}
