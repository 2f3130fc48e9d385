package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A lock is the host's own setting, which its agent writes for a new `stabilize` where the annotation lock says what it
// is to be. It is asked for and taken back while the node waits, and never while an attempt is under way. What stands
// on the host is what its agent reports; what is asked is asked once.

// pausedForGood is how long a node's own pause must last before what the operator locked is unlocked.
const pausedForGood = 24 * time.Hour

// pin is the version that the node's host is to be locked to; empty if it is to be locked to none.
func (v *View) pin() string {
	if v.Wish != nil {
		return ""
	}
	if pin := v.Rules.Versions.Pin; pin != "" {
		return pin
	}
	return v.freshPin()
}

// runs reports whether the node runs the version by its agent's word, and offers whether its host would go there.
func (v *View) runs(version string) bool {
	return marker.CompareVersions(v.Marks.Report.Current, version) == 0
}

func (v *View) offers(version string) bool {
	return v.offered() && marker.CompareVersions(v.Marks.Report.Available, version) == 0
}

// locked is the step of a node that waits, as far as its lock decides it.
func locked(in *Input) Next {
	m := &in.Marks
	l := m.Lock
	switch {
	case l == nil && (in.pin() == "" || m.Paused || in.NoPolicy):
		return Next{}
	case l == nil:
		return in.beginLock()
	case m.Paused || l.PausedSince != nil:
		return first(in, lockPaused, goOnLocked)
	}
	return goOnLocked(in)
}

// beginLock asks for the first lock of a host that is to have one.
func (in *Input) beginLock() Next {
	pin, r := in.pin(), &in.Marks.Report
	if !in.AgentReady || in.answer() != marker.StateReady || r.Current == "" || marker.SameLock(r.VersionLock, pin) {
		// What is wrong with an agent has a reason of its own. The very pin, set before the operator came, is not its own.
		return Next{}
	}
	if refused := in.pinRefused(); refused.Refuses() {
		return in.refused(intent.PhaseWaiting, refused)
	}
	switch {
	case r.Protocol < marker.LockProtocol:
		return in.refused(intent.PhaseWaiting, plan.Refuse(plan.ReasonAgentNotReady,
			plan.Messagef("its agent is older than this controller and can't lock its host to %s: update the agents", pin)))
	case r.VersionLock == "":
		return in.lockUnsaid(pin)
	case r.VersionLock != marker.LockLatest && !in.Rules.Versions.OverrideLocks:
		return in.lockedByOthers()
	}
	return in.askLock(&marker.Lock{Want: pin, Before: r.VersionLock}, "lock the host to "+pin)
}

// goOnLocked goes on with a host that is locked, or was asked to be.
func goOnLocked(in *Input) Next {
	l, pin, r := in.Marks.Lock, in.pin(), &in.Marks.Report
	refused := in.pinRefused()
	switch {
	case l.GiveBack && in.Marks.Paused:
	case in.NoPolicy && !in.Marks.Paused:
		// A policy that was deleted by mistake must not unlock a fleet.
	case pin == "" && !l.GiveBack && !in.NoPolicy:
		return in.askLock(l.Changed(l.Before, true), fmt.Sprintf("nothing pins the host any more: its lock is set back to %s", l.Before))
	case in.Marks.Paused:
		// A paused host is asked for nothing but what stood there before.
		return Next{}
	case pin != "" && (l.GiveBack || !marker.SameLock(pin, l.Want)):
		if refused.Refuses() {
			return in.refused(intent.PhaseWaiting, refused)
		}
		return in.askLock(l.Changed(pin, false), fmt.Sprintf("lock the host to %s", pin))
	}
	answer := in.answer()
	switch {
	case in.says(marker.StateError, marker.ReasonLockFailed):
		if !l.GiveBack && in.offers(l.Want) {
			// It chooses the pin without a lock.
			return Next{}
		}
		return in.lockAgain(plan.ReasonLockFailed, r.Message)
	case r.VersionLock == "" && (answer == marker.StateReady || in.says(marker.StateError, marker.ReasonLockedByOthers)):
		return in.lockUnsaid(l.Want)
	case !LockStands(in.Node), in.says(marker.StateReady, marker.ReasonLockStood) && l.Stood():
		// What others set to the very pin before is not the operator's to take back.
		return in.unlocked()
	case in.says(marker.StateError, marker.ReasonLockedByOthers), answer == marker.StateReady && in.isOthers(r.VersionLock):
		if in.isOthers(r.VersionLock) && !in.Rules.Versions.OverrideLocks {
			return in.lockedByOthers()
		}
		next := l.Changed(l.Want, false)
		if in.isOthers(r.VersionLock) {
			next.Before = r.VersionLock
		}
		return in.askLock(next, fmt.Sprintf("lock the host to %s, over the lock of others to %s", l.Want, r.VersionLock))
	case answer == marker.StateError:
		// Another error than the lock's has a reason of its own.
		return Next{}
	case answer != marker.StateReady && in.AgentReady:
		// Past its end no agent may begin it.
		late := in.deadline(in.Marks.Intent.Time, in.Settings.Deadlines.Staging)
		if late.passed {
			return in.askLock(l.Again(), locking(l).String())
		}
		next := in.stay(plan.ReasonLocking, locking(l)).as(intent.PhaseWaiting)
		next.Again = late.again
		return next
	case answer != marker.StateReady:
		return Next{}
	case !marker.SameLock(r.VersionLock, l.Want):
		return in.lockAgain(plan.ReasonLockFailed, fmt.Sprintf("the host has the lock %s again", r.VersionLock))
	case refused.Refuses():
		return in.refused(intent.PhaseWaiting, refused)
	}
	return Next{}
}

