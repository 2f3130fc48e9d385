package hostsim

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestFaultsAsJSON(t *testing.T) {
	in := `[{"id":"F4","variant":"target","count":2,"delay":"1m30s"},{"id":"F15","variant":"delay","until":"2026-09-20T11:00:00Z"}]`
	faults, err := ParseFaults([]byte(in))
	assert.NilError(t, err)
	assert.DeepEqual(t, faults, []Fault{
		{ID: F4, Variant: "target", Count: 2, Delay: Duration(90 * time.Second)},
		{ID: F15, Variant: "delay", Until: time.Date(2026, 9, 20, 11, 0, 0, 0, time.UTC)},
	})
	out, err := json.Marshal(faults)
	assert.NilError(t, err)
	assert.Equal(t, string(out), in)
}

func TestBadFaults(t *testing.T) {
	for in, want := range map[string]string{
		`[{"id":"F31"}]`:                    `unknown fault "F31"`,
		`[{"id":""}]`:                       `unknown fault ""`,
		`[{}]`:                              `unknown fault ""`,
		`[{"id":"F4","kind":"target"}]`:     "unknown field",
		`[{"id":"F4","variant":"nope"}]`:    "has no variant",
		`[{"id":"F3","variant":"nope"}]`:    "has no variant",
		`[{"id":"F4","count":-1}]`:          "negative",
		`[{"id":"F2","count":1}]`:           "takes no count",
		`[{"id":"F3","delay":"-1s"}]`:       "negative",
		`[{"id":"F3","delay":"soon"}]`:      "parse duration",
		`[{"id":"F3","version":"1.0.0"}]`:   "takes no version",
		`[{"id":"F9"}]`:                     "needs a version",
		`[{"id":"F9","version":"v1"}]`:      "version",
		`[{"id":"F3","command":"refresh"}]`: "takes no command",
		`[{"id":"F10","command":"reboot"}]`: "unknown command",
		`[{"id":"F3","on":"/os"}]`:          "takes no path",
		`[{"id":"F13","on":"/settings"}]`:   "isn't for path",
		`[{"id":"F24"}]`:                    "withdraw the release",
		`{"id":"F3"}`:                       "parse faults",
	} {
		_, err := ParseFaults([]byte(in))
		assert.ErrorContains(t, err, want, in)
	}
	f := newFixture(t)
	assert.ErrorContains(t, f.SetFaults(Fault{ID: "F99"}), "unknown fault")
	assert.ErrorContains(t, f.AddFault(Fault{ID: F11}), "close and serve again")
}

// Every listed fault has its traits, and can either be set or says how to get it.
func TestFaultListIsWhole(t *testing.T) {
	for n := 1; n <= 30; n++ {
		f := Fault{ID: FaultID("F" + strconv.Itoa(n))}
		if f.ID == F9 {
			f.Version = v1260
		}
		if err := f.check(); err != nil {
			assert.ErrorContains(t, err, "isn't set on a host: ")
		}
	}
	assert.Equal(t, len(traits), 30)
}

func TestFaultsCountAndEnd(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F3, Count: 2})
	for _, want := range []string{"Failed", "Failed", "Success"} {
		f.accept(Refresh)
		assert.Equal(t, f.status().Last.Status, want)
	}
	assert.Equal(t, len(f.Faults()), 0)
	assert.NilError(t, f.AddFault(Fault{ID: F3, Until: f.clock.Now().Add(time.Second)}))
	for _, want := range []string{"Failed", "Success"} {
		f.accept(Refresh)
		assert.Equal(t, f.status().Last.Status, want)
	}
	assert.Equal(t, len(f.Faults()), 0)
}

