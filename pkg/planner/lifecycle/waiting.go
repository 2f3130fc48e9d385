package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// waiting is the next step of a node that nothing is asked of but its facts.
func waiting(in *Input) Next {
	return first(in, fence, correctClock, noCycleOfPlans, locked, unfit, upToDate, early, wantStaging)
}

// correctClock cuts a wait that a clock which ran ahead wrote far into the future.
func correctClock(in *Input) Next {
	f := in.Marks.Failure
	if f == nil || !f.RetryAfter.After(in.Now.Add(in.Settings.RetryMax)) {
		return Next{}
	}
	c := in.keep()
	c.Marks.Failure.RetryAfter = in.Now.Truncate(time.Second).Add(in.Settings.RetryMax)
	return in.do(intent.ActNote, plan.ReasonClockCorrected, "the next try was set by a clock that ran ahead: it is brought forward", c)
}

// unfit waits with a node of which it isn't known what it could be updated to.
func unfit(in *Input) Next {
	return in.refusedBy(paused, notBottlerocket, agentAbsent, agentError, planHasNoTarget, unreported, versionsDiffer, heldAtVersion)
}

func upToDate(in *Input) Next {
	if in.offered() || in.wantsCycle() {
		return Next{}
	}
	m := plan.Messagef("runs %s and nothing newer is offered", in.Marks.Report.Current)
	if in.Wish != nil {
		m = plan.Messagef("has what its plans want: %s", strings.Join(in.Wish.Has, ", "))
	}
	return Next{Phase: intent.PhaseUpToDate, Reason: plan.ReasonUpToDate, Message: m}
}

// early waits with a node that is offered a version, and by itself may not stage it yet.
func early(in *Input) Next {
	return in.refusedBy(unproven, lowerOffered, minorSkipped, noEffect, backingOff, tiredOfOffers, cycleUnknown, recentlyUncordoned, notReady, leavingCluster)
}

func (in *Input) refusedBy(checks ...plan.Check[*View]) Next {
	r := plan.FirstRefusal(in.Now, &in.View, checks...)
	if !r.Refuses() {
		return none(r.Again)
	}
	return in.refused(intent.PhaseWaiting, r)
}

func wantStaging(*Input) Next { return Next{Phase: intent.PhaseWaiting, Want: WantStaging} }

func notBottlerocket(v *View) plan.Refusal {
	if v.Wish != nil || v.AgentReady || v.BootID == "" || v.OSVersion != "" {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonInterfaceUnsupported, plan.Messagef("the kubelet reports another operating system than Bottlerocket: remove the label"))
}

func agentError(v *View) plan.Refusal {
	if v.answer() != marker.StateError {
		return plan.Refusal{}
	}
	message := v.Marks.Report.Message
	switch v.Marks.Report.Reason {
	case marker.ReasonLockFailed:
		// The rule of locks lets it pass where the host chooses the pin by itself.
		return plan.Refusal{}
	case marker.ReasonUnrequestedActivation:
		return plan.Refuse(plan.ReasonAnotherUpdater, plan.Messagef(
			"%s; if it was this operator's, before the Node was made anew or its label taken off, the annotation %s undoes it", message, marker.KeyRetry))
	case marker.ReasonAnotherUpdater:
		return plan.Refuse(plan.ReasonAnotherUpdater, plan.Messagef("%s; a reboot, or taking that back on the host, ends it", message))
	case marker.ReasonInterfaceUnsupported:
		return plan.Refuse(plan.ReasonInterfaceUnsupported,
			plan.Messagef("%s; replace the node by one with a newer image, or remove the label", message))
	default:
		return plan.Refuse(plan.ReasonHostError, plan.Text(message))
	}
}

func unreported(v *View) plan.Refusal {
	answered := v.answer() == marker.StateReady || v.says(marker.StateError, marker.ReasonLockFailed)
	if r := &v.Marks.Report; answered && r.Current != "" && r.Protocol >= 1 {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonAgentNotReady, plan.Messagef("the agent has not reported on its host yet"))
}

func versionsDiffer(v *View) plan.Refusal {
	r := &v.Marks.Report
	if v.BootID != r.BootID || v.OSVersion == "" || v.OSVersion == r.Current {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonBootUnconfirmed, plan.Messagef(
		"of the same boot the kubelet reports version %s and the agent %s: look at the host", v.OSVersion, r.Current))
}

// offered reports whether the host is offered another version than it runs.
func (v *View) offered() bool {
	r := &v.Marks.Report
	return r.Available != "" && r.Available != r.Current && (v.Wish != nil || marker.CompareVersions(r.Available, r.Current) != 0)
}

// heldAtVersion is why a node waits for a version that is not offered to it yet.
func heldAtVersion(v *View) plan.Refusal {
	current, hold := v.Marks.Report.Current, v.Rules.Versions.Only()
	if v.Wish != nil || v.offered() || v.wantsCycle() || hold == "" || marker.CompareVersions(current, hold) >= 0 {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonHeldAtVersion, plan.Messagef("runs %s; the policy holds the fleet at %s, which is not offered to it yet", current, hold))
}

func lowerOffered(v *View) plan.Refusal { return v.Lower(v.Goal()) }

// Lower is why a version that is lower than the one that runs is no target.
func (v *View) Lower(version string) plan.Refusal {
	current := v.Marks.Report.Current
	if v.Wish != nil {
		return v.planLower(version)
	}
	if v.Rules.Versions.Downgrade || marker.CompareVersions(version, current) >= 0 {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonLowerVersionOffered,
		plan.Messagef("runs %s and is offered the lower %s: set versions.downgrade in the policy to allow that", current, version))
}

// backingOff is why the offered version has to wait: it failed here, or isn't newer than all that did.
func backingOff(v *View) plan.Refusal {
	f, offered := v.Marks.Failure, v.Marks.Report.Available
	if f == nil || v.wantsCycle() || !v.Now.Before(f.RetryAfter) || !slices.ContainsFunc(f.Versions, func(failed string) bool {
		// What failed says nothing of a lower version that the policy wants in its place.
		return offered == failed || v.Wish == nil && v.pin() == "" && marker.CompareVersions(offered, failed) <= 0
	}) {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonBackingOff, Again: f.RetryAfter, Message: plan.Messagef(
		"the update to %s failed %d times in a row here, last by %s: %s; it is tried again after %s, or at once with the annotation %s",
		offered, f.Count, f.Reason, f.Message, plan.Clock(f.RetryAfter), marker.KeyRetry).Dated().Until(f.RetryAfter)}
}

func tiredOfOffers(v *View) plan.Refusal {
	return v.tired().After(v.wants())
}

// recentlyUncordoned is why a node is left alone whose last attempt a user ended by an uncordon.
func recentlyUncordoned(v *View) plan.Refusal {
	h := v.Marks.History
	if len(h) == 0 || h[len(h)-1].Outcome != marker.OutcomeUncordoned {
		return plan.Refusal{}
	}
	ended := h[len(h)-1].Ended
	end := ended.Add(v.Settings.PauseAfterUncordon)
	if !v.Now.Before(end) || ended.After(v.Now.Add(v.Settings.RetryMax)) {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonRecentlyUncordoned, Again: end, Message: plan.Messagef(
		"a user uncordoned the node during its update; the operator leaves it alone for %s", v.Settings.PauseAfterUncordon).Until(end)}
}