// lockUnsaid waits for the fact, which comes without being asked for. Without it a host is neither locked nor taken to
// be unlocked: what stands there could not be put back.
func (v *View) lockUnsaid(want string) Next {
	if pin := v.pin(); pin != "" && v.offers(pin) {
		return Next{}
	}
	return v.refused(intent.PhaseWaiting, plan.Refuse(plan.ReasonLockFailed, plan.Messagef("its lock is to be %s, and its Node does not say what it is: "+
		"the host does not say its settings, or the proxies or admission policies are older than its agent", want)))
}

// isOthers reports whether a value of the setting is neither the operator's nor what stood there before it.
func (v *View) isOthers(value string) bool {
	l := v.Marks.Lock
	return !marker.SameLock(value, l.Before) && !l.Ours(value)
}

func (v *View) lockedByOthers() Next {
	pin, lock := v.pin(), v.Marks.Report.VersionLock
	if v.offers(pin) || v.runs(pin) && !v.offered() {
		return Next{}
	}
	return v.refused(intent.PhaseWaiting, plan.Refuse(plan.ReasonLockedByOthers, plan.Messagef(
		"is to be locked to %s, and is locked to %s by others: set updates.version-lock on the host to latest, or versions.overrideLocks in the policy", pin, lock)))
}

// pinRefused is why a host is not asked for the pin.
func (v *View) pinRefused() plan.Refusal {
	pin, r := v.pin(), &v.Marks.Report
	if pin == "" || v.runs(pin) {
		return plan.Refusal{}
	}
	if marker.CompareVersions(pin, r.Current) < 0 && !v.Rules.Versions.Downgrade {
		return plan.Refuse(plan.ReasonPinLower, plan.Messagef("runs %s and is pinned to the lower %s: set versions.downgrade in the policy to allow that", r.Current, pin))
	}
	if listed, known := r.Offered.Lists(pin); known && !listed {
		all, more := r.Offered.Versions()
		list := strings.Join(all, ", ")
		if more {
			list += ", and older ones"
		}
		return plan.Refuse(plan.ReasonPinNotOffered, plan.Messagef("is pinned to %s, which its host is not offered; it is offered %s", pin, list))
	}
	return plan.Refusal{}
}

// askLock asks the agent for a lock, with a record of what stood there before in the same patch.
func (v *View) askLock(l *marker.Lock, message string) Next {
	c := v.stabilize()
	c.Marks.Lock = l
	put(&c.Labels, string(marker.KeyLocked), new("true"))
	return v.do(intent.ActLock, plan.ReasonLockWanted, message, c)
}

// lockAgain asks once more after the wait that follows on so many failures.
func (v *View) lockAgain(r plan.Reason, why string) Next {
	l := v.Marks.Lock
	again := v.Marks.Intent.Time.Add(v.Settings.BackOff(l.Failures + 1))
	if v.Now.Before(again) && !v.Marks.Intent.Time.After(v.Now.Add(v.Settings.RetryMax)) {
		return v.refused(intent.PhaseWaiting, plan.Refusal{Reason: r, Again: again,
			Message: plan.Messagef("%s; the host is asked again after %s", why, plan.Clock(again)).Until(again)})
	}
	return v.askLock(l.Again(), locking(l).String())
}

// unlocked ends a lock that was taken back.
func (v *View) unlocked() Next {
	c := v.keep()
	c.unlock()
	return v.do(intent.ActUnlock, plan.ReasonLockRestored, "the host's version-lock is "+v.Marks.Report.VersionLock+", and the operator's no more", c)
}

// unlock removes the record and the label that keeps the agent there, in one patch.
func (c *change) unlock() {
	c.Marks.Lock = nil
	if _, stands := c.v.Labels[string(marker.KeyLocked)]; stands {
		put(&c.Labels, string(marker.KeyLocked), nil)
	}
}

// lockPaused takes a lock back from a node whose own pause has lasted.
func lockPaused(in *Input) Next {
	l, m := in.Marks.Lock, &in.Marks
	note := func(since *time.Time, message string) Next {
		c, next := in.keep(), *l
		next.PausedSince = since
		c.Marks.Lock = &next
		return in.do(intent.ActNote, plan.ReasonPaused, message, c)
	}
	switch {
	case !m.Paused:
		return note(nil, "the node is not paused any more")
	case l.GiveBack:
		return Next{}
	case l.PausedSince == nil || l.PausedSince.After(in.Now.Add(in.Settings.RetryMax)):
		return note(in.moment(), "the node is paused: after a day its lock is taken back")
	}
	if end := l.PausedSince.Add(pausedForGood); in.Now.Before(end) {
		return none(end)
	}
	return in.askLock(l.Changed(l.Before, true), fmt.Sprintf("the node has been paused for a day: its lock is set back to %s", l.Before))
}

