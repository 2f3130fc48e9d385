package lifecycle

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// View is one node with all that counts for it whatever the others do.
type View struct {
	*fleet.Node
	Now      time.Time
	Settings *policy.Settings
	// Rules are those of the node's group.
	Rules *policy.Rules
	// Slot: the node holds one by the controller's list.
	Slot bool
	// Wish is what the policy's plans want of the node; nil for a node that no plans update.
	Wish *Wish
	// Proven is the version that others of the node's group have proven; empty if it isn't known, which only counts for a
	// fresh node.
	Proven string
	// Alone: it is the only node of its cluster, but for those that are on their way out.
	Alone bool
	// NoPolicy: no policy is in force, so it isn't known what hosts are to be locked to.
	NoPolicy bool
	// AutoLabels: the policy has the controller label nodes, or it isn't known whether it does.
	AutoLabels bool
}

// deadline is a moment by which something must have happened.
type deadline struct {
	// over: it has gone by, by the clock alone. passed: and this process has passed over the node in its phase since, so
	// that a new leader acts on nothing that it sees for the first time.
	over, passed bool
	// again is when the clock alone changes that; zero if it doesn't.
	again time.Time
}

// deadline is the end of a time that began at since. A beginning implausibly far in the future, by a clock that ran
// ahead, is over too.
func (v *View) deadline(since time.Time, d time.Duration) deadline {
	end := since.Add(d)
	switch {
	case v.Now.Before(end) && !since.After(v.Now.Add(v.Settings.RetryMax)):
		return deadline{again: end}
	case !v.PassedOver:
		return deadline{over: true, again: v.Now.Add(time.Second)}
	}
	return deadline{over: true, passed: true}
}

// LeftInPlace reports whether the node is updated without a drain.
func (v *View) LeftInPlace() bool {
	return v.Settings.SingleNode == policy.SingleNodeAllow && v.Alone || v.planLeavesInPlace()
}

// rebooted reports whether the kubelet names another boot than the one to be left behind. A kubelet that names none has
// not said so.
func (v *View) rebooted() bool { return v.BootID != "" && v.BootID != v.Marks.Intent.RebootFrom }

// confirmed reports whether agent and kubelet name the same boot, a new one where there must be one, and the same
// version.
func (v *View) confirmed() bool {
	return (v.rebooted() || !v.mustReboot()) && v.BootID == v.Marks.Report.BootID && v.OSVersion == v.Marks.Report.Current
}

// answer is what the node's agent says of the current intent.
func (v *View) answer() marker.State { return v.Marks.Report.Answer(v.Marks.Intent.ID) }

// withdrawn reports whether the node's host neither offers the target any more nor runs it.
func (v *View) withdrawn() bool {
	m := &v.Marks
	return m.Report.Available != m.Intent.Target && m.Report.Current != m.Intent.Target
}

// soaked is when the soak that runs is over.
func (v *View) soaked() time.Time { return v.Marks.Disruption.Soak.Add(v.soakTime()) }

// agentPatience is how long a node that serves nothing is kept for an agent that isn't Ready. It is longer than the
// update of the agents or of the proxies takes.
const agentPatience = 2 * time.Minute

// agentAway is when the node's agent has been away for too long. Without the kubelet's report nothing can be said of
// the agent.
func (v *View) agentAway() deadline {
	if !v.Ready || v.AgentReady || v.AgentLostSince.IsZero() {
		return deadline{}
	}
	return v.deadline(v.AgentLostSince, agentPatience)
}

// OutOfService reports whether the node is disrupted and isn't known to be back.
func (v *View) OutOfService() bool {
	switch v.Phase() {
	case intent.PhaseVerifying:
		return v.Unschedulable || !v.Ready || v.lost().passed
	case intent.PhaseResetting:
		return true
	default:
		return v.Disrupted()
	}
}

// Denied reports whether the node has come through its update as its kubelet reports, while its agent says something
// else.
func (v *View) Denied() bool {
	m := &v.Marks
	if !v.rebooted() && v.mustReboot() || !v.Ready || v.OSVersion != m.Intent.Target || v.confirmed() && v.answer() != marker.StateError {
		return false
	}
	d := m.Disruption
	return v.Phase() != intent.PhaseVerifying || d.Soak != nil && d.Ready == v.ReadySince && !v.Now.Before(v.soaked())
}

// TriedTarget reports whether the version that a late node is to go to may have been booted: as its kubelet reports, or
// because the node isn't there to say anything else.
func (v *View) TriedTarget() bool { return (v.rebooted() || !v.Ready) && !v.Denied() }

// RebootBegun reports whether a node is past the point of no return and it was not seen yet what came of it: its host
// may go down at any moment, whatever is written to the Node.
func RebootBegun(n *fleet.Node) bool {
	v := View{Node: n}
	if n.Marks.Plan != nil {
		return intent.PointOfNoReturn(n.Marks) && v.answer() == marker.StateBusy
	}
	failed := v.answer() == marker.StateError && n.Marks.Report.BootID == n.BootID
	return intent.PointOfNoReturn(n.Marks) && !v.rebooted() && !failed
}

