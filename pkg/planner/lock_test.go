package planner_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// says is what a host says of its lock, and what it lists.
func saysLock(lock string) change {
	return func(n *fleet.Node) { n.Marks.Report.VersionLock = lock }
}

func lists(versions ...string) change {
	return func(n *fleet.Node) { n.Marks.Report.Offered = marker.OffersOf(versions) }
}

// wanted is a node whose host was asked for a lock, a minute ago; what stood there before was latest.
func wantedLock(want string, changes ...func(*marker.Lock)) change {
	return func(n *fleet.Node) {
		n.Marks.Lock = &marker.Lock{Want: want, Before: marker.LockLatest}
		n.Labels = map[string]string{string(marker.KeyLocked): "true"}
		for _, c := range changes {
			c(n.Marks.Lock)
		}
	}
}

func givenBack(l *marker.Lock) {
	*l = marker.Lock{Want: l.Before, Before: l.Before, Asked: []string{l.Want}, GiveBack: true}
}

func askedBefore(values ...string) func(*marker.Lock) {
	return func(l *marker.Lock) { l.Asked = values }
}

func pausedSince(ago time.Duration) func(*marker.Lock) {
	return func(l *marker.Lock) { l.PausedSince = new(now.Add(-ago)) }
}

func lockFailures(n int) func(*marker.Lock) { return func(l *marker.Lock) { l.Failures = n } }

// noAct is what a rule of locks leaves to others.
const noAct = ""

