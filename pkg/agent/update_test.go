package agent_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func TestWholeWayOfAnUpdate(t *testing.T) {
	w := newWorld(t, slow)
	w.want(marker.ActionStabilize, "")
	w.until("stable", w.answered(marker.StateReady))
	r := w.node.report()
	assert.Equal(t, r.Current, from)
	assert.Equal(t, r.Available, target)
	assert.Equal(t, r.BootID, w.host.BootID())
	assert.Equal(t, r.Protocol, marker.Protocol)
	assert.Equal(t, r.OperatorVersion, "test")
	assert.Equal(t, len(w.node.patches), 1, "facts and answer are one patch")

	w.want(marker.ActionPrepareUpdate, "")
	w.until("prepared", w.answered(marker.StateReady))
	assert.Equal(t, len(w.node.patches), 3, "busy and ready")
	assert.Equal(t, w.commands(hostsim.Prepare), 1)
	assert.Equal(t, w.commands(hostsim.Refresh), 1, "what is available was known")
	w.rest()

	boot := w.host.BootID()
	w.want(marker.ActionRebootUpdate, boot)
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, len(w.node.patches), 6, "busy, activated, and ready after the boot")
	r = w.node.report()
	assert.Equal(t, r.Current, target)
	assert.Equal(t, r.Available, "")
	assert.Equal(t, r.BootID, w.host.BootID())
	assert.Assert(t, r.BootID != boot)
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)

	w.want(marker.ActionStabilize, "")
	w.until("stable again", w.answered(marker.StateReady))
	w.rest()
	assert.Equal(t, len(w.node.patches), 7)
	assert.Equal(t, w.node.report().ActivatedID, "")
	assert.Equal(t, w.node.annotations["other.example/key"], "stays")
}

func TestBusyComesBeforeTheHostIsTouched(t *testing.T) {
	w := newWorld(t, slow)
	w.staged()
	at := map[marker.State]int{}
	w.node.before = func(p agent.Patch) error {
		if s := p.Annotations[marker.KeyActionState]; s != nil {
			at[marker.State(*s)] = w.posts()
		}
		return nil
	}
	before := w.posts()
	w.want(marker.ActionRebootUpdate, w.host.BootID())
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, at[marker.StateBusy], before)
	assert.Assert(t, at[marker.StateReady] > before)
}

func TestStageLost(t *testing.T) {
	w := newWorld(t)
	w.staged()
	w.boot()
	prepares := w.commands(hostsim.Prepare)
	w.until("error", w.answered(marker.StateError))
	w.rest()
	assert.Equal(t, w.commands(hostsim.Prepare), prepares, "never staged again of its own accord")
	assert.Equal(t, w.node.report().Message, "the staged update is gone: the host was rebooted, or another program changed it")
}

func TestRolledBack(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F17}))
	w.reboot()
	w.until("error", w.answered(marker.StateError))
	w.rest()
	assert.Equal(t, w.node.report().Current, from)
	assert.Equal(t, w.node.report().Message, "the host came back with 1.26.1 instead of 1.27.0: the update was rolled back")
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
}

func TestRebootThatNeverHappensEndsInALateError(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F16}))
	w.reboot()
	posted := time.Time{}
	for range 100 {
		next, err := w.agent.Turn(t.Context())
		assert.NilError(t, err)
		if posted.IsZero() && w.host.Snapshot().Counters.RebootsAsked > 0 {
			posted = w.clock.Now()
		}
		if w.answered(marker.StateError)() {
			break
		}
		w.advance(max(next, time.Millisecond))
	}
	assert.Equal(t, w.node.report().Message, "the host did not reboot within 10m0s of being asked")
	assert.Assert(t, w.clock.Now().Sub(posted) > 10*time.Minute)
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
}

func TestFailedPrepareEndsInAnErrorWithTheHostsWord(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F4}))
	w.want(marker.ActionPrepareUpdate, "")
	w.until("error", w.answered(marker.StateError))
	assert.Equal(t, w.node.report().Message,
		"staging 1.27.0: Failed writing update data to disk: Failed to read from HTTP response: error decoding response body")
}

func TestFailedActivationEndsInAnErrorWithoutAReboot(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F8}))
	w.reboot()
	w.until("error", w.answered(marker.StateError))
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 0)
}