func orNoReason(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}

// Lost reports whether a node is past its deadline after the point of no return and hasn't what ends that; overdue
// reports whether it is by the clock alone, so that it will be Lost once this process has passed over it. again is when
// the clock alone changes either.
func (v *View) Lost() (lost, overdue bool, again time.Time) {
	d := v.lost()
	return d.passed, d.over, d.again
}

func (v *View) lost() deadline {
	if v.Marks.Disruption == nil || len(v.Problems) > 0 {
		return deadline{}
	}
	m, d := &v.Marks, &v.Settings.Deadlines
	switch intent.PhaseOf(*m) {
	case intent.PhaseRebooting:
		if !intent.PointOfNoReturn(*m) && !v.rebooted() {
			return deadline{}
		}
		return v.deadline(m.Intent.Time, v.actTime())
	case intent.PhaseReturning:
		failed := v.answer() == marker.StateError
		if failed && v.untouched() {
			return deadline{}
		}
		switch well := v.Ready && v.confirmed() && (failed || m.Report.Current == m.Intent.Target); {
		case !well, v.unapplied():
			return v.deadline(m.Intent.Time, v.actTime()+d.Return)
		case v.podsUnwell(time.Time{}):
			return v.deadline(m.Intent.Time, v.actTime()+d.Return+v.Rules.Verify.Deadline)
		}
		return v.hookLate()
	case intent.PhaseVerifying:
		// A node that comes and goes is never well for a whole soak, and Lost like one that stays away.
		well := v.Ready && v.BootID == m.Report.BootID && v.OSVersion == m.Report.Current
		soak := m.Disruption.Soak
		switch {
		case !well || soak == nil || m.Disruption.Ready != v.ReadySince || v.Now.Before(v.soaked()):
			return v.deadline(m.Intent.Time, v.soakTime()+d.Return)
		case v.podsUnwell(v.soaked()):
			return v.deadline(v.soaked(), v.Rules.Verify.Deadline)
		}
	default:
		// The host can't have begun to reboot.
	}
	return deadline{}
}

// untouched reports whether an attempt that its agent calls failed has left the host as it was.
func (v *View) untouched() bool {
	if v.Marks.Plan != nil {
		return v.says(marker.StateError, marker.ReasonPodRefused)
	}
	return v.inOldBoot()
}

// inOldBoot reports whether neither agent nor kubelet has left the boot that is to be left behind.
func (v *View) inOldBoot() bool {
	m := &v.Marks
	return m.Report.BootID == m.Intent.RebootFrom && v.BootID == m.Intent.RebootFrom
}

// lostSoon reports whether the node will be Lost once this process has passed over it. What another leader noted on it,
// that it is Lost for example, is not written over for that moment.
func (v *View) lostSoon() bool { return !v.PassedOver && v.lost().over }

// missed is what was not seen of a reboot by its deadline.
func (v *View) missed() string {
	switch m := &v.Marks; {
	case !v.mustReboot() && v.Ready:
		return "has not shown " + m.Intent.Target
	case !v.mustReboot():
		return "has not become Ready after its plan"
	case !v.rebooted() && m.Report.BootID != m.Intent.RebootFrom:
		return "is back by its agent's word, and its kubelet has not reported the new boot"
	case !v.rebooted() && v.Ready:
		return "has not begun to reboot"
	case !v.rebooted():
		return "has not come back from its reboot"
	case !v.Ready:
		return "has not become Ready on its new boot"
	}
	return "is Ready on its new boot, and its agent does not say the same of it"
}

// unwritable is over while nothing is written to the node, since the last write to it failed, or is under way.
func (v *View) unwritable() deadline {
	w := v.WriteTrouble
	if w == nil || w.InFlight {
		return deadline{over: w != nil}
	}
	return deadline{over: v.Now.Before(w.Until), again: w.Until}
}

// Unwritable refuses to ask a node for anything while the last write to it failed, or is under way.
func (v *View) Unwritable() plan.Refusal {
	d := v.unwritable()
	if !d.over {
		return plan.Refusal{Again: d.again}
	}
	return plan.Refusal{Reason: plan.ReasonWriteFailing, Again: d.again, Silent: true, Message: v.nextWrite("")}
}

// Mistrust refuses to take a staged node out of service whose writes had trouble: a slot that can't be used, nor given
// back, is one that the others miss.
func (v *View) Mistrust() plan.Refusal {
	w := v.WriteTrouble
	if w == nil {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonWriteFailing, Again: w.ClearAt, Silent: true,
		Message: plan.Messagef("%s; if no other write fails the node may be taken out of service after %s", w.Message, plan.Clock(w.ClearAt)).Until(w.ClearAt)}
}