// A host is locked to the pin by its own setting, with a record of what stood there before, and unlocked when the pin
// goes; all of it while the node waits.
func TestLock(t *testing.T) {
	pin := func(s *policy.Settings) { s.Versions.Pin = v2 }
	pinDown := func(s *policy.Settings) { s.Versions.Pin, s.Versions.Downgrade = v1, true }
	override := func(s *policy.Settings) { s.Versions.Pin, s.Versions.OverrideLocks = v2, true }
	none := func(*policy.Settings) {}
	at := []change{saysLock(marker.LockLatest), lists(v3, v2, v1)}
	done := []change{saysLock(v2), lists(v3, v2, v1)}
	unsaid := []change{lists(v3, v2, v1)}
	failed := because(marker.ReasonLockFailed)
	others := because(marker.ReasonLockedByOthers)
	for _, tc := range []struct {
		name    string
		policy  func(*policy.Settings)
		changes []change
		want    string
		// lock is the wish that the step writes, "gone" for none; empty: the step writes none.
		lock string
	}{
		{"no pin", none, at, "UpToDate wait UpToDate", noAct},
		{"a pin", pin, at, "Waiting Lock LockWanted", "1.2.0 latest"},
		{"a pin that the host chooses by itself", pin, append(at, offered(v2)), "Waiting Lock LockWanted", "1.2.0 latest"},
		{"a pin that it runs", func(s *policy.Settings) { s.Versions.Pin = v1 }, append(at, offered(v2)), "Waiting Lock LockWanted", "1.1.0 latest"},
		{"another is offered", pin, append(done, wantedLock(v2), offered(v3)), "Waiting wait HeldAtVersion", noAct},
		{"a pin that is not offered", pin, []change{saysLock(marker.LockLatest), lists(v3, v1), offered(v3)}, "Waiting wait PinNotOffered", noAct},
		{"a list that says nothing", pin, []change{saysLock(marker.LockLatest), offered(v3)}, "Waiting Lock LockWanted", "1.2.0 latest"},
		{"a lower pin", func(s *policy.Settings) { s.Versions.Pin = v1 }, append(at, runs(v2)), "Waiting wait PinLower", noAct},
		{"a lower pin that is allowed", pinDown, append(at, runs(v2)), "Waiting Lock LockWanted", "1.1.0 latest"},
		{"the very pin, set before", pin, append(done, offered(v2)), "Waiting Stage UpdateAvailable", noAct},
		{"the very pin with a v", pin, []change{saysLock("v" + v2), lists(v2, v1), offered(v2)}, "Waiting Stage UpdateAvailable", noAct},
		{"a lock of others", pin, []change{saysLock(v3), lists(v3, v2, v1), offered(v3)}, "Waiting wait LockedByOthers", noAct},
		{"a lock of others at the pin's place", pin, []change{saysLock(v3), lists(v3, v2, v1), offered(v2)}, "Waiting Stage UpdateAvailable", noAct},
		{"a lock of others that gives way", override, []change{saysLock(v3), lists(v3, v2, v1)}, "Waiting Lock LockWanted", "1.2.0 1.3.0"},
		{"a lock of others on a host that runs the pin", func(s *policy.Settings) { s.Versions.Pin = v1 }, []change{saysLock(v3), lists(v3, v2, v1)}, "UpToDate wait UpToDate", noAct},
		{"and would leave it", func(s *policy.Settings) { s.Versions.Pin = v1 }, []change{saysLock(v3), lists(v3, v2, v1), offered(v3)}, "Waiting wait LockedByOthers", noAct},
		{"a host that does not say its settings", pin, []change{lists(v3, v2, v1)}, "Waiting wait LockFailed", noAct},
		{"such a host that chooses the pin", pin, []change{lists(v3, v2, v1), offered(v2)}, "Waiting Stage UpdateAvailable", noAct},
		{"an agent that knows no locks", pin, append(at, protocol(3)), "Waiting wait AgentNotReady", noAct},
		{"a paused node", pin, append(at, paused), "Waiting wait Paused", noAct},
		{"no agent", pin, append(at, agentAway), "Waiting wait AgentNotReady", noAct},
		{"an agent that has not answered", pin, append(at, unanswered), "Waiting wait AgentNotReady", noAct},

		{"asked", pin, append(at, wantedLock(v2), unanswered), "Waiting wait Locking", noAct},
		{"begun", pin, append(at, wantedLock(v2), answers(marker.StateBusy, "")), "Waiting wait Locking", noAct},
		{"asked, and it is too late to begin", pin, append(at, wantedLock(v2), unanswered, issued(time.Hour)), "Waiting Lock LockWanted", "1.2.0 latest asked 1.2.0 failures 1"},
		{"others had set the very pin, which its Node did not tell yet", pin, append(done, wantedLock(v2), because(marker.ReasonLockStood)), "Waiting Unlock LockRestored", "gone"},
		{"asked for once more, and it stood", pin, append(done, wantedLock(v2, askedBefore(v2)), because(marker.ReasonLockStood), offered(v2)), "Waiting Stage UpdateAvailable", noAct},
		{"given back by the word of an agent that knows no locks", none, append(done, wantedLock(v2, givenBack), issued(time.Hour)), "Waiting Lock LockWanted", "latest latest asked 1.2.0 failures 1 back"},
		{"asked, and no agent", pin, append(at, wantedLock(v2), unanswered, agentAway), "Waiting wait AgentNotReady", noAct},
		{"locked", pin, append(done, wantedLock(v2), offered(v2)), "Waiting Stage UpdateAvailable", noAct},
		{"locked, and the pin is gone from the repository", pin, []change{saysLock(v2), lists(v3, v1), wantedLock(v2)}, "Waiting wait PinNotOffered", noAct},
		{"locked, and what failed here was newer", pin, append(done, wantedLock(v2), offered(v2), failedOnce(time.Hour, v3)), "Waiting Stage UpdateAvailable", noAct},
		{"locked, and that very version failed", pin, append(done, wantedLock(v2), offered(v2), failedOnce(time.Hour, v2)), "Waiting wait BackingOff", noAct},
		{"another pin", func(s *policy.Settings) { s.Versions.Pin = v3 }, append(done, wantedLock(v2)), "Waiting Lock LockWanted", "1.3.0 latest asked 1.2.0"},
		{"another pin while the first is asked for", func(s *policy.Settings) { s.Versions.Pin = v3 }, append(at, wantedLock(v2), unanswered), "Waiting Lock LockWanted", "1.3.0 latest asked 1.2.0"},
		{"another pin that is not offered", func(s *policy.Settings) { s.Versions.Pin = "1.9.0" }, append(done, wantedLock(v2)), "Waiting wait PinNotOffered", noAct},
		{"the pin is gone", none, append(done, wantedLock(v2)), "Waiting Lock LockWanted", "latest latest asked 1.2.0 back"},
		{"the pin is gone while it is asked for", none, append(at, wantedLock(v2), unanswered), "Waiting Lock LockWanted", "latest latest asked 1.2.0 back"},
		{"given back, not answered", none, append(done, wantedLock(v2, givenBack), unanswered), "Waiting wait Locking", noAct},
		{"given back", none, append(at, wantedLock(v2, givenBack)), "Waiting Unlock LockRestored", "gone"},
		{"others have locked it since", none, []change{saysLock(v3), wantedLock(v2, givenBack), answers(marker.StateError, "x"), others}, "Waiting Unlock LockRestored", "gone"},
		{"others have locked it since, and its agent has not looked", none, []change{saysLock(v3), wantedLock(v2, givenBack)}, "Waiting Unlock LockRestored", "gone"},
		{"pinned again while it is given back", pin, append(done, wantedLock(v2, givenBack), unanswered), "Waiting Lock LockWanted", "1.2.0 latest asked 1.2.0"},

		{"locking failed", pin, append(at, wantedLock(v2), answers(marker.StateError, "x"), failed), "Waiting wait LockFailed", noAct},
		{"and is tried again", pin, append(at, wantedLock(v2), answers(marker.StateError, "x"), failed, issued(10*time.Minute)), "Waiting Lock LockWanted", "1.2.0 latest asked 1.2.0 failures 1"},
		{"later each time", pin, append(at, wantedLock(v2, lockFailures(1)), answers(marker.StateError, "x"), failed, issued(10*time.Minute)), "Waiting wait LockFailed", noAct},
		{"failed, and the host chooses the pin", pin, append(at, wantedLock(v2), answers(marker.StateError, "x"), failed, offered(v2)), "Waiting Stage UpdateAvailable", noAct},
		{"failed, and the pin is another", func(s *policy.Settings) { s.Versions.Pin = v3 }, append(at, wantedLock(v2), answers(marker.StateError, "x"), failed), "Waiting Lock LockWanted", "1.3.0 latest asked 1.2.0"},
		{"others were faster", pin, []change{saysLock(v3), lists(v3, v2, v1), offered(v3), wantedLock(v2), answers(marker.StateError, "x"), others}, "Waiting wait LockedByOthers", noAct},
		{"others were faster, and give way", override, []change{saysLock(v3), wantedLock(v2), answers(marker.StateError, "x"), others}, "Waiting Lock LockWanted", "1.2.0 1.3.0 asked 1.2.0"},
		{"others locked it later", pin, []change{saysLock(v3), lists(v3, v2, v1), offered(v3), wantedLock(v2)}, "Waiting wait LockedByOthers", noAct},
		{"a host that fell back to what it had", pin, append(at, wantedLock(v2), issued(time.Hour)), "Waiting Lock LockWanted", "1.2.0 latest asked 1.2.0 failures 1"},
		{"a late commit of an earlier wish", pin, []change{saysLock(v3), wantedLock(v2, askedBefore(v3)), issued(time.Hour)}, "Waiting Lock LockWanted", "1.2.0 latest asked 1.3.0,1.2.0 failures 1"},

		{"the lock is not known", pin, append(unsaid, wantedLock(v2), offered(v3)), "Waiting wait LockFailed", noAct},
		{"the lock is not known, and may be overridden", override, append(unsaid, wantedLock(v2), offered(v3)), "Waiting wait LockFailed", noAct},
		{"the lock is not known, and the host chooses the pin", pin, append(unsaid, wantedLock(v2), offered(v2)), "Waiting Stage UpdateAvailable", noAct},
		{"the lock is not known, and is said to have stood", pin, append(unsaid, wantedLock(v2), because(marker.ReasonLockStood)), "Waiting wait LockFailed", noAct},
		{"the lock is not known but to be others'", override, append(unsaid, wantedLock(v2), answers(marker.StateError, "x"), others), "Waiting wait LockFailed", noAct},
		{"the lock is not known, and the pin is gone", none, append(unsaid, wantedLock(v2)), "Waiting Lock LockWanted", "latest latest asked 1.2.0 back"},
		{"given back, by a word without a fact", none, append(unsaid, wantedLock(v2, givenBack), issued(time.Hour)), "Waiting wait LockFailed", noAct},
		{"left to others, by a word without a fact", none, append(unsaid, wantedLock(v2, givenBack), answers(marker.StateError, "x"), others), "Waiting wait LockFailed", noAct},
		{"given back, by an agent that knows no locks, and the fact is old", none, append(at, wantedLock(v2, givenBack), protocol(3)), "UpToDate wait UpToDate", noAct},
		{"the label is gone, given back by a word without a fact", none, append(unsaid, wantedLock(v2, givenBack), unlabelled), "Waiting wait Locking", noAct},

		{"a pause is noted", pin, append(done, wantedLock(v2), paused), "Waiting wait Paused", "1.2.0 latest paused"},
		{"paused for less than a day", none, append(done, wantedLock(v2, pausedSince(23*time.Hour)), paused), "Waiting Lock LockWanted", "latest latest asked 1.2.0 back paused"},
		{"a pin that stays, paused for less than a day", pin, append(done, wantedLock(v2, pausedSince(23*time.Hour)), paused), "Waiting wait Paused", noAct},
		{"paused for good", pin, append(done, wantedLock(v2, pausedSince(24*time.Hour)), paused), "Waiting Lock LockWanted", "latest latest asked 1.2.0 back paused"},
		{"paused for good, given back", pin, append(at, wantedLock(v2, pausedSince(24*time.Hour), givenBack), paused), "Waiting Unlock LockRestored", "gone"},
		{"paused, and the pin is another", func(s *policy.Settings) { s.Versions.Pin = v3 }, append(done, wantedLock(v2, pausedSince(time.Hour)), paused), "Waiting wait Paused", noAct},
		{"paused, and not locked yet", pin, append(at, wantedLock(v2, pausedSince(time.Hour)), unanswered, issued(time.Hour), paused), "Waiting wait Paused", noAct},
		{"paused, and the host fell back", pin, append(at, wantedLock(v2, pausedSince(time.Hour)), issued(time.Hour), paused), "Waiting wait Paused", noAct},
		{"paused, and others have locked it since", override, []change{saysLock(v3), wantedLock(v2, pausedSince(time.Hour)), paused}, "Waiting wait Paused", noAct},
		{"not paused any more", pin, append(done, wantedLock(v2, pausedSince(time.Hour))), "Waiting wait Paused", "1.2.0 latest"},

		{"staging another version", pin, []change{preparing, with(func(n *fleet.Node) { n.Marks.Intent.Target = v3 }), offered(v3)}, "Staging Abandon LockWanted", noAct},
		{"staging the pin", pin, []change{preparing}, "Staging wait Staging", noAct},
		{"staging what is not pinned any more", none, []change{preparing, wantedLock(v2)}, "Staging Abandon LockWanted", noAct},
		{"staged another version", pin, []change{prepared, with(func(n *fleet.Node) { n.Marks.Intent.Target = v3 }), offered(v3)}, "Staged Abandon LockWanted", noAct},
		{"draining for another version", func(s *policy.Settings) { s.Versions.Pin = v3 }, []change{draining, saysLock(marker.LockLatest)}, "Draining Abandon LockWanted", noAct},
		{"asked to reboot into another version", func(s *policy.Settings) { s.Versions.Pin = v3 }, []change{rebooting}, "Rebooting Abandon LockWanted", noAct},
		{"past the point of no return", func(s *policy.Settings) { s.Versions.Pin = v3 }, []change{busy, wantedLock(v2)}, "Rebooting wait Rebooting", noAct},
		{"in the soak", func(s *policy.Settings) { s.Versions.Pin = v3 }, []change{verifying(time.Second), wantedLock(v2)}, "Verifying wait Soaking", noAct},

		{"a cycle that waits, and nothing pins any more", none, []change{cycleStaged, wantedLock(v1)}, "Staged Stabilize LockWanted", "1.1.0 latest asked 1.1.0"},
		{"a cycle that waits, and the pin is another", pin, []change{cycleStaged, saysLock(v1), lists(v3, v2, v1), wantedLock(v1)}, "Staged Stabilize LockWanted", "1.1.0 latest asked 1.1.0"},
		{"a cycle that waits, and the new pin is not offered", pin, []change{cycleStaged, saysLock(v1), lists(v3, v1), wantedLock(v1)}, "Staged Cordon Cordoned", noAct},
		{"a cycle in its drain", none, []change{cycleDraining, wantedLock(v1)}, "Draining Drain Draining", noAct},
		{"the label is gone, too late to begin", pin, append(done, wantedLock(v2, givenBack), unlabelled, unanswered, issued(time.Hour)), "Waiting Leave LabelRemoved", "latest latest asked 1.2.0 failures 1 back"},
		{"the label is gone, in mid drain", pin, []change{draining, wantedLock(v2), saysLock(v2), unlabelled}, "Draining Leave LabelRemoved", "latest latest asked 1.2.0 back"},
		{"the label is gone", pin, append(done, wantedLock(v2), unlabelled), "Waiting Leave LabelRemoved", "latest latest asked 1.2.0 back"},
		{"the label is gone, asked", pin, append(done, wantedLock(v2, givenBack), unlabelled, unanswered), "Waiting wait Locking", noAct},
		{"the label is gone, given back", pin, append(at, wantedLock(v2, givenBack), unlabelled), "Waiting Unlock LockRestored", "gone"},
		{"the label is gone, and the lock too", pin, append(at, unlabelled), "Waiting wait LabelRemoved", noAct},
		{"the label is gone, and no agent is there", pin, append(done, wantedLock(v2, givenBack), unlabelled, unanswered, agentAway), "Waiting wait LockLeft", noAct},
		{"the label is gone, and the host refuses", pin, append(done, wantedLock(v2, givenBack), unlabelled, answers(marker.StateError, "x"), failed), "Waiting wait LockLeft", noAct},
		{"it is asked again", pin, append(done, wantedLock(v2, givenBack), unlabelled, answers(marker.StateError, "x"), failed, issued(time.Hour)), "Waiting Leave LabelRemoved", "latest latest asked 1.2.0 failures 1 back"},
		{"later each time", pin, append(done, wantedLock(v2, givenBack, lockFailures(1)), unlabelled, answers(marker.StateError, "x"), failed, issued(10*time.Minute)), "Waiting wait LockLeft", noAct},
		{"the label of the lock alone stands", pin, append(at, unlabelled, with(func(n *fleet.Node) { n.Labels = map[string]string{string(marker.KeyLocked): "true"} })),
			"Waiting Unlock LockRestored", "gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			tc.policy(&set)
			n := node("a", tc.changes...)
			before := n.Marks.Lock
			out := planner.Plan(fleetOf([]fleet.Node{n, node("b"), node("c")}), set)
			d, step := find(t, out, "a")
			assert.Equal(t, verdict(d), tc.want, "%s", d.Message)
			if step == nil || step.Change == nil {
				assert.Equal(t, tc.lock, noAct)
				return
			}
			if got := lockOf(step.Change.Marks.Lock); got != tc.lock {
				assert.Assert(t, tc.lock == noAct && step.Change.Marks.Lock != nil && lockOf(before) == got || tc.lock == noAct && before == nil && got == "gone", "%s is not %s", got, tc.lock)
			}
			if i := step.Change.Marks.Intent; d.Act == intent.ActLeave {
				assert.Assert(t, !step.Change.RemoveAll && i.ID != n.Marks.Intent.ID && i.Action == marker.ActionStabilize && i.Until.After(now), "the agent is asked to unlock the host first")
			}
			locks, changed := step.Change.Labels[string(marker.KeyLocked)]
			assert.Assert(t, changed || tc.lock != "gone" || n.Labels[string(marker.KeyLocked)] == "", "the label stays without its record")
			if changed {
				assert.Equal(t, locks != nil, step.Change.Marks.Lock != nil, "label and record come and go together")
			}
			assert.Assert(t, changed || before != nil || step.Change.Marks.Lock == nil, "a record without its label")
		})
	}
}

