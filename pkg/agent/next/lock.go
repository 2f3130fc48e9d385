package next

import (
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// heedAgain is how long after a refresh the next one is asked for while the host does not heed its lock yet: the
	// host's configuration files are written after the setting was accepted, so a refresh at once may use the old ones.
	heedAgain = 5 * time.Second
	// heedPatience is how long a host may not heed its lock before that is an error.
	heedPatience = 2 * time.Minute
)

// Locking is what an agent's process remembers of an intent that wants the host locked. Losing it, with the process,
// costs time and no safety: the setting itself is looked at before each change.
type Locking struct {
	// ID is the intent.
	ID string
	// Since is when this process first saw the setting as it is wanted; zero if it hasn't.
	Since time.Time
	// Tries counts how often this process sent the change.
	Tries int
	// Before is Last.Timestamp as it was just before the last of them.
	Before string
	// Refused is the host's answer to the last of them, if that was a refusal.
	Refused string
}

// Wish gives the view the wish to lock the host, nil if there is none, and what the process remembers of it.
func (m *Memory) Wish(v *View, l *marker.Lock) {
	if l == nil {
		return
	}
	if m.locking.ID != v.Intent.ID {
		m.locking = Locking{ID: v.Intent.ID}
	}
	if m.locking.Since.IsZero() && isLocked(l, v.Host.VersionLock) {
		m.locking.Since = v.Now
	}
	v.Lock, v.Locking = l, m.locking
}

// sentLock notes that the change of the setting was sent, and how the host took it.
func (m *Memory) sentLock(v View, r Result) {
	m.locking = Locking{ID: v.Intent.ID, Since: v.Locking.Since, Tries: v.Locking.Tries + 1, Before: v.Host.Last.Timestamp}
	if r.Delivery == DeliveryRefused {
		m.locking.Refused = r.Body
	}
}

// lockWanted returns what the setting is to be. What is given back is what stood there, whatever the wish says besides.
func lockWanted(l *marker.Lock) string {
	if l.GiveBack {
		return l.Before
	}
	return l.Want
}

// isLocked reports whether the setting is as it is wanted. What is given back is so byte for byte, unless others set
// the same in other words: what this operator never asked for is left as it is (S5).
func isLocked(l *marker.Lock, setting string) bool {
	if l.GiveBack && l.Ours(setting) {
		return setting == l.Before
	}
	return marker.SameLock(setting, lockWanted(l))
}

// lock returns the next step towards the lock that is wanted, and whether there is one. The host is locked once it
// chooses by the lock; until then the intent is not answered with ready. An answer ends that: after ready a lock that
// others change is a fact and no more, and after an error the host is not touched.
func lock(v View, answer marker.State) (Step, bool) {
	l, setting := v.Lock, v.Host.VersionLock
	if l == nil || answer == marker.StateReady {
		return Step{}, false
	}
	reason, failed := v.Report.Reason, lockFailed(v)
	switch {
	case isLocked(l, setting):
		return heed(v)
	case answer == marker.StateError && (reason == marker.ReasonLockFailed || reason == marker.ReasonLockedByOthers):
		return keepFresh(v), true
	case setting == "" && v.Locking.Refused != "":
		return failed("the host does not say its settings any more, and refused the change: %s", v.Locking.Refused), true
	case setting == "":
		return failed("the host does not say its settings, which may be locked down"), true
	case !marker.SameLock(setting, l.Before) && !l.Ours(setting), !v.Locking.Since.IsZero() && !l.Ours(setting):
		return failed("it is %s, which this operator did not set", setting).because(marker.ReasonLockedByOthers), true
	case !v.Locking.Since.IsZero():
		return failed("it became %s again", setting), true
	case answer == marker.StateError:
		return failed("another error was answered first, and nothing begins after that"), true
	case v.Locking.Tries >= tries && v.Locking.Refused != "":
		return failed("the host refused: %s", v.Locking.Refused), true
	case v.Locking.Tries >= tries:
		return failed("it is still %s after %d tries", setting, tries), true
	case answer != marker.StateBusy || v.Affirmed != v.Intent.ID:
		return busy(v, answer), true
	}
	return Step{Kind: StepCommand, Command: CommandLock, Lock: lockWanted(l)}, true
}

// lockStood is the reason of an answer that the host is locked as wanted, where no agent has touched it for this
// intent: each says busy before it does.
func lockStood(v View, answer marker.State) marker.ReportReason {
	untouched := answer == marker.StateNone || answer == marker.StateError && v.Report.Reason == marker.ReasonLockedByOthers
	if v.Lock == nil || v.Lock.GiveBack || !untouched {
		return marker.ReportReasonNone
	}
	return marker.ReasonLockStood
}

// heed returns the refresh that shows whether the host chooses by its lock, and whether there is one: none if the host
// heeds the lock. A process that changed the setting goes by a refresh after that.
func heed(v View) (Step, bool) {
	h, a := v.Host, v.Locking
	refreshed := h.Last.Command == CommandRefresh
	found := refreshed && h.Last.Success && !h.SawNothing
	looked := found && (a.Tries == 0 || h.Last.Timestamp != a.Before)
	if looked && choosesBy(lockWanted(v.Lock), h) {
		return Step{}, false
	}
	left := a.Since.Add(heedPatience).Sub(v.Now)
	if left <= 0 {
		return once(v, lockFailed(v)("the host does not heed it after %s: %s", heedPatience, heedless(v, looked))), true
	}
	pause := heedAgain
	if refreshed && !found {
		// A repository that is down is not asked more often than without a lock.
		pause = max(pause, v.RefreshEvery)
	}
	if again := v.RefreshTried.Add(pause).Sub(v.Now); again > 0 {
		return wait(min(again, left)), true
	}
	return command(CommandRefresh), true
}

// choosesBy reports whether a host that has just looked chooses as one with this lock does. One that doesn't list the
// version has nothing to choose, and one without a lock chooses anything.
func choosesBy(lock string, h Host) bool {
	if lock == marker.LockLatest {
		return true
	}
	version, chosen := strings.TrimPrefix(lock, "v"), ""
	if h.ChosenKnown {
		chosen = h.Chosen
	}
	listed, known := h.Offered.Lists(version)
	return chosen == version || chosen == "" && h.Version == version || known && !listed
}

// heedless returns why the host is not known to heed its lock.
func heedless(v View, looked bool) string {
	h := v.Host
	switch {
	case h.Last.Command == CommandRefresh && !h.Last.Success:
		return refreshing + problem(h)
	case h.SawNothing:
		return refreshing + sawNothing
	case !looked:
		return refreshing + noRecord(v.Asked)
	case h.ChosenKnown && h.Chosen != "":
		return "it chooses " + h.Chosen
	}
	return "it chooses nothing"
}

// lockFailed returns what makes an error of the reason why the host is not locked as wanted.
func lockFailed(v View) func(format string, args ...any) Step {
	return func(format string, args ...any) Step {
		return report(marker.StateError, "setting version-lock to %s: "+format, append([]any{lockWanted(v.Lock)}, args...)...).
			because(marker.ReasonLockFailed)
	}
}