// OutOfReach reports whether a node that is disrupted, or holds a slot, could not be written to for so long that it
// counts as Lost: nothing but a write lets go of it, and the others don't wait for that without end (L3). A cordon that
// timed out may be under way for as long as the node's resourceVersion stands, and so the slot is never freed without a
// write that succeeds; the limits leave it out like any Lost node, up to maxLost (S1).
func (v *View) OutOfReach() (bool, time.Time) {
	d := v.outOfReach()
	return d.over, d.again
}

func (v *View) outOfReach() deadline {
	w := v.WriteTrouble
	if w == nil || w.Since.IsZero() || !v.Disrupted() && !v.Slot {
		return deadline{}
	}
	end := w.Since.Add(v.Settings.Deadlines.Return)
	return deadline{over: !v.Now.Before(end), again: end}
}

// A node has at most attemptsSoon attempts without success within Settings.Soon, and at most marker.HistoryLength
// within the longest wait of the policy, whatever they ended by: an offer that comes and goes, or one newer version
// after the other, is no way to have a node drained all day.
const attemptsSoon = 3

// unsuccessful returns the last but so many of the node's attempts without success, since the user last wished for
// another; nil if there were not so many.
func (v *View) unsuccessful(but int) *marker.Attempt {
	for i := len(v.Marks.History) - 1; i >= 0 && !v.Marks.History[i].Retried; i-- {
		a := &v.Marks.History[i]
		// A clock that ran ahead has written what ends in the future.
		if a.Outcome.Succeeded() || a.Ended.After(v.Now) {
			continue
		}
		if but == 0 {
			return a
		}
		but--
	}
	return nil
}

// tired is why the node has had enough attempts for now.
func (v *View) tired() plan.Refusal {
	type limit struct {
		count  int
		within time.Duration
	}
	var reached limit
	var until time.Time
	for _, l := range []limit{{attemptsSoon, v.Settings.Soon()}, {marker.HistoryLength, v.Settings.RetryMax}} {
		if a := v.unsuccessful(l.count - 1); a != nil {
			if end := a.Ended.Add(l.within); v.Now.Before(end) && end.After(until) {
				until, reached = end, l
			}
		}
	}
	if until.IsZero() {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonBackingOff, Again: until, Message: plan.Messagef(
		"%d attempts without success within %s here, the last by %s; the next begins after %s, or at once with the annotation %s",
		reached.count, reached.within, v.unsuccessful(0).Reason, plan.Clock(until), marker.KeyRetry).Dated().Until(until)}
}

// Behind reports whether the node comes after the others: it failed, or had its turn a short while ago. So none is kept
// waiting by one that is taken out of service again and again, whatever that one's marks say. One that confirmed what
// it has staged, and was not taken out of service by then, had its turn too.
func (v *View) Behind() bool {
	if v.Marks.Intent.Action == marker.ActionConfirmUpdate && v.doubtful() {
		return true
	}
	soon := v.Settings.Soon()
	if v.Marks.Failure != nil && v.Marks.Failure.Count > 0 || v.Now.Before(v.TakenOut.Add(soon)) {
		return true
	}
	last := v.unsuccessful(0)
	return last != nil && v.Now.Before(last.Ended.Add(soon))
}

func paused(v *View) plan.Refusal {
	if !v.Marks.Paused {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonPaused, plan.Messagef("paused: %s", orNoReason(v.Marks.PausedReason)))
}

func agentAbsent(v *View) plan.Refusal {
	if v.AgentReady {
		return plan.Refusal{}
	}
	if v.Wish != nil {
		return plan.Refuse(plan.ReasonAgentNotReady, plan.Messagef("no runner is Ready, which carries plans out: apply components/plans/plans.yaml, or look at its pod"))
	}
	return plan.Refuse(plan.ReasonAgentNotReady, plan.Messagef("no agent pod is Ready on the node"))
}

func notReady(v *View) plan.Refusal {
	if v.Ready {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonNodeNotReady, plan.Messagef("the kubelet says that the node is not Ready"))
}

func leavingCluster(v *View) plan.Refusal {
	if v.Leaving == "" {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonBeingRemoved, plan.Messagef("the node is leaving the cluster: %s", v.Leaving))
}

// says reports whether the agent's answer to the current intent is s, for the reason r.
func (v *View) says(s marker.State, r marker.ReportReason) bool {
	return v.Marks.Report.Says(v.Marks.Intent.ID, s, r)
}

func withdrawn(m *marker.Marks) string {
	if m.Report.Available == "" {
		return fmt.Sprintf("%s is not offered any more", m.Intent.Target)
	}
	return fmt.Sprintf("%s is offered instead of %s", m.Report.Available, m.Intent.Target)
}

// wanted returns the verb for what the agent of a node is to do with the target.
func wanted(m *marker.Marks) string {
	if m.Intent.Action == marker.ActionConfirmUpdate {
		return "confirm"
	}
	return "stage"
}