// lockOf says in short what a lock is.
func lockOf(l *marker.Lock) string {
	if l == nil {
		return "gone"
	}
	parts := []string{l.Want, l.Before}
	if l.Asked != nil {
		parts = append(parts, "asked", strings.Join(l.Asked, ","))
	}
	if l.Failures > 0 {
		parts = append(parts, "failures", strings.Repeat("1", l.Failures))
	}
	if l.GiveBack {
		parts = append(parts, "back")
	}
	if l.PausedSince != nil {
		parts = append(parts, "paused")
	}
	return strings.Join(parts, " ")
}

// Where no policy is in force locks stay as they are: one that was deleted by mistake unlocks no fleet.
func TestLocksStayWithoutPolicy(t *testing.T) {
	s := fleetOf([]fleet.Node{node("a", saysLock(v2), lists(v3, v2, v1), wantedLock(v2)), node("b", saysLock(marker.LockLatest), lists(v2, v1)),
		node("c", saysLock(marker.LockLatest), lists(v2, v1), wantedLock(v2, pausedSince(time.Hour)), unanswered, issued(time.Hour), paused),
		node("d", preparing, saysLock(v2), wantedLock(v2))})
	s.NoPolicy, s.PolicyProblem = true, "x"
	out := planner.Plan(s, policy.DefaultSettings())
	assert.Equal(t, len(out.Steps), 0, "%s", out)
}

