package next_test

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// wishes is a wish for 1.2.0 on a host whose setting was latest, and which was locked to 1.1.0 meanwhile.
func wishes(v *next.View) {
	v.Lock = &marker.Lock{Want: v2, Before: "latest", Asked: []string{"1.1.0"}}
	v.Locking.ID = v.Intent.ID
}

// givesBack is that wish taken back.
func givesBack(before string) change {
	return func(v *next.View) {
		wishes(v)
		v.Lock = &marker.Lock{Want: before, Before: before, Asked: []string{"1.1.0", v2, v3}, GiveBack: true}
	}
}

func setting(value string) change { return func(v *next.View) { v.Host.VersionLock = value } }

func reason(r marker.ReportReason, message string) change {
	return func(v *next.View) { v.Report.Reason, v.Report.Message = r, message }
}

// sent: the change was sent so often.
func sent(times int, refused string) change {
	return func(v *next.View) {
		v.Locking.Tries, v.Locking.Before, v.Locking.Refused = times, "t0", refused
	}
}

// since: the setting is as wanted, as this process saw so long ago, and the last refresh came after the change.
func since(d time.Duration) change {
	return func(v *next.View) { v.Locking.Since = v.Now.Add(-d) }
}

func chooses(version string) change {
	return func(v *next.View) {
		v.Host.Chosen, v.Host.State = version, next.HostAvailable
		if version == "" {
			v.Host.State, v.Host.ChosenKnown = next.HostIdle, false
		}
	}
}

func refreshedAgo(d time.Duration) change {
	return func(v *next.View) { v.RefreshTried = v.Now.Add(-d) }
}

const notSet = "say error LockFailed: setting version-lock to 1.2.0: "

// S5, S6: each step towards a lock, and each reason not to take it.
func TestDecideLock(t *testing.T) {
	errored := answered(marker.StateError)
	check(t, marker.ActionStabilize, []line{
		{"no wish", []change{setting("latest")}, "say ready"},
		{"answered with ready: what others do to the setting is a fact", []change{wishes, setting("latest"), answered(marker.StateReady)}, "rest"},
		{"the host was not asked what is available yet: it may turn out to have no updates", []change{wishes, setting("latest"), with(func(v *next.View) { v.RefreshTried = time.Time{} })}, "ask refresh"},
		{"that failed, which keeps no host from its lock", []change{wishes, setting("latest"), unoffered, host(next.HostIdle, failed(next.CommandRefresh, "no route"))}, "say busy"},
		{"busy before the setting is changed", []change{wishes, setting("latest")}, "say busy"},
		{"busy of an earlier process has to be accepted once more", []change{wishes, setting("latest"), answered(marker.StateBusy)}, "say busy: taken up by the agent that started at 2026-09-20T09:00:00Z"},
		{"then it is changed", []change{wishes, setting("latest"), affirmed}, "ask lock"},
		{"also from what was asked for before", []change{wishes, setting("1.1.0"), affirmed}, "ask lock"},
		{"a host that is busy with a command is waited for", []change{wishes, affirmed, locked(time.Minute)}, "wait"},
		{"and not for ever", []change{wishes, affirmed, locked(26 * time.Minute)}, "say error: the host has been busy..."},
		{"a host with another updater", []change{wishes, setting("latest"), affirmed, with(func(v *next.View) { v.Host.ForeignBoot = true })}, "say error AnotherUpdater..."},
		{"a host that can't update in place", []change{wishes, setting("latest"), affirmed, with(func(v *next.View) { v.Unsupported = "no route" })}, "say error InterfaceUnsupported..."},
		{"the proxy says whether it is too late, and this clock does not", []change{wishes, setting("latest"), affirmed, with(func(v *next.View) { v.Intent.Until = v.Now })}, "ask lock"},
		{"what was asked for, in other words, is others'", []change{wishes, setting("v1.1.0"), affirmed}, "say error LockedByOthers..."},
		{"the host says no settings", []change{wishes}, notSet + "the host does not say its settings, which may be locked down"},
		{"after it refused", []change{wishes, affirmed, sent(1, "Data store error")}, notSet + "the host does not say its settings any more, and refused the change: Data store error"},
		{"others locked it", []change{wishes, setting("v1.3.0")}, "say error LockedByOthers: setting version-lock to 1.2.0: it is v1.3.0, which this operator did not set"},
		{"others locked it after busy", []change{wishes, setting("v1.3.0"), affirmed}, "say error LockedByOthers..."},
		{"that stands", []change{wishes, setting("v1.3.0"), errored, reason(marker.ReasonLockedByOthers, "m")}, "rest"},
		{"and is not tried again when they are gone", []change{wishes, setting("latest"), errored, reason(marker.ReasonLockedByOthers, "m")}, "rest"},
		{"others set the very value", []change{wishes, setting("v1.2.0"), errored, reason(marker.ReasonLockedByOthers, "m")}, "say ready LockStood"},
		{"another error came first", []change{wishes, setting("latest"), errored}, notSet + "another error was answered first, and nothing begins after that"},
		{"another error came first, and the setting is fine", []change{wishes, setting(v2), errored}, "say ready"},
		{"two tries", []change{wishes, setting("latest"), affirmed, sent(2, "no")}, "ask lock"},
		{"three tries that were refused", []change{wishes, setting("latest"), affirmed, sent(3, "no")}, notSet + "the host refused: no"},
		{"three tries without a trace", []change{wishes, setting("latest"), affirmed, sent(3, "")}, notSet + "it is still latest after 3 tries"},
		{"that stands", []change{wishes, setting("latest"), errored, reason(marker.ReasonLockFailed, "m")}, "rest"},
		{"others put it back", []change{wishes, setting("latest"), affirmed, since(time.Minute)}, "say error LockedByOthers..."},
		{"a late request of this operator's put it back", []change{wishes, setting("1.1.0"), affirmed, since(time.Minute)}, notSet + "it became 1.1.0 again"},
	})
}