// F1
func TestForeignCommandHoldsTheLock(t *testing.T) {
	f := newFixture(t)
	f.reach(Available)
	f.faults(Fault{ID: F1, Variant: "prepare", Count: 1, Delay: Duration(time.Minute)})
	a := f.post(Refresh)
	assert.Equal(t, a.Status, 423)
	assert.Equal(t, string(a.Body), bodyLocked)
	a = f.do("GET", pathStatus)
	assert.Equal(t, a.Status, 423)
	assert.Equal(t, string(a.Body), bodyStatusLocked)
	f.clock.Step(time.Minute)
	r := f.status()
	assert.Equal(t, r.Last.Type, Prepare)
	assert.Equal(t, r.State, Staged)
	f.faults(Fault{ID: F1, Until: f.clock.Now().Add(5 * time.Second)})
	assert.Equal(t, f.post(Refresh).Status, 423)
	f.clock.Step(5 * time.Second)
	assert.Equal(t, f.post(Refresh).Status, 204)
}

// F2
func TestLockNeverReleased(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F2})
	for range 3 {
		assert.Equal(t, f.do("GET", pathStatus).Status, 423)
		assert.Equal(t, f.post(Refresh).Status, 423)
		assert.Equal(t, f.do("GET", pathOS).Status, 200)
		assert.Equal(t, f.do("GET", "/settings?prefix=updates").Status, 200)
		f.clock.Step(time.Hour)
	}
	assert.Equal(t, f.do("POST", pathReboot).Status, 204)
	f.Boot()
	f.accept(Refresh)
}

// F3 takes its time.
func TestSlowFailingRefresh(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F3, Count: 1, Delay: Duration(100 * time.Second)})
	assert.Equal(t, f.post(Refresh).Status, 204)
	f.clock.Step(99 * time.Second)
	assert.Equal(t, f.do("GET", pathStatus).Status, 423)
	f.clock.Step(time.Second)
	assert.Equal(t, f.status().Last.Status, "Failed")
}

// F4, F5
func TestPrepareFailures(t *testing.T) {
	for _, id := range []FaultID{F4, F5} {
		for _, v := range traits[id].variants {
			t.Run(v, func(t *testing.T) {
				f := newFixture(t)
				f.reach(Available)
				f.faults(Fault{ID: id, Variant: v})
				f.accept(Prepare)
				r := f.status()
				assert.Equal(t, r.State, Available)
				assert.Equal(t, r.Last.Type, Prepare)
				assert.Equal(t, r.Last.Status, "Failed")
				assert.Equal(t, r.Last.Exit, int32(1))
				begin := map[string]string{
					"write": "Failed writing update data to disk: ", "metadata": "Metadata error: ",
					"target": "Target not found: ", "manifest": "Failed to store manifest and migrations: ",
					"open": "Failed to open partition /dev/", "table": "Failed to modify OS disk partition table: ",
					"single-bank": "Could not find inactive partition set",
				}[v]
				assert.Assert(t, begin != "")
				assert.Assert(t, strings.HasPrefix(r.Last.Stderr, "Starting update to 1.27.0\n"+begin), r.Last.Stderr)
				assert.Equal(t, f.Snapshot().Sets[1], Set{})
			})
		}
	}
}

// F6, F7
func TestHiddenReleases(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F6, Version: v1270})
	f.accept(Refresh)
	r := f.status()
	assert.Equal(t, r.State, Idle)
	assert.DeepEqual(t, r.Available, []string{v1261, v1260})
	assert.Equal(t, f.post(Prepare).Status, 409)
	f.faults(Fault{ID: F7})
	f.accept(Refresh, Prepare)
	r = f.status()
	assert.Equal(t, r.State, Staged)
	assert.Equal(t, r.Last.Stderr, stderrNoUpdate)
}

// F8
func TestActivateFailures(t *testing.T) {
	for v, text := range map[string]string{"invalid": stderrNotValid, "marked": stderrAlreadyMarked} {
		f := newFixture(t)
		f.reach(Staged)
		f.faults(Fault{ID: F8, Variant: v, Count: 1})
		f.accept(Activate)
		r := f.status()
		assert.Equal(t, r.State, Staged)
		assert.Equal(t, r.Last.Exit, int32(1))
		assert.Equal(t, r.Last.Stderr, text)
		f.accept(Activate)
		assert.Equal(t, f.status().State, Ready)
	}
}

