package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

func TestReplacedSocketEndsTheAgent(t *testing.T) {
	w := newWorld(t)
	w.rest()
	assert.NilError(t, w.server.Close())
	begun := w.clock.Now()
	var err error
	for range 100 {
		var next time.Duration
		if next, err = w.agent.Turn(t.Context()); err != nil {
			break
		}
		w.advance(next)
	}
	assert.Assert(t, errors.Is(err, agent.ErrSocketReplaced), "%v", err)
	assert.ErrorContains(t, err, w.socket)
	took := w.clock.Now().Sub(begun)
	assert.Assert(t, took >= 15*time.Second && took <= 25*time.Second, "took %s", took)
}

func TestSocketThatComesBackIsUsedAgain(t *testing.T) {
	w := newWorld(t)
	w.rest()
	for range 5 {
		assert.NilError(t, w.server.Close())
		for range 3 {
			w.turn()
		}
		w.serve()
		w.turn()
	}
	w.advance(time.Hour)
	w.rest()
	assert.Equal(t, len(w.node.patches), 1)
}

func TestHostTroubleIsLoggedOncePerChange(t *testing.T) {
	w := newWorld(t)
	hook := logtest.NewLocal(w.log)
	spy := w.spy()
	w.rest()
	hook.Reset()
	spy.observeErr = fmt.Errorf("can't understand")
	begun, looks := w.clock.Now(), spy.looks
	for w.clock.Now().Sub(begun) < time.Hour {
		w.turn()
	}
	assert.Assert(t, spy.looks-looks < 80, "%d looks in an hour", spy.looks-looks)
	assert.Equal(t, len(hook.AllEntries()), 1)
	spy.observeErr = fmt.Errorf("can't understand that either")
	w.turn()
	assert.Equal(t, len(hook.AllEntries()), 2)
	spy.observeErr = nil
	w.turn()
	assert.Equal(t, hook.LastEntry().Message, "The host can be looked at again")
	assert.Equal(t, len(w.node.patches), 1, "facts are unchanged")
}

func TestCommandThatIsRefusedForGoodIsAnErrorWithTheHostsWord(t *testing.T) {
	for _, why := range []next.Refusal{next.RefusedState, next.RefusedMissing, next.RefusedFailed} {
		t.Run(string(why), func(t *testing.T) {
			w := newWorld(t)
			spy := w.spy()
			spy.startErr[next.CommandPrepare] = &platform.RefusedError{Command: next.CommandPrepare, Why: why, Body: "not now"}
			w.want(marker.ActionPrepareUpdate, "")
			w.until("error", w.answered(marker.StateError))
			assert.Equal(t, w.node.report().Message, "staging 1.27.0: the host refused the command: not now")
		})
	}
}

func TestRefusedActivationIsAnErrorWithoutAReboot(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	spy := w.spy()
	spy.startErr[next.CommandActivate] = &platform.RefusedError{Command: next.CommandActivate, Why: next.RefusedState, Body: "no"}
	w.until("error", w.answered(marker.StateError))
	assert.Equal(t, w.node.report().Message, "activating 1.27.0: the host refused the command: no")
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 0)
}

func TestLockedHostIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.rest()
	spy := w.spy()
	w.rest()
	spy.startErr[next.CommandPrepare] = &platform.RefusedError{Command: next.CommandPrepare, Why: next.RefusedLocked}
	w.want(marker.ActionPrepareUpdate, "")
	begun := w.clock.Now()
	for w.clock.Now().Sub(begun) < time.Minute {
		w.turn()
	}
	assert.Assert(t, w.answered(marker.StateBusy)())
	delete(spy.startErr, next.CommandPrepare)
	w.until("prepared", w.answered(marker.StateReady))
	assert.Equal(t, w.commands(hostsim.Prepare), 1)
}

func TestCommandThatTheHostDidNotHearIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	spy := w.spy()
	spy.startErr[next.CommandPrepare] = fmt.Errorf("deadline exceeded")
	w.want(marker.ActionPrepareUpdate, "")
	w.until("busy", w.answered(marker.StateBusy))
	w.turn()
	delete(spy.startErr, next.CommandPrepare)
	w.until("prepared", w.answered(marker.StateReady))
	assert.Equal(t, w.commands(hostsim.Prepare), 1)
}

func TestCommandThatTheHostNeverHearsIsAnError(t *testing.T) {
	w := newWorld(t)
	spy := w.spy()
	spy.startErr[next.CommandPrepare] = fmt.Errorf("deadline exceeded")
	w.want(marker.ActionPrepareUpdate, "")
	w.until("error", w.answered(marker.StateError))
}

