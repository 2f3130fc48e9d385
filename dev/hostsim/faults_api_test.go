package hostsim

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// faultsAtTheAPI has one test for each fault of docs/host-api.md#faults: it brings the fault about
// and asserts its exact symptom, in literals of its own. variant is empty for a fault that has none.
var faultsAtTheAPI = map[FaultID]func(t *testing.T, variant string){
	F1:  foreignCommandHoldsTheLock,
	F2:  lockIsNeverReleased,
	F3:  refreshFails,
	F4:  prepareFails,
	F5:  prepareFails,
	F6:  updateIsWithdrawn,
	F7:  phantomStage,
	F8:  activateFails,
	F9:  anotherVersionIsWritten,
	F10: childDiesSilently,
	F11: apiServerRestarts,
	F12: socketHangs,
	F13: answerIsMalformed,
	F14: rebootIsRefused,
	F15: rebootAnswerIsLost,
	F16: rebootNeverHappens,
	F17: newSetRollsBack,
	F18: nodeNeverGetsReady,
	F19: rebootFromOutsideWhileReady,
	F20: rebootFromOutsideWhileStaged,
	F21: cancelFromOutside,
	F22: newerRefreshFromOutside,
	F23: waveIsNotOpen,
	F24: runningVersionIsWithdrawn,
	F25: noInPlaceUpdates,
	F26: dataStoreIsLockedDown,
	F27: configurationIsBad,
	F28: socketRefusesAll,
	F29: clockSteps,
	F30: updogIsKilled,
	F31: repositoryIsDownAtAFlip,
	F32: requestComesTooLate,
	F33: dispatcherCannotBeStarted,
	F34: refreshDoesNotLook,
	F35: commandPrintsMegabytes,
}

// Every fault from F1 to F35, and every variant that can be set, is on the page and shows at the API as it should.
func TestFaultsAtTheAPI(t *testing.T) {
	page, err := os.ReadFile("../../docs/host-api.md")
	assert.NilError(t, err)
	ran := map[FaultID]bool{}
	for n := 1; n <= 35; n++ {
		id := FaultID("F" + strconv.Itoa(n))
		assert.Check(t, strings.Contains(string(page), "| `"+string(id)+"` |"), "docs/host-api.md has no line for %s", id)
		test := faultsAtTheAPI[id]
		if test == nil {
			t.Errorf("%s has no test", id)
			continue
		}
		variants := traits[id].variants
		if len(variants) == 0 {
			variants = []string{""}
		}
		for _, v := range variants {
			t.Run(strings.TrimSuffix(string(id)+"/"+v, "/"), func(t *testing.T) { test(t, v) })
		}
		ran[id] = true
	}
	for id := range traits {
		assert.Assert(t, ran[id], "%s isn't one of the faults that are looked for here", id)
	}
	assert.Equal(t, len(ran), 35)
	assert.Equal(t, len(faultsAtTheAPI), 35)
}

// The texts of the API, as its notes have them.
const (
	textUninitialized = "Update status is uninitialized, refresh-updates to initialize it"
	textStatusLocked  = "Unable to obtain shared lock for reading update status: Resource temporarily unavailable (os error 11)"
	textLocked        = "Update lock held"
	textDisallowed    = "Update action not allowed according to update state"
	textChosenGone    = "Previously chosen Update no longer exists"
	textNotValid      = "Could not mark inactive partition for boot: Inactive partition /dev/nvme0n1 has not been marked valid for upgrade\n"
	textMarked        = "Could not mark inactive partition for boot: Inactive partition /dev/nvme0n1 is already marked for upgrade\n"
)

var allCommands = []Command{Refresh, Prepare, Activate, Deactivate}

// allowedIn is the state in which a command is allowed.
var allowedIn = map[Command]UpdateState{Refresh: Available, Prepare: Available, Activate: Staged, Deactivate: Ready}

// answers asserts an answer that is text, or that has no body.
func (f *fixture) answers(method, target string, status int, body string) {
	f.t.Helper()
	want := Answer{Status: status}
	if body != "" {
		want.Body = []byte(body)
	}
	got := f.do(method, target)
	assert.DeepEqual(f.t, got, want)
}

// isLocked asserts that the update lock is held, and by nothing else that shows.
func (f *fixture) isLocked() {
	f.t.Helper()
	f.answers("GET", pathStatus, 423, textStatusLocked)
	for _, c := range allCommands {
		f.answers("POST", posts[c], 423, textLocked)
	}
	assert.Equal(f.t, f.do("GET", pathOS).Status, 200)
	assert.Equal(f.t, f.do("GET", "/settings?prefix=updates").Status, 200)
}

// recorded asserts the record of the last command.
func (f *fixture) recorded(c Command, status string, exit int32, stderr string) {
	f.t.Helper()
	last := f.status().Last
	assert.Equal(f.t, last.Type, c)
	assert.Equal(f.t, last.Status, status)
	assert.Equal(f.t, last.Exit, exit)
	assert.Equal(f.t, last.Stderr, stderr)
}

// failed asserts a record of a failure, with the beginning of what was printed.
func (f *fixture) failed(c Command, exit int32, stderr string) {
	f.t.Helper()
	last := f.status().Last
	f.recorded(c, "Failed", exit, last.Stderr)
	assert.Assert(f.t, strings.HasPrefix(last.Stderr, stderr), "%q", last.Stderr)
}

// runs asserts the version that /os shows and that the kubelet would.
func (f *fixture) runs(v string) {
	f.t.Helper()
	f.isJSON("/os?prefix=version", `{"version_id":"`+v+`"}`)
	f.isJSON("/os?prefix=pretty", `{"pretty_name":"Bottlerocket OS `+v+` (aws-k8s-1.31)"}`)
}