// A node that has waited for its turn is asked once more before it is taken out of service, and a repository that is
// down by then is reported while the node is in service; nothing is written to its disk again.
func TestARepositoryThatIsDownBeforeTheCordon(t *testing.T) {
	w := newWorld(t)
	w.staged()
	before := w.commands(hostsim.Refresh)
	w.want(marker.ActionConfirmUpdate, "")
	w.until("confirmed", w.answered(marker.StateReady))
	assert.Equal(t, w.commands(hostsim.Refresh), before+1)
	assert.Equal(t, w.commands(hostsim.Prepare), 1)
	w.rest()

	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F3}))
	w.want(marker.ActionConfirmUpdate, "")
	w.until("told", w.answered(marker.StateError))
	assert.Assert(t, strings.HasPrefix(w.node.report().Message, "refreshing what is available: Metadata error"), w.node.report().Message)
	assert.Equal(t, w.commands(hostsim.Prepare), 1)
	assert.Equal(t, string(w.host.Snapshot().State), "Staged")
}

// A repository that is down for a while delays the activation, and nothing more: the node is drained already.
func TestActivationWaitsForTheRepository(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F31, Command: hostsim.Activate, Count: 3}))
	w.reboot()
	w.until("rebooted", w.answered(marker.StateReady))
	assert.Equal(t, w.commands(hostsim.Activate), 4)
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 1)
}

// A repository that stays down ends the attempt before the controller's deadline does, with the host's message.
func TestActivationDoesNotWaitForTheRepositoryForEver(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F31}))
	w.reboot()
	w.until("error", w.answered(marker.StateError))
	assert.Assert(t, w.clock.Now().Before(w.node.intent().Until))
	assert.Assert(t, strings.HasSuffix(w.node.report().Message, "Connection refused (os error 111)"), w.node.report().Message)
	assert.Equal(t, w.host.Snapshot().Counters.RebootsAsked, 0)
}

func TestResetDeactivates(t *testing.T) {
	w := newWorld(t)
	w.staged()
	assert.NilError(t, w.host.Foreign(hostsim.Activate))
	w.want(marker.ActionResetState, w.host.BootID())
	w.until("reset", w.answered(marker.StateReady))
	assert.Equal(t, w.commands(hostsim.Deactivate), 1)
	assert.Equal(t, string(w.host.Snapshot().State), "Staged")
}

func TestHostThatIsBusyWithAForeignCommandIsWaitedFor(t *testing.T) {
	for _, action := range []marker.Action{marker.ActionStabilize, marker.ActionPrepareUpdate, marker.ActionResetState} {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t, slow)
			w.want(marker.ActionStabilize, "")
			w.until("stable", w.answered(marker.StateReady))
			assert.NilError(t, w.host.SetFaults(hostsim.Fault{
				ID: hostsim.F1, Variant: "refresh", Count: 1, Delay: hostsim.Duration(3 * time.Minute),
			}))
			begun := w.clock.Now()
			w.want(action, "")
			w.until("answered", w.answered(marker.StateReady))
			assert.Assert(t, w.clock.Now().Sub(begun) < 6*time.Minute, "answered after %s", w.clock.Now().Sub(begun))
		})
	}
}

func TestWithdrawnUpdateIsNotReportedAnyMore(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.until("stable", w.answered(marker.StateReady))
	assert.Equal(t, w.node.report().Available, target)
	w.repo.Withdraw("aws-k8s-1.31", "x86_64", target)
	w.advance(time.Hour)
	w.rest()
	assert.Equal(t, w.node.report().Available, "")
}

func TestFailedRefreshKeepsTheOfferAndIsTriedAgainSoon(t *testing.T) {
	w := newWorld(t)
	w.want(marker.ActionStabilize, "")
	w.until("stable", w.answered(marker.StateReady))
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F3, Count: 2}))
	w.advance(time.Hour)
	begun := w.clock.Now()
	w.until("three refreshes", func() bool { return w.commands(hostsim.Refresh) == 4 })
	assert.Assert(t, w.clock.Now().Sub(begun) < 10*time.Minute, "took %s", w.clock.Now().Sub(begun))
	assert.Equal(t, w.node.report().Available, target)
}

func TestHostWithoutInPlaceUpdates(t *testing.T) {
	w := newWorld(t)
	assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F25}))
	w.want(marker.ActionStabilize, "")
	w.until("error", w.answered(marker.StateError))
	w.rest()
	assert.Equal(t, w.node.report().Message,
		"in-place updates are not supported by this host: Unable to start the update dispatcher: No such file or directory (os error 2)")
}