// F9
func TestAnotherVersionIsWritten(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F9, Version: v1260})
	f.reach(Ready)
	r := f.status()
	assert.Equal(t, r.Staging.Image.Version, v1270)
	f.Boot()
	assert.Equal(t, f.Snapshot().Version, v1260)
}

// F10
func TestChildDiesSilently(t *testing.T) {
	f := newFixture(t)
	f.reach(Available)
	before := f.status()
	f.faults(Fault{ID: F10, Command: Prepare, Delay: Duration(time.Second)})
	assert.Equal(t, f.post(Prepare).Status, 204)
	assert.Equal(t, f.do("GET", pathStatus).Status, 423)
	f.clock.Step(time.Second)
	assert.DeepEqual(t, f.status(), before)
	f.accept(Refresh)
	assert.Equal(t, f.status().Last.Type, Refresh)
}

// F14, F16
func TestRebootRefusedOrForgotten(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F14, Count: 1}, Fault{ID: F14, Variant: "start", Count: 1}, Fault{ID: F16})
	a := f.do("POST", pathReboot)
	assert.Equal(t, a.Status, 500)
	assert.Assert(t, strings.HasPrefix(string(a.Body), "Failed to reboot, exit code: 1, stderr: Operation inhibited by "))
	a = f.do("POST", pathReboot)
	assert.Equal(t, a.Status, 500)
	assert.Assert(t, strings.HasPrefix(string(a.Body), "Unable to start shutdown: "))
	assert.Equal(t, f.do("POST", pathReboot).Status, 204)
	f.clock.Step(time.Hour)
	assert.Assert(t, !f.Settle())
	assert.Equal(t, f.Snapshot().Counters.RebootsAsked, 3)
}

// F25
func TestNoInPlaceUpdates(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F25})
	a := f.do("GET", pathStatus)
	assert.Equal(t, a.Status, 404)
	assert.Equal(t, string(a.Body), bodyUninitialized)
	a = f.post(Refresh)
	assert.Equal(t, a.Status, 500)
	assert.Equal(t, string(a.Body), "Unable to start the update dispatcher: No such file or directory (os error 2) ")
	assert.Equal(t, f.do("GET", pathOS).Status, 200)
	f.faults(Fault{ID: F25, Variant: "routes"})
	for _, a := range []Answer{f.do("GET", pathStatus), f.post(Refresh), f.do("GET", pathOS)} {
		assert.DeepEqual(t, a, Answer{Status: 404})
	}
}

// F26
func TestLockedDownDataStore(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F26})
	for _, a := range []Answer{
		f.do("GET", "/settings?prefix=updates"), f.do("GET", "/"), f.patch("T", `{}`), f.do("POST", "/tx/commit_and_apply"),
	} {
		assert.Equal(t, a.Status, 500)
		assert.Assert(t, strings.HasPrefix(string(a.Body), "Data store error during "))
	}
	f.accept(Refresh)
}

// F27, F30
func TestExitStatuses(t *testing.T) {
	for _, c := range []struct {
		fault  Fault
		exit   int32
		stderr string
	}{
		{Fault{ID: F27}, 101, "thread 'main' panicked"},
		{Fault{ID: F27, Variant: "config"}, 1, "Failed to parse config file /etc/updog.toml: "},
		{Fault{ID: F30}, 9, ""},
		{Fault{ID: F30, Variant: "15"}, 15, ""},
	} {
		f := newFixture(t)
		f.faults(c.fault)
		f.accept(Refresh)
		r := f.status()
		assert.Equal(t, r.State, Idle)
		assert.Equal(t, r.Last.Status, "Failed")
		assert.Equal(t, r.Last.Exit, c.exit)
		assert.Assert(t, strings.HasPrefix(r.Last.Stderr, c.stderr))
	}
}

// F29
func TestClockStepsBack(t *testing.T) {
	f := newFixture(t)
	f.accept(Refresh)
	first := f.status().Last.Timestamp
	f.faults(Fault{ID: F29, Delay: Duration(-time.Hour)})
	f.accept(Refresh)
	assert.Assert(t, f.status().Last.Timestamp < first)
}
