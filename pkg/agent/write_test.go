package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func ptr(s string) *string { return &s }

// onBusy calls do before each write of busy.
func (w *world) onBusy(do func() error) {
	w.node.before = func(p agent.Patch) error {
		if s := p.Annotations[marker.KeyActionState]; s != nil && *s == string(marker.StateBusy) {
			return do()
		}
		return nil
	}
}

func TestConflictOnBusyTouchesNothing(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	posts := w.posts()
	w.onBusy(func() error {
		// The controller takes the intent back just before the write arrives.
		w.node.before = nil
		w.node.write(map[marker.Key]*string{
			marker.KeyIntentID: ptr("intent-back"), marker.KeyActionWanted: ptr(string(marker.ActionResetState)),
		})
		return nil
	})
	w.until("reset", w.answered(marker.StateReady))
	w.rest()
	assert.Equal(t, w.posts(), posts)
	assert.Equal(t, w.node.report().ActiveID, "intent-back")
}

func TestConflictIsLookedAtAgain(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	w.onBusy(func() error {
		w.node.before = nil
		w.node.write(map[marker.Key]*string{"kubelet.example/heartbeat": ptr("1")})
		return nil
	})
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
}

// The reboot waits for the report that the target is activated, and not for ever: the node is drained.
func TestRebootWaitsForTheReportOfTheActivation(t *testing.T) {
	for name, refused := range map[string]error{"a conflict": apierrors.NewConflict(nodes, "n1", fmt.Errorf("modified")), "no proxy": fmt.Errorf("connection refused")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refusals, lasting := 0, name == "no proxy"
			w.node.before = func(p agent.Patch) error {
				if _, reported := p.Annotations[marker.KeyActivatedID]; reported && (lasting || refusals == 0) {
					assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 0)
					refusals++
					return refused
				}
				return nil
			}
			w.reboot()
			begun := w.clock.Now()
			w.until("rebooted", w.answered(marker.StateReady))
			assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
			assert.Assert(t, refusals > 0 && refusals < 60, "%d", refusals)
			assert.Equal(t, w.clock.Now().Sub(begun) > 5*time.Minute, lasting)
			assert.Equal(t, w.node.report().ActivatedID != "", !lasting)
		})
	}
}

func TestRefusedBusyTouchesNothingAndIsNotHot(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	posts, asked, begun := w.posts(), 0, w.clock.Now()
	w.onBusy(func() error {
		asked++
		return apierrors.NewForbidden(nodes, "n1", fmt.Errorf("the node is paused"))
	})
	for w.clock.Now().Sub(begun) < 20*time.Minute {
		w.turn()
	}
	assert.Equal(t, w.posts(), posts)
	assert.Assert(t, asked > 10 && asked < 40, "asked %d times", asked)
	w.node.before = nil
	w.until("rebooted", w.answered(marker.StateReady))
}

func TestLostAnswerToBusyIsAffirmedByTheSameProcess(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	busy := 0
	w.onBusy(func() error {
		busy++
		w.node.lost = busy == 1
		return nil
	})
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, busy, 2)
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
}

func TestNewProcessAffirmsBusyBeforeItGoesOn(t *testing.T) {
	w := newWorld(t)
	id := w.reboot()
	w.until("busy", w.answered(marker.StateBusy))
	posts, version := w.posts(), w.node.version
	w.start()
	w.onBusy(func() error { return apierrors.NewForbidden(nodes, "n1", fmt.Errorf("the time is over")) })
	for range 5 {
		w.turn()
	}
	assert.Equal(t, w.posts(), posts, "busy of a predecessor is no permission")

	w.node.before = nil
	patches := len(w.node.patches)
	w.until("affirmed", func() bool { return len(w.node.patches) > patches })
	p := w.node.patches[patches]
	assert.Equal(t, p.ResourceVersion, fmt.Sprint(version))
	words := p.Annotations[marker.KeyMessage]
	assert.Assert(t, words != nil && *words != "")
	assert.DeepEqual(t, p.Annotations, map[marker.Key]*string{
		marker.KeyActiveID: ptr(id), marker.KeyActionState: ptr(string(marker.StateBusy)), marker.KeyMessage: words,
	})
	assert.Assert(t, w.node.version != version, "an answer that the predecessor had on its way meets a conflict")
	w.until("rebooted", w.answered(marker.StateReady))
}