func locking(l *marker.Lock) plan.Message {
	if l.GiveBack {
		return plan.Messagef("the agent sets the host's version-lock back to %s", l.Want)
	}
	return plan.Messagef("the agent locks the host to %s", l.Want)
}

// LockStands reports whether the host of a node may have a lock of the operator, as far as its Node says.
func LockStands(n *fleet.Node) bool {
	l, r := n.Marks.Lock, &n.Marks.Report
	if l == nil || !l.GiveBack {
		return l != nil
	}
	if r.VersionLock == "" {
		// An agent leaves out what proxies or admission policies refuse.
		return true
	}
	id := n.Marks.Intent.ID
	switch {
	case r.Says(id, marker.StateError, marker.ReasonLockedByOthers):
		return false
	case r.Answer(id) != marker.StateReady, r.Protocol < marker.LockProtocol:
		// An agent that knows no locks answers too, and puts nothing back. Its Node may have an old fact.
		return true
	}
	return l.Ours(r.VersionLock) && r.VersionLock != l.Before
}

// pinChanged abandons an attempt that has not begun to reboot, where the version that hosts are locked to is another by
// now. The lock is changed once the node waits again.
func pinChanged(in *Input) Next {
	m, pin := &in.Marks, in.pin()
	why := ""
	switch l := m.Lock; {
	case in.Wish != nil || in.NoPolicy:
	case pin != "" && !m.Cycles() && marker.CompareVersions(pin, m.Intent.Target) != 0,
		pin != "" && l != nil && !marker.SameLock(pin, l.Want) && !in.pinRefused().Refuses():
		why = fmt.Sprintf("the policy pins the node to %s by now", pin)
	case pin == "" && l != nil:
		why = fmt.Sprintf("the policy does not pin the node to %s any more", l.Want)
	}
	switch {
	case why == "", m.Cycles() && in.Disrupted():
		// A cycle goes to what runs, whatever that is.
		return Next{}
	case m.Cycles():
		// The request for it stays.
		return in.do(intent.ActStabilize, plan.ReasonLockWanted, why, in.stabilize()).freeing(in.Slot)
	}
	return in.abandon(plan.ReasonLockWanted, why, marker.OutcomeAbandoned)
}

// leaveLocked takes the lock of a host back whose node leaves the operator's care. Cordon and slot go first, then the
// lock, then all that is left: the label locked keeps the agent there meanwhile.
func (in *Input) leaveLocked() Next {
	l := in.Marks.Lock
	asked := in.Marks.Intent.Action == marker.ActionStabilize && l.GiveBack
	if !asked || in.Disrupted() || in.Slot {
		c := in.leave(true)
		delete(c.Labels, string(marker.KeyLocked))
		kept := *l
		if !l.GiveBack {
			kept = *l.Changed(l.Before, true)
		}
		c.RemoveAll, c.Marks.AutoLabelled, c.Marks.Lock = false, in.Marks.AutoLabelled, &kept
		i := &c.Marks.Intent
		i.ID, i.Action, i.Time = in.newID(), marker.ActionStabilize, in.Now.Truncate(time.Second)
		i.Until = i.Time.Add(in.Settings.Deadlines.Staging)
		return in.do(intent.ActLeave, plan.ReasonLabelRemoved, fmt.Sprintf("the label is gone: the host's version-lock is set back to %s first", l.Before), c).freeing(in.Slot)
	}
	switch answer := in.answer(); {
	case !LockStands(in.Node):
		return in.unlocked()
	case !in.AgentReady:
		return in.stay(plan.ReasonLockLeft, plan.Messagef("the label is gone, and no agent is Ready to unlock the host. On the host: apiclient set updates.version-lock=%s; then kubectl bottlerocket clean %s --force=lock", l.Before, in.Name))
	case answer == marker.StateError, in.deadline(in.Marks.Intent.Time, in.Settings.Deadlines.Staging).passed:
		again := in.Marks.Intent.Time.Add(in.Settings.BackOff(l.Failures + 1))
		if answer == marker.StateError && in.Now.Before(again) {
			next := in.stay(plan.ReasonLockLeft, plan.Messagef("%s. On the host: apiclient set updates.version-lock=%s; then kubectl bottlerocket clean %s --force=lock",
				in.Marks.Report.Message, l.Before, in.Name))
			next.Again = again
			return next
		}
		c := in.begin(marker.ActionStabilize, in.Settings.Deadlines.Staging, "", "")
		c.Marks.Lock, c.Marks.Waiting = l.Again(), nil
		return in.do(intent.ActLeave, plan.ReasonLabelRemoved, locking(l).String(), c)
	}
	next := in.stay(plan.ReasonLocking, locking(l))
	next.Again = in.deadline(in.Marks.Intent.Time, in.Settings.Deadlines.Staging).again
	return next
}