// A lock is ready once the host chooses by it, as a refresh shows that came after the change.
func TestDecideHeed(t *testing.T) {
	is := setting("v1.2.0")
	check(t, marker.ActionStabilize, []line{
		{"without a busy: nothing is changed, and the answer says so", []change{wishes, is}, "say ready LockStood"},
		{"changed, and not refreshed since", []change{wishes, is, affirmed, since(0), sent(1, ""), with(func(v *next.View) { v.Locking.Before = "t1" }), refreshedAgo(time.Minute)}, "ask refresh"},
		{"the refresh is under way", []change{wishes, is, affirmed, since(0), asked(next.CommandRefresh, "t1")}, "wait"},
		{"changed, and refreshed since", []change{wishes, is, affirmed, since(time.Second), sent(1, "")}, "say ready"},
		{"the host runs it, and chooses nothing", []change{wishes, is, affirmed, since(0), chooses(""), with(func(v *next.View) { v.Host.Version = v2 })}, "say ready"},
		{"the host runs it, and chooses another", []change{wishes, is, affirmed, since(0), chooses(v3), with(func(v *next.View) { v.Host.Version = v2 })}, "ask refresh"},
		{"the host does not list it", []change{wishes, is, affirmed, since(0), chooses(v3), with(func(v *next.View) { v.Host.Offered = "1.3.0,1.1.0" })}, "say ready"},
		{"its list was cut before it", []change{wishes, is, affirmed, since(0), chooses(v3), with(func(v *next.View) { v.Host.Offered = "1.3.0,more" })}, "ask refresh"},
		{"the host chooses another: its files are late", []change{wishes, is, affirmed, since(0), chooses(v3), refreshedAgo(4 * time.Second)}, "wait"},
		{"five seconds later", []change{wishes, is, affirmed, since(0), chooses(v3), refreshedAgo(5 * time.Second)}, "ask refresh"},
		{"nothing is chosen, and it does not run", []change{wishes, is, affirmed, since(0), chooses(""), refreshedAgo(time.Second)}, "wait"},
		{"two minutes later", []change{wishes, is, affirmed, since(2 * time.Minute), chooses(v3)}, notSet + "the host does not heed it after 2m0s: it chooses 1.3.0"},
		{"two minutes later, with nothing", []change{wishes, is, affirmed, since(2 * time.Minute), chooses("")}, notSet + "the host does not heed it after 2m0s: it chooses nothing"},
		{"which is told once", []change{wishes, is, answered(marker.StateError), since(3 * time.Minute), chooses(v3), reason(marker.ReasonLockFailed,
			"setting version-lock to 1.2.0: the host does not heed it after 2m0s: it chooses 1.3.0")}, "rest"},
		{"and can pass", []change{wishes, is, answered(marker.StateError), since(time.Hour), reason(marker.ReasonLockFailed, "m")}, "say ready"},
		{"the repository is down, which is not asked every five seconds", []change{wishes, is, affirmed, since(time.Minute), host(next.HostIdle, failed(next.CommandRefresh, "no route")), refreshedAgo(10 * time.Second)}, "wait"},
		{"for two minutes", []change{wishes, is, affirmed, since(2 * time.Minute), host(next.HostIdle, failed(next.CommandRefresh, "no route"))},
			notSet + "the host does not heed it after 2m0s: refreshing what is available: no route"},
		{"it found no release", []change{wishes, is, affirmed, since(2 * time.Minute), silent}, notSet + "the host does not heed it after 2m0s: refreshing what is available: the refresh succeeded but..."},
		{"something else was its last command", []change{wishes, is, affirmed, since(time.Minute), host(next.HostStaged, written)}, "ask refresh"},
		{"for two minutes", []change{wishes, is, affirmed, since(2 * time.Minute), host(next.HostStaged, written)}, notSet + "the host does not heed it after 2m0s: refreshing what is available: the host's command ended without a record"},
	})
	for _, left := range []time.Duration{time.Second, 3 * time.Second} {
		v := view(marker.ActionStabilize, wishes, is, affirmed, since(2*time.Minute-left), chooses(v3), refreshedAgo(0))
		assert.Equal(t, next.Decide(v).After, left, "no wait is longer than the patience")
	}
}