func TestRebootIsSentOnceWhateverItsAnswer(t *testing.T) {
	for _, variant := range []string{"eof", "reset"} {
		t.Run(variant, func(t *testing.T) {
			w := newWorld(t)
			assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F15, Variant: variant}))
			w.reboot()
			w.until("rebooted", w.answered(marker.StateReady))
			assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
		})
	}
	t.Run("refused", func(t *testing.T) {
		w := newWorld(t)
		w.reboot()
		spy := w.spy()
		spy.startErr[next.CommandReboot] = fmt.Errorf("500")
		w.until("error", w.answered(marker.StateError))
		assert.Equal(t, spy.starts[next.CommandReboot], 1)
		assert.Equal(t, w.node.report().Message, "the host did not reboot within 10m0s of being asked")
	})
}

// A command that the host certainly did not receive is sent again, a reboot too, without waiting as long as for one
// that it may have received.
func TestRequestThatCameTooLateIsSentAgainAtOnce(t *testing.T) {
	for _, path := range []string{"/actions/refresh-updates", "/actions/prepare-update", "/actions/activate-update", "/actions/reboot"} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t)
			assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F32, On: path, Count: 2}))
			begun := w.clock.Now()
			w.reboot()
			w.until("rebooted", w.answered(marker.StateReady))
			assert.Equal(t, len(w.host.Faults()), 0)
			assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
			assert.Assert(t, w.clock.Now().Sub(begun) < intent.RebootPatience, "it took %s", w.clock.Now().Sub(begun))
		})
	}
	t.Run("the socket leads nowhere", func(t *testing.T) {
		w := newWorld(t)
		w.reboot()
		spy := w.spy()
		spy.startErr[next.CommandReboot] = &platform.GoneError{Path: "/run/api.sock", Err: fmt.Errorf("connection refused")}
		for spy.starts[next.CommandReboot] < 2 {
			w.turn()
		}
		delete(spy.startErr, next.CommandReboot)
		w.until("rebooted", w.answered(marker.StateReady))
		assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
	})
}

// A host that can't start its dispatcher for lack of memory has one all the same, and a refresh that the host did not
// begin doesn't make it up to date.
func TestHostShortOfMemory(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F33, Command: hostsim.Refresh, Count: 1}))
	w.want(marker.ActionStabilize, "")
	w.until("error", w.answered(marker.StateError))
	assert.Equal(t, w.node.report().Message, "refreshing what is available: the host has not looked since it booted")
	begun := w.clock.Now()
	w.until("ready", w.answered(marker.StateReady))
	assert.Assert(t, w.clock.Now().Sub(begun) <= 3*time.Minute)
}

// The first refresh of a boot may be recorded as done without a look (F34). It doesn't make a host up to date: it is
// reported, and tried again within minutes.
func TestARefreshThatDidNotLook(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F34, Count: 1}))
	w.want(marker.ActionStabilize, "")
	w.until("error", w.answered(marker.StateError))
	assert.Assert(t, strings.Contains(w.node.report().Message, "listed no release, not even the host's own"), w.node.report().Message)
	begun := w.clock.Now()
	w.until("ready", w.answered(marker.StateReady))
	assert.Equal(t, w.node.report().Available, target)
	assert.Assert(t, w.clock.Now().Sub(begun) <= 3*time.Minute)
}

func TestProbes(t *testing.T) {
	w := newWorld(t)
	spy := w.spy()
	spy.observeErr = fmt.Errorf("not yet")
	assert.ErrorContains(t, w.agent.Ready(), "node has not been read")
	assert.NilError(t, w.agent.Healthy())
	w.turn()
	assert.ErrorContains(t, w.agent.Ready(), "the host can't be looked at: not yet")
	spy.observeErr = nil
	w.turn()
	assert.NilError(t, w.agent.Ready())
	spy.observeErr = fmt.Errorf("not any more")
	w.turn()
	w.turn()
	assert.NilError(t, w.agent.Ready())
	w.turn()
	assert.ErrorContains(t, w.agent.Ready(), "the host can't be looked at: not any more")
	spy.observeErr = nil
	w.turn()
	assert.NilError(t, w.agent.Ready())
	assert.NilError(t, w.agent.Healthy())
	w.rest()
	assert.NilError(t, w.agent.Healthy())
	w.advance(time.Hour)
	assert.ErrorContains(t, w.agent.Healthy(), "stuck")
}
