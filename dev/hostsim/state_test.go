package hostsim

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// Every state, every command, both endings.
func TestStateMachine(t *testing.T) {
	const refused = 409
	for _, c := range []struct {
		state   UpdateState
		command Command
		faults  []Fault
		status  int
		after   UpdateState
	}{
		{"", Refresh, nil, 204, Available},
		{"", Refresh, []Fault{{ID: F6}}, 204, Idle},
		{"", Refresh, []Fault{{ID: F3}}, 204, Idle},
		{"", Prepare, nil, refused, Idle},
		{"", Activate, nil, refused, Idle},
		{"", Deactivate, nil, refused, Idle},
		{Idle, Refresh, nil, 204, Available},
		{Idle, Refresh, []Fault{{ID: F6}}, 204, Idle},
		{Idle, Refresh, []Fault{{ID: F3}}, 204, Idle},
		{Idle, Prepare, nil, refused, Idle},
		{Idle, Activate, nil, refused, Idle},
		{Idle, Deactivate, nil, refused, Idle},
		{Available, Refresh, nil, 204, Available},
		{Available, Refresh, []Fault{{ID: F6}}, 204, Idle},
		{Available, Refresh, []Fault{{ID: F3}}, 204, Idle},
		{Available, Prepare, nil, 204, Staged},
		{Available, Prepare, []Fault{{ID: F4}}, 204, Available},
		{Available, Activate, nil, refused, Available},
		{Available, Deactivate, nil, refused, Available},
		{Staged, Refresh, nil, 204, Staged},
		{Staged, Refresh, []Fault{{ID: F6}}, 204, Staged},
		{Staged, Refresh, []Fault{{ID: F3}}, 204, Staged},
		{Staged, Prepare, nil, 204, Staged},
		{Staged, Prepare, []Fault{{ID: F4}}, 204, Staged},
		{Staged, Activate, nil, 204, Ready},
		{Staged, Activate, []Fault{{ID: F8}}, 204, Staged},
		{Staged, Deactivate, nil, refused, Staged},
		{Ready, Refresh, nil, 204, Ready},
		{Ready, Refresh, []Fault{{ID: F6}}, 204, Ready},
		{Ready, Refresh, []Fault{{ID: F3}}, 204, Ready},
		{Ready, Prepare, nil, refused, Ready},
		{Ready, Activate, nil, refused, Ready},
		{Ready, Deactivate, nil, 204, Staged},
		{Ready, Deactivate, []Fault{{ID: F30}}, 204, Ready},
	} {
		name := string(c.state) + "/" + string(c.command)
		for _, f := range c.faults {
			name += "/" + string(f.ID)
		}
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.reach(c.state)
			f.faults(c.faults...)
			var before *commandRecord
			if c.state != "" {
				before = f.status().Last
			}
			a := f.post(c.command)
			assert.Equal(t, a.Status, c.status)
			after := f.status()
			assert.Equal(t, after.State, c.after)
			if c.status == refused {
				assert.Equal(t, string(a.Body), bodyDisallowed)
				assert.DeepEqual(t, after.Last, before)
				return
			}
			assert.Equal(t, after.Last.Type, c.command)
			failed := len(c.faults) > 0 && c.faults[0].ID != F6
			assert.Equal(t, after.Last.Status == "Failed", failed)
			assert.Equal(t, after.Last.Exit != 0, failed)
		})
	}
}

func TestStatusStartsUninitialized(t *testing.T) {
	f := newFixture(t)
	a := f.do("GET", pathStatus)
	assert.Equal(t, a.Status, 404)
	assert.Equal(t, string(a.Body), bodyUninitialized)
	assert.Equal(t, a.ContentType, "")
}

func TestLockIsHeldWithoutAGap(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Latencies.Refresh = 3 * time.Second })
	_, any := f.NextEvent()
	assert.Assert(t, !any)
	assert.Equal(t, f.post(Refresh).Status, 204)
	end := f.clock.Now().Add(3 * time.Second)
	next, any := f.NextEvent()
	assert.Assert(t, any)
	assert.Equal(t, next, end)
	for range 3 {
		a := f.do("GET", pathStatus)
		assert.Equal(t, a.Status, 423)
		assert.Equal(t, string(a.Body), bodyStatusLocked)
		// 423 goes before 409.
		for _, c := range []Command{Refresh, Prepare, Activate, Deactivate} {
			a = f.post(c)
			assert.Equal(t, a.Status, 423)
			assert.Equal(t, string(a.Body), bodyLocked)
		}
		assert.Equal(t, f.do("GET", pathOS).Status, 200)
		f.clock.Step(time.Second)
	}
	// The record has the time of the end, however late it is read.
	f.clock.Step(time.Hour)
	assert.Equal(t, f.status().Last.Timestamp, timestamp(end))
	assert.Equal(t, f.Snapshot().Counters.Commands[Refresh], 1)
}

func TestCommandsAtOneTimeHaveTheirOwnTimestamps(t *testing.T) {
	f := newFixture(t)
	seen := map[string]bool{}
	for range 4 {
		assert.Equal(t, f.post(Refresh).Status, 204)
		seen[f.status().Last.Timestamp] = true
	}
	assert.Equal(t, len(seen), 4)
}

func TestFailedRefreshKeepsTheOldChoice(t *testing.T) {
	f := newFixture(t)
	f.reach(Available)
	f.faults(Fault{ID: F3})
	f.accept(Refresh)
	r := f.status()
	assert.Equal(t, r.State, Idle)
	assert.Equal(t, r.Chosen.Version, v1270)
	assert.DeepEqual(t, r.Available, []string{v1270, v1261, v1260})
}

func TestPrepareFromStagedNeedsAChoice(t *testing.T) {
	f := newFixture(t)
	f.reach(Staged)
	f.repo.Withdraw(variant, arch, v1270)
	f.accept(Refresh)
	assert.Assert(t, f.status().Chosen == nil)
	a := f.post(Prepare)
	assert.Equal(t, a.Status, 404)
	assert.Equal(t, string(a.Body), bodyChosenGone)
}

// A retry destroys the good stage before it.
func TestFailedPrepareBlanksTheStage(t *testing.T) {
	f := newFixture(t)
	f.reach(Staged)
	f.faults(Fault{ID: F4, Count: 1})
	f.accept(Prepare)
	assert.Equal(t, f.status().Staging.Image.Version, v1270)
	assert.Equal(t, f.Snapshot().Sets[1], Set{})
	f.accept(Activate)
	r := f.status()
	assert.Equal(t, r.State, Staged)
	assert.Equal(t, r.Last.Status, "Failed")
	assert.Equal(t, r.Last.Stderr, stderrNotValid)
	f.accept(Prepare, Activate)
	assert.Equal(t, f.status().State, Ready)
}

func TestForeignCommands(t *testing.T) {
	f := newFixture(t)
	f.reach(Ready)
	assert.ErrorContains(t, f.Foreign(Prepare), bodyDisallowed)
	assert.NilError(t, f.Foreign(Deactivate))
	r := f.status()
	assert.Equal(t, r.State, Staged)
	assert.Equal(t, r.Last.Type, Deactivate)
	assert.Assert(t, r.Active.NextToBoot && !r.Staging.NextToBoot)
	assert.Equal(t, f.Snapshot().Counters.Commands[Deactivate], 0)
	// A newer choice next to an older stage.
	f.release("1.28.0")
	assert.NilError(t, f.Foreign(Refresh))
	r = f.status()
	assert.Equal(t, r.State, Staged)
	assert.Equal(t, r.Chosen.Version, "1.28.0")
	assert.Equal(t, r.Staging.Image.Version, v1270)
}
