package hostsim

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// F25: a status that never exists and commands without a dispatcher; or an empty 404 everywhere.
func noInPlaceUpdates(t *testing.T, variant string) {
	f := newFixture(t)
	f.faults(Fault{ID: F25, Variant: variant})
	if variant == "routes" {
		for _, target := range []string{"GET /os", "GET /updates/status", "GET /settings", "GET /", "PATCH /settings?tx=a",
			"POST /tx/commit_and_apply", "POST /actions/refresh-updates", "POST /actions/prepare-update",
			"POST /actions/activate-update", "POST /actions/deactivate-update", "POST /actions/reboot"} {
			method, path, _ := strings.Cut(target, " ")
			f.answers(method, path, 404, "")
		}
		f.clock.Step(time.Hour)
		assert.Assert(t, !f.Settle())
		return
	}
	for range 2 {
		f.answers("GET", pathStatus, 404, textUninitialized)
		for _, c := range allCommands {
			f.answers("POST", posts[c], 500, "Unable to start the update dispatcher: No such file or directory (os error 2) ")
		}
	}
	f.runs(v1261)
	assert.Equal(t, f.do("GET", "/settings?prefix=updates").Status, 200)
	f.answers("POST", pathReboot, 204, "")
	f.Boot()
	f.answers("GET", pathStatus, 404, textUninitialized)
}

// F26: the settings answer 500; the rest works.
func dataStoreIsLockedDown(t *testing.T, _ string) {
	f := newFixture(t)
	f.faults(Fault{ID: F26})
	for _, a := range []Answer{
		f.do("GET", "/settings?prefix=updates"), f.do("GET", "/settings?keys=settings.updates.seed"), f.do("GET", "/?prefix=settings"),
		f.patch("T", `{"updates":{"version-lock":"1.26.0"}}`), f.do("POST", "/tx/commit_and_apply?tx=T"),
	} {
		assert.Equal(t, a.Status, 500)
		assert.Equal(t, a.ContentType, "")
		assert.Assert(t, strings.HasPrefix(string(a.Body), "Data store error during "), string(a.Body))
	}
	f.runs(v1261)
	f.accept(Refresh, Prepare, Activate, Deactivate, Activate)
	f.answers("POST", pathReboot, 204, "")
	f.Boot()
	f.runs(v1270)
	assert.Equal(t, f.Snapshot().Settings.VersionLock, "latest")
}

// F29: a later command has an earlier timestamp; the clock of the host shows nowhere else.
func clockSteps(t *testing.T, _ string) {
	f := newFixture(t)
	stamp := func() time.Time {
		t.Helper()
		f.accept(Refresh)
		f.recorded(Refresh, "Success", 0, "")
		return instant(t, f.status().Last.Timestamp)
	}
	first := stamp()
	f.faults(Fault{ID: F29, Delay: Duration(-time.Hour)})
	second := stamp()
	assert.Equal(t, second.Sub(first), time.Second-time.Hour)
	third := stamp()
	assert.Equal(t, third.Sub(second), time.Second)
	f.faults(Fault{ID: F29, Delay: Duration(time.Hour)})
	fourth := stamp()
	assert.Equal(t, fourth.Sub(third), 2*time.Hour+time.Second)
	f.faults()
	assert.Equal(t, stamp().Sub(fourth), time.Second-time.Hour)
}