// S5: what is given back is what stood there, byte for byte, and ours is put back only over ours.
func TestDecideGiveBack(t *testing.T) {
	check(t, marker.ActionStabilize, []line{
		{"busy", []change{givesBack("latest"), setting(v2)}, "say busy"},
		{"then", []change{givesBack("latest"), setting(v2), affirmed}, "ask lock"},
		{"the version that was asked for, in other words, by others", []change{givesBack("latest"), setting("v1.2.0"), affirmed}, "say error LockedByOthers..."},
		{"it stands again: any refresh will do", []change{givesBack("latest"), setting("latest"), affirmed, since(0), chooses(v3)}, "say ready"},
		{"but one that came after it", []change{givesBack("latest"), setting("latest"), affirmed, since(0), sent(1, ""), with(func(v *next.View) { v.Locking.Before = "t1" })}, "ask refresh"},
		{"it stands before anything was done", []change{givesBack("latest"), setting("latest")}, "say ready"},
		{"others locked it", []change{givesBack("latest"), setting("1.0.0"), affirmed}, "say error LockedByOthers: setting version-lock to latest: it is 1.0.0, which..."},
		{"the same version that was asked for in other words", []change{givesBack("v1.1.0"), setting("1.1.0"), affirmed}, "ask lock"},
		{"byte for byte", []change{givesBack("v1.1.0"), setting("v1.1.0"), affirmed, since(0), chooses(v1)}, "say ready"},
		{"the same version by others", []change{givesBack("v1.5.0"), setting("1.5.0"), affirmed, chooses("1.5.0")}, "say ready"},
		{"it was put back, and became ours again", []change{givesBack("latest"), setting(v2), affirmed, since(time.Minute)}, "say error LockFailed: setting version-lock to latest: it became 1.2.0 again"},
	})
	v := view(marker.ActionStabilize, givesBack("v1.1.0"), setting("1.1.0"), affirmed)
	assert.Equal(t, next.Decide(v).Lock, "v1.1.0")
	v.Lock.Want = v3
	assert.Equal(t, next.Decide(v).Lock, "v1.1.0", "whatever the wish says besides")
	v = view(marker.ActionStabilize, wishes, setting("latest"), affirmed)
	assert.Equal(t, next.Decide(v).Lock, v2)
}

// S6: no other action changes a lock.
func TestDecideLockNowhereElse(t *testing.T) {
	for _, a := range marker.Actions() {
		for _, s := range []marker.State{marker.StateNone, marker.StateBusy, marker.StateReady, marker.StateError} {
			v := view(a, wishes, setting("latest"), affirmed, answered(s))
			step := next.Decide(v)
			assert.Equal(t, step.Command == next.CommandLock, a == marker.ActionStabilize && s == marker.StateBusy, "%s %s: %+v", a, s, step)
		}
	}
}

// What is remembered of a wish is of its intent alone, and of one boot.
func TestMemoryOfAWish(t *testing.T) {
	p := newProcess()
	wish := &marker.Lock{Want: v2, Before: "latest"}
	p.host.VersionLock = "latest"
	look := func() next.View {
		p.look(1)
		v := p.view()
		p.Wish(&v, wish)
		return v
	}
	change := func(d next.Delivery, body string) next.View {
		v := look()
		p.Sending(v, p.now, next.CommandLock)
		p.Sent(v, p.now, next.CommandLock, next.Result{Delivery: d, Body: body}, time.Hour)
		return look()
	}
	none := p.view()
	p.Wish(&none, nil)
	assert.Assert(t, none.Lock == nil && none.Locking == next.Locking{})
	v := look()
	assert.Assert(t, v.Lock == wish && v.Locking == next.Locking{ID: id}, "%+v", v.Locking)
	v = change(next.DeliveryRefused, "no")
	assert.Equal(t, v.Locking, next.Locking{ID: id, Tries: 1, Before: "t1", Refused: "no"})
	assert.Equal(t, v.Asked, next.Asked{}, "no command of the host's was asked for")
	for i, d := range []next.Delivery{next.NotDelivered, next.DeliveryUnknown, next.Delivered} {
		v = change(d, "no")
		assert.Equal(t, v.Locking, next.Locking{ID: id, Tries: 2 + i, Before: "t1"})
	}
	p.host.VersionLock = "v1.2.0"
	seen := look()
	assert.Equal(t, seen.Locking.Since, p.now)
	p.host.VersionLock = "latest"
	assert.Equal(t, look().Locking.Since, seen.Now, "since the first look that showed it")
	p.intent = "8"
	assert.Equal(t, look().Locking, next.Locking{ID: "8"})
	p.host.VersionLock = v2
	look()
	p.host.BootID = "b2"
	v = look()
	assert.Equal(t, v.Locking.Since, v.Now, "another boot")
}

