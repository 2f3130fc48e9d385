package hostsim

import (
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// F6: the refresh succeeds and chooses nothing; prepare is disallowed, from Staged its update is gone.
func updateIsWithdrawn(t *testing.T, _ string) {
	for name, withdraw := range map[string]func(f *fixture){
		"hidden":               func(f *fixture) { f.faults(Fault{ID: F6, Version: v1270}) },
		"all that is newer":    func(f *fixture) { f.faults(Fault{ID: F6}) },
		"gone from the mirror": func(f *fixture) { f.repo.Withdraw(arched(v1270)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.reach(Available)
			withdraw(f)
			f.accept(Refresh)
			f.recorded(Refresh, "Success", 0, "")
			r := f.status()
			assert.Equal(t, r.State, Idle)
			assert.Assert(t, r.Chosen == nil)
			assert.DeepEqual(t, r.Available, []string{v1261, v1260})
			f.answers("POST", posts[Prepare], 409, textDisallowed)

			f = newFixture(t)
			f.reach(Staged)
			withdraw(f)
			f.accept(Refresh)
			f.recorded(Refresh, "Success", 0, "")
			r = f.status()
			assert.Equal(t, r.State, Staged)
			assert.Assert(t, r.Chosen == nil)
			assert.Equal(t, r.Staging.Image.Version, v1270)
			f.answers("POST", posts[Prepare], 404, textChosenGone)
			assert.DeepEqual(t, f.status(), r)
		})
	}
}

// F7: the refresh saw an update and the prepare doesn't: a stage on record, with nothing written.
func phantomStage(t *testing.T, _ string) {
	for name, vanish := range map[string]func(f *fixture){
		"fault":                       func(f *fixture) { f.faults(Fault{ID: F7}) },
		"fault on the version":        func(f *fixture) { f.faults(Fault{ID: F7, Version: v1270}) },
		"withdrawn":                   func(f *fixture) { f.repo.Withdraw(arched(v1270)) },
		"locked to what runs already": func(f *fixture) { assert.NilError(f.t, f.SetSettings(Settings{VersionLock: v1261})) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.reach(Available)
			vanish(f)
			f.accept(Prepare)
			f.recorded(Prepare, "Success", 0, "No update required\n")
			r := f.status()
			assert.Equal(t, r.State, Staged)
			assert.DeepEqual(t, *r.Staging, partition{Image: image{Arch: "x86_64", Version: v1270, Variant: "aws-k8s-1.31"}})
			assert.Equal(t, f.Snapshot().Sets[1], Set{})
			// So there is nothing to activate.
			f.accept(Activate)
			f.recorded(Activate, "Failed", 1, textNotValid)
			f.Boot()
			f.runs(v1261)
		})
	}
}

// F9: the stage on record is the old choice, what is written and what boots is another version.
func anotherVersionIsWritten(t *testing.T, _ string) {
	for name, change := range map[string]func(f *fixture){
		"fault":       func(f *fixture) { f.faults(Fault{ID: F9, Version: v1260}) },
		"lock":        func(f *fixture) { assert.NilError(f.t, f.SetSettings(Settings{VersionLock: v1260})) },
		"lock with v": func(f *fixture) { assert.NilError(f.t, f.SetSettings(Settings{VersionLock: "v1.26.0"})) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.reach(Available)
			change(f)
			f.accept(Prepare)
			f.recorded(Prepare, "Success", 0, "Starting update to 1.26.0\n")
			r := f.status()
			assert.Equal(t, r.State, Staged)
			assert.Equal(t, r.Chosen.Version, v1270)
			assert.Equal(t, r.Staging.Image.Version, v1270)
			f.accept(Activate)
			assert.Equal(t, f.status().State, Ready)
			f.runs(v1261)
			f.Boot()
			f.runs(v1260)
		})
	}
}

// F23: not in this host's wave means absent, not flagged; the clock opens it.
func waveIsNotOpen(t *testing.T, _ string) {
	f := newFixture(t, func(c *Config) { c.Settings.Seed = 500 })
	f.repo.Withdraw(arched(v1270))
	assert.NilError(t, f.repo.Release(Release{Version: v1270, Variant: variant, Arch: arch, Waves: DefaultWaves(f.clock.Now())}))
	f.accept(Refresh)
	f.recorded(Refresh, "Success", 0, "")
	r := f.status()
	assert.Equal(t, r.State, Idle)
	assert.Assert(t, r.Chosen == nil)
	assert.Assert(t, !slices.Contains(r.Available, v1270))
	f.answers("POST", posts[Prepare], 409, textDisallowed)
	// The host never refreshes by itself.
	f.clock.Step(95 * time.Hour)
	assert.DeepEqual(t, f.status(), r)
	f.accept(Refresh)
	r = f.status()
	assert.Equal(t, r.State, Available)
	assert.Equal(t, r.Chosen.Version, v1270)
	assert.DeepEqual(t, r.Available, []string{v1270, v1261, v1260})
}

// F24: what is chosen is lower than what runs.
func runningVersionIsWithdrawn(t *testing.T, _ string) {
	f := newFixture(t)
	f.repo.Withdraw(arched(v1270))
	f.repo.Withdraw(arched(v1261))
	f.accept(Refresh)
	f.recorded(Refresh, "Success", 0, "")
	r := f.status()
	assert.Equal(t, r.State, Available)
	assert.Equal(t, r.Chosen.Version, v1260)
	assert.Equal(t, r.Active.Image.Version, v1261)
	f.accept(Prepare, Activate)
	f.Boot()
	f.runs(v1260)
}