func TestNewProcessAfterTheIntentsEndWaitsAndGivesUp(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	w.until("busy", w.answered(marker.StateBusy))
	posts := w.posts()
	w.advance(time.Hour)
	w.start()
	begun := w.clock.Now()
	w.until("error", w.answered(marker.StateError))
	assert.Assert(t, w.clock.Now().Sub(begun) > 10*time.Minute)
	assert.Equal(t, w.posts(), posts)
}

func TestFactsAreWrittenOnlyWhenTheyDiffer(t *testing.T) {
	w := newWorld(t)
	w.rest()
	assert.Equal(t, len(w.node.patches), 1, "a node without an intent has facts too")
	r := w.node.report()
	assert.Equal(t, r.Current, from)
	assert.Equal(t, r.Available, target)
	assert.Equal(t, r.ActiveID, "")

	for range 10 {
		w.advance(time.Hour)
		w.rest()
	}
	assert.Assert(t, w.commands(hostsim.Refresh) > 8)
	assert.Equal(t, len(w.node.patches), 1)

	w.release("1.28.0")
	w.advance(time.Hour)
	w.rest()
	assert.Equal(t, len(w.node.patches), 2)
	assert.DeepEqual(t, w.node.patches[1].Annotations, map[marker.Key]*string{
		marker.KeyAvailableVersion: ptr("1.28.0"), marker.KeyOfferedVersions: ptr("1.28.0,1.27.0,1.26.1")})
}

func TestAtRestNothingIsAskedBetweenRefreshAndLiveLook(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	spy := w.spy()
	w.rest()
	looks, gets, turns := spy.looks, w.node.gets, 0
	for begun := w.clock.Now(); w.clock.Now().Sub(begun) < 24*time.Hour; turns++ {
		w.turn()
	}
	assert.Assert(t, turns < 24*20, "%d turns in a day", turns)
	assert.Assert(t, spy.looks-looks == turns)
	assert.Assert(t, w.node.gets-gets < 24*7, "%d live looks in a day", w.node.gets-gets)
	assert.Equal(t, len(w.node.patches), 1)
}

func TestProxyOutageLosesNothing(t *testing.T) {
	w := newWorld(t)
	hook := logtest.NewLocal(w.log)
	w.reboot()
	gets, begun := w.node.gets, w.clock.Now()
	w.node.getErr = fmt.Errorf("connection refused")
	w.node.before = func(agent.Patch) error { return fmt.Errorf("connection refused") }
	hook.Reset()
	for w.clock.Now().Sub(begun) < 30*time.Minute-time.Second {
		w.turn()
	}
	assert.Assert(t, w.node.gets-gets < 50, "%d gets in 30 min", w.node.gets-gets)
	warnings := 0
	for _, e := range hook.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			warnings++
		}
	}
	assert.Assert(t, warnings <= 2, "%d warnings", warnings)
	w.node.getErr, w.node.before = nil, nil
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
}

func TestLiveLookFindsWhatAHangingWatchMissed(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	w.node.write(map[marker.Key]*string{marker.KeyIntentID: ptr("intent-missed")})
	begun := w.clock.Now()
	w.until("answered", w.answered(marker.StateReady))
	assert.Assert(t, w.clock.Now().Sub(begun) < 15*time.Minute)
}

func TestOldEventsAreDropped(t *testing.T) {
	w := newWorld(t)
	old := w.node.snapshot()
	w.want(marker.ActionStabilize, "")
	w.rest()
	w.agent.Update(old)
	w.rest()
	assert.Equal(t, len(w.node.patches), 1, "decided from an old node")
}

func TestLiveLookCountsAlsoAfterARestoreOfThePast(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	w.node.version = 7
	w.node.write(map[marker.Key]*string{marker.KeyIntentID: ptr("intent-restored")})
	w.until("answered", w.answered(marker.StateReady))
	w.rest()
	assert.Equal(t, w.node.report().ActiveID, "intent-restored")
}

func TestUnreadableIntentIsNotActedOn(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	posts := w.posts()
	w.agent.Update(w.node.write(map[marker.Key]*string{
		marker.KeyIntentID: ptr("intent-bad"), marker.KeyActionWanted: ptr("reboot-now"),
	}))
	w.rest()
	assert.Equal(t, w.node.report().ActiveID, "intent-1")
	assert.Equal(t, w.posts(), posts)
}

func TestAnswerThatIsTakenAwayIsNotWrittenHot(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	begun, writes := w.clock.Now(), 0
	w.node.before = func(agent.Patch) error { writes++; return nil }
	for w.clock.Now().Sub(begun) < 10*time.Minute {
		w.agent.Update(w.node.write(map[marker.Key]*string{marker.KeyActiveID: nil, marker.KeyActionState: nil}))
		w.turn()
	}
	assert.Assert(t, writes < 30, "%d writes", writes)
}