// What is remembered of a wish counts in common terms, and so far as it makes a difference.
func TestMemoryOfAWishInTerms(t *testing.T) {
	lived := func(began time.Time, intent, record string, tries int, refused string) next.Memory {
		p := &process{Memory: next.NewMemory(began, time.Hour), now: began, intent: intent}
		p.host = next.Host{BootID: "b1", VersionLock: v2, Last: next.LastCommand{Timestamp: record}}
		p.look(1)
		v := p.view()
		p.Wish(&v, &marker.Lock{Want: v2, Before: "latest"})
		for range tries {
			p.Sent(v, p.now, next.CommandLock, next.Result{Delivery: next.DeliveryRefused, Body: refused}, time.Hour)
			v = p.view()
			p.Wish(&v, &marker.Lock{Want: v2, Before: "latest"})
		}
		same := func(s string) func(string) string {
			return func(found string) string {
				if found == "" {
					return ""
				}
				assert.Equal(t, found, s)
				return "x"
			}
		}
		return p.In(next.Terms{Moment: func(at time.Time) time.Time {
			if at.IsZero() {
				return at
			}
			return now.Add(at.Sub(began))
		}, ID: same(intent), Boot: same("b1"), Timestamp: same(record)})
	}
	one := lived(now, "7", "t1", 2, "no")
	assert.Equal(t, one, lived(now.Add(time.Hour), "8", "t2", 2, "no"))
	assert.Assert(t, one != lived(now, "7", "t1", 1, "no"))
	assert.Assert(t, one != lived(now, "7", "t1", 2, "not"))
	assert.Equal(t, lived(now, "7", "t1", 3, "no"), lived(now, "7", "t1", 4, "no"))
}

// Whatever is on the Node and the host, a lock is changed only by stabilize, after an accepted busy, over what stood
// there before or was asked for, and no step waits for nothing.
func TestDecideLockEverywhere(t *testing.T) {
	changes := 0
	settings := []string{"", "latest", "1.1.0", "v1.1.0", "1.2.0", "v1.2.0", "1.3.0"}
	for _, wish := range []marker.Lock{{Want: v2, Before: "latest"}, {Want: v2, Before: "v1.1.0", Asked: []string{"latest"}},
		{Want: "v1.1.0", Before: "v1.1.0", Asked: []string{"1.1.0", v2}, GiveBack: true}, {Want: v2, Before: "latest", Asked: []string{v2}, GiveBack: true}} {
		for _, value := range settings {
			for _, s := range []marker.State{marker.StateNone, marker.StateBusy, marker.StateReady, marker.StateError} {
				for _, extra := range []change{affirmedAlone(""), affirmedAlone(id)} {
					for _, remembered := range []change{sent(0, ""), sent(3, "no"), since(time.Minute), since(time.Hour)} {
						v := view(marker.ActionStabilize, answered(s), setting(value), extra, wishes, remembered)
						v.Lock = &wish
						step := next.Decide(v)
						assert.Assert(t, step.Kind != next.StepWait || step.After > 0)
						if step.Command != next.CommandLock {
							continue
						}
						changes++
						about := fmt.Sprintf("%+v over %q, answered %q", wish, value, s)
						assert.Assert(t, s == marker.StateBusy && v.Affirmed == id, about)
						assert.Assert(t, value != "" && (marker.SameLock(value, wish.Before) || wish.Ours(value)), about)
						want := wish.Want
						if wish.GiveBack {
							want = wish.Before
						}
						assert.Assert(t, step.Lock == want && value != want, about)
					}
				}
			}
		}
	}
	assert.Assert(t, changes > 5, "only %d changes", changes)
}

func affirmedAlone(intent string) change { return func(v *next.View) { v.Affirmed = intent } }