// A group has a pin of its own, and the fleet's where it has none.
func TestPinOfGroup(t *testing.T) {
	set := policy.DefaultSettings()
	set.Versions.Pin = v2
	groups(&set, func(canary, _ *policy.Group) { canary.Versions.Pin = v3 })
	at := func(group string) change {
		return func(n *fleet.Node) { stageOf(group)(n); saysLock(marker.LockLatest)(n); lists(v3, v2, v1)(n) }
	}
	out := planner.Plan(fleetOf([]fleet.Node{node("a", at("canary")), node("b", at("production")), node("c", at("none"))}), set)
	for name, want := range map[string]string{"a": v3, "b": v2, "c": v2} {
		_, step := find(t, out, name)
		assert.Assert(t, step != nil && step.Change.Marks.Lock != nil, "%s", out)
		assert.Equal(t, step.Change.Marks.Lock.Want, want)
	}
}

// The day after which a paused node is unlocked ends by the clock alone, so the plan says when to look again.
func TestPauseForGoodIsLookedAtInTime(t *testing.T) {
	set := policy.DefaultSettings()
	set.Versions.Pin = v2
	n := node("a", saysLock(v2), lists(v2, v1), wantedLock(v2, pausedSince(23*time.Hour)), paused)
	assert.Equal(t, planner.Plan(fleetOf([]fleet.Node{n}), set).Wake, now.Add(time.Hour))
}

// A list of versions that was cut says so, since the pin may be among those that were left out.
func TestPinNotOfferedNamesWhatIs(t *testing.T) {
	set := policy.DefaultSettings()
	set.Versions.Pin = "1.9.0"
	d, _ := find(t, planner.Plan(fleetOf([]fleet.Node{node("a", saysLock(marker.LockLatest), lists(v3, v1))}), set), "a")
	assert.Equal(t, d.Message.String(), "is pinned to 1.9.0, which its host is not offered; it is offered 1.3.0, 1.1.0")
}

// A host that refused to be unlocked is asked again when its wait is over, not when something else happens.
func TestUnlockIsTriedAgainInTime(t *testing.T) {
	set := policy.DefaultSettings()
	n := node("a", saysLock(v2), wantedLock(v2, givenBack), unlabelled, answers(marker.StateError, "x"), because(marker.ReasonLockFailed))
	assert.Equal(t, planner.Plan(fleetOf([]fleet.Node{n}), set).Wake, n.Marks.Intent.Time.Add(set.BackOff(1)))
}