// olderWall refuses the keys that an older proxy or admission policy doesn't know, and counts the refusals.
func (w *world) olderWall() *int {
	refusals := 0
	w.node.before = func(p agent.Patch) error {
		for _, k := range marker.OptionalKeys() {
			if _, touched := p.Annotations[k]; touched {
				refusals++
				return apierrors.NewForbidden(nodes, "n1", fmt.Errorf("annotation %q is not the agent's to write", k))
			}
		}
		return nil
	}
	return &refusals
}

// An upgrade that replaces agents before proxies or admission policies holds up no node (L1): an agent does without
// facts that those refuse, and writes them once they don't.
func TestOptionalFactsAreLeftOutWhereTheyAreRefused(t *testing.T) {
	w := newWorld(t)
	hook := logtest.NewLocal(w.log)
	refusals := w.olderWall()
	w.reboot()
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
	r := w.node.report()
	assert.Equal(t, r.Current, target)
	assert.Assert(t, r.Offered == "" && r.VersionLock == "" && r.WaveSeed == "", "%+v", r)
	before, begun := *refusals, w.clock.Now()
	assert.Assert(t, before <= 2, "%d refusals, in two processes", before)

	for w.clock.Now().Sub(begun) < 24*time.Hour {
		w.turn()
	}
	assert.Assert(t, *refusals-before > 24 && *refusals-before <= 24*6, "%d refusals in a day", *refusals-before)
	warnings := 0
	for _, e := range hook.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			warnings++
		}
	}
	assert.Equal(t, warnings, 2, "one for each process")

	w.node.before = nil
	begun = w.clock.Now()
	w.until("facts", func() bool { return w.node.report().VersionLock != "" })
	assert.Assert(t, w.clock.Now().Sub(begun) <= 25*time.Minute, "%s", w.clock.Now().Sub(begun))
	r = w.node.report()
	assert.Assert(t, r.Offered != "" && r.WaveSeed != "", "%+v", r)
	w.rest()
	patches := len(w.node.patches)
	w.advance(time.Hour)
	w.rest()
	assert.Equal(t, len(w.node.patches), patches)
}

// A fact that stands is neither changed nor removed while it is refused, and nothing is written in its place.
func TestOptionalFactsStandWhileTheyAreRefused(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	patches, offered := len(w.node.patches), w.node.report().Offered
	assert.Assert(t, offered != "")
	refusals := w.olderWall()
	w.release("1.26.5")
	w.advance(time.Hour)
	w.rest()
	assert.Equal(t, *refusals, 1)
	assert.Equal(t, len(w.node.patches), patches)
	assert.Equal(t, w.node.report().Offered, offered)

	w.want(marker.ActionStabilize, "")
	w.until("answered", w.answered(marker.StateReady))
	assert.Equal(t, w.node.report().Offered, offered)
}

// A refusal for another reason is none of facts: it is tried and told as any other, and no fact is left out after it.
func TestARefusalOfTheAnswerLeavesNoFactOut(t *testing.T) {
	w := newWorld(t)
	hook := logtest.NewLocal(w.log)
	w.want(marker.ActionStabilize, "")
	asked, begun := 0, w.clock.Now()
	w.node.before = func(agent.Patch) error {
		asked++
		return apierrors.NewForbidden(nodes, "n1", fmt.Errorf("the token is another node's"))
	}
	for w.clock.Now().Sub(begun) < 20*time.Minute {
		w.turn()
	}
	assert.Equal(t, len(w.node.patches), 0)
	assert.Assert(t, asked > 10 && asked < 80, "asked %d times", asked)
	var warnings []string
	for _, e := range hook.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			warnings = append(warnings, e.Message)
		}
	}
	assert.DeepEqual(t, warnings, []string{"Could not write to the node"})
	w.node.before = nil
	w.until("answered", w.answered(marker.StateReady))
	r := w.node.report()
	assert.Assert(t, r.Offered != "" && r.VersionLock != "" && r.WaveSeed != "", "%+v", r)
}

// A write that fails in another way than by a refusal is not taken apart.
func TestFactsAreNotLeftOutAfterAConflict(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.node.before = func(p agent.Patch) error {
		_, full := p.Annotations[marker.KeyVersionLock]
		assert.Assert(t, full)
		if asked++; asked == 1 {
			return apierrors.NewConflict(nodes, "n1", fmt.Errorf("modified"))
		}
		return nil
	}
	w.rest()
	assert.Equal(t, asked, 2)
}
