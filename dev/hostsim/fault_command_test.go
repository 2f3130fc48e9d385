package hostsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// F1: 423 on both, and later a record of a command that we did not send.
func foreignCommandHoldsTheLock(t *testing.T, variant string) {
	f := newFixture(t)
	foreign := Command(variant)
	f.reach(allowedIn[foreign])
	sent := f.Snapshot().Counters.Commands
	f.faults(Fault{ID: F1, Variant: variant, Count: 1, Delay: Duration(time.Minute)})
	f.answers("POST", posts[Refresh], 423, textLocked)
	f.isLocked()
	f.clock.Step(time.Minute - 1)
	f.isLocked()
	f.clock.Step(1)
	stderr := ""
	if foreign == Prepare {
		stderr = "Starting update to 1.27.0\n"
	}
	f.recorded(foreign, "Success", 0, stderr)
	assert.Equal(t, f.status().State, map[Command]UpdateState{
		Refresh: Available, Prepare: Staged, Activate: Ready, Deactivate: Staged}[foreign])
	assert.DeepEqual(t, f.Snapshot().Counters.Commands, sent)

	// A look finds the lock as well as a command does, and without a delay the fault's end is the lock's.
	f = newFixture(t)
	f.reach(allowedIn[foreign])
	f.faults(Fault{ID: F1, Variant: variant, Until: f.clock.Now().Add(5 * time.Second)})
	f.answers("GET", pathStatus, 423, textStatusLocked)
	f.clock.Step(5 * time.Second)
	assert.Equal(t, f.status().Last.Type, foreign)
	f.accept(Refresh)
}

// F2: 423 for ever on the status and all four commands; the rest works, a reboot too, and that ends it.
func lockIsNeverReleased(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Staged)
	f.faults(Fault{ID: F2})
	for range 3 {
		f.isLocked()
		assert.ErrorContains(t, f.Foreign(Refresh), textLocked)
		f.clock.Step(24 * time.Hour)
	}
	f.answers("POST", pathReboot, 204, "")
	f.Boot()
	f.answers("GET", pathStatus, 404, textUninitialized)
	f.accept(Refresh)

	// Held by a prepare of the version that is named, for as long as the fault is there, which a reboot doesn't end.
	f = newFixture(t)
	hung := Fault{ID: F2, Command: Prepare, Version: v1270}
	f.faults(hung)
	f.accept(Refresh, Prepare)
	f.clock.Step(24 * time.Hour)
	f.isLocked()
	_, under := f.NextEvent()
	assert.Assert(t, !under)
	f.Boot()
	assert.DeepEqual(t, f.Faults(), []Fault{hung})
	f.accept(Refresh, Prepare)
	f.isLocked()
	f.faults()
	assert.Equal(t, f.status().State, Staged)

	// Another version, and another command, end.
	f = newFixture(t)
	f.faults(Fault{ID: F2, Command: Prepare, Version: "1.28.0"}, Fault{ID: F2, Command: Deactivate})
	f.reach(Ready)
	assert.Equal(t, f.status().State, Ready)
}

// F3: after a while of 423 refresh/Failed/1; Idle and Available become Idle with the old choice, Staged
// and Ready stay.
func refreshFails(t *testing.T, _ string) {
	for state, after := range map[UpdateState]UpdateState{Idle: Idle, Available: Idle, Staged: Staged, Ready: Ready} {
		f := newFixture(t)
		f.reach(state)
		was := f.status()
		f.faults(Fault{ID: F3, Count: 1, Delay: Duration(100 * time.Second)})
		f.answers("POST", posts[Refresh], 204, "")
		f.clock.Step(99 * time.Second)
		f.isLocked()
		f.clock.Step(time.Second)
		f.failed(Refresh, 1, "Metadata error: ")
		r := f.status()
		assert.Equal(t, r.State, after, state)
		assert.DeepEqual(t, r.Chosen, was.Chosen)
		assert.DeepEqual(t, r.Available, was.Available)
		if state == Available {
			f.answers("POST", posts[Prepare], 409, textDisallowed)
		}
	}
}

// F4, F5: prepare/Failed/1, the version first and then the complaint; the state stays and the inactive set is blank, an
// earlier good stage with it. At the metadata the version isn't told yet, and there as at the migrations nothing is
// cleared yet.
func prepareFails(t *testing.T, variant string) {
	begins := map[string]string{
		"write": "Failed writing update data to disk: ", "metadata": "Metadata error: ",
		"target": "Target not found: ", "manifest": "Failed to store manifest and migrations: ",
		"open": "Failed to open partition /dev/", "table": "Failed to modify OS disk partition table: ",
		"single-bank": "Could not find inactive partition set",
	}[variant]
	assert.Assert(t, begins != "")
	survives := variant == "metadata" || variant == "manifest"
	if variant != "metadata" {
		begins = "Starting update to 1.27.0\n" + begins
	}
	id := F4
	if slices.Contains(traits[F5].variants, variant) {
		id = F5
	}
	for _, state := range []UpdateState{Available, Staged} {
		f := newFixture(t)
		f.reach(state)
		was, disk := f.status(), f.Snapshot().Sets
		f.faults(Fault{ID: id, Variant: variant, Count: 1, Delay: Duration(time.Minute)})
		f.answers("POST", posts[Prepare], 204, "")
		f.isLocked()
		f.clock.Step(time.Minute)
		f.failed(Prepare, 1, begins)
		r := f.status()
		assert.Equal(t, r.State, state)
		assert.DeepEqual(t, r.Staging, was.Staging)
		switch {
		case survives:
			assert.DeepEqual(t, f.Snapshot().Sets, disk)
		case state == Staged:
			f.accept(Activate)
			f.recorded(Activate, "Failed", 1, textNotValid)
			fallthrough
		default:
			assert.Equal(t, flags(f.Snapshot()), "1/0/1 0/0/0")
			assert.Equal(t, f.Snapshot().Sets[1], Set{})
		}
		f.accept(Prepare, Activate)
		assert.Equal(t, f.status().State, Ready)
	}
}

// F8: activate/Failed/1, the state stays Staged, and nothing on the disk changes.
func activateFails(t *testing.T, variant string) {
	text := map[string]string{"invalid": textNotValid, "marked": textMarked}[variant]
	f := newFixture(t)
	f.reach(Staged)
	f.faults(Fault{ID: F8, Variant: variant, Count: 1})
	f.accept(Activate)
	f.recorded(Activate, "Failed", 1, text)
	r := f.status()
	assert.Equal(t, r.State, Staged)
	assert.Assert(t, r.Active.NextToBoot && !r.Staging.NextToBoot)
	assert.Equal(t, flags(f.Snapshot()), "1/0/1 0/1/0")
	f.accept(Activate)
	assert.Equal(t, f.status().State, Ready)

	// The same without a fault set: over a blank set, and over one that ran before.
	f = newFixture(t)
	if variant == "marked" {
		f.reach(Ready)
		f.Boot()
		f.release("1.28.0")
	}
	f.accept(Refresh)
	f.repo.Withdraw(arched(f.status().Chosen.Version))
	f.accept(Prepare, Activate)
	f.recorded(Activate, "Failed", 1, text)
	assert.Equal(t, f.status().State, Staged)
}

func arched(version string) (string, string, string) { return variant, arch, version }

// F10: 204, the 423 ends, and the record and the state are what they were.
func childDiesSilently(t *testing.T, _ string) {
	for _, c := range allCommands {
		f := newFixture(t)
		f.reach(allowedIn[c])
		was := f.do("GET", pathStatus)
		f.faults(Fault{ID: F10, Command: c, Count: 1, Delay: Duration(time.Second)})
		f.answers("POST", posts[c], 204, "")
		f.isLocked()
		f.clock.Step(time.Second)
		assert.DeepEqual(t, f.do("GET", pathStatus), was)
		f.clock.Step(time.Hour)
		assert.DeepEqual(t, f.do("GET", pathStatus), was)
		f.accept(c)
		assert.Equal(t, f.status().Last.Type, c)
	}
	// The parent makes the status file, so a fresh boot then has a record without a command.
	f := newFixture(t)
	f.faults(Fault{ID: F10})
	f.accept(Refresh)
	f.isJSON(pathStatus, exampleFresh)
}

// F21: Ready becomes Staged with deactivate/Success that we did not send, and the flags are swapped.
func cancelFromOutside(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Ready)
	assert.Equal(t, flags(f.Snapshot()), "1/0/1 2/1/0")
	assert.NilError(t, f.Foreign(Deactivate))
	f.recorded(Deactivate, "Success", 0, "")
	r := f.status()
	assert.Equal(t, r.State, Staged)
	assert.Assert(t, r.Active.NextToBoot && !r.Staging.NextToBoot)
	assert.Equal(t, flags(f.Snapshot()), "2/0/1 0/1/0")
	assert.Equal(t, f.Snapshot().Counters.Commands[Deactivate], 0)
	f.Boot()
	f.runs(v1261)
}

// F22: in Staged and Ready, a choice newer than the stage; the state stays, and the stage is what boots.
func newerRefreshFromOutside(t *testing.T, _ string) {
	for _, state := range []UpdateState{Staged, Ready} {
		f := newFixture(t)
		f.reach(state)
		f.release("1.28.0")
		assert.NilError(t, f.Foreign(Refresh))
		f.recorded(Refresh, "Success", 0, "")
		r := f.status()
		assert.Equal(t, r.State, state)
		assert.Equal(t, r.Chosen.Version, "1.28.0")
		assert.Equal(t, r.Staging.Image.Version, v1270)
		assert.Equal(t, f.Snapshot().Counters.Commands[Refresh], 1)
		if state == Staged {
			f.accept(Activate)
		}
		f.Boot()
		f.runs(v1270)
	}
}

// F27: refresh/Failed, 101 with the text of a panic or 1 with a complaint about the configuration.
func configurationIsBad(t *testing.T, variant string) {
	exit, begins := int32(1), "Failed to parse config file /etc/updog.toml: "
	if variant == "panic" {
		exit, begins = 101, "thread 'main' panicked at "
	}
	for state, after := range map[UpdateState]UpdateState{Available: Idle, Staged: Staged} {
		f := newFixture(t)
		f.reach(state)
		f.faults(Fault{ID: F27, Variant: variant})
		f.accept(Refresh)
		f.failed(Refresh, exit, begins)
		r := f.status()
		assert.Equal(t, r.State, after)
		assert.Equal(t, r.Chosen.Version, v1270)
	}
	if variant == "panic" {
		// The bad seed itself; it matters only where there are waves to look through.
		f := newFixture(t, func(c *Config) { c.Settings.Seed = 2049 })
		f.accept(Refresh)
		f.recorded(Refresh, "Success", 0, "")
		assert.NilError(t, f.repo.Release(Release{Version: "1.28.0", Variant: "aws-k8s-1.31", Arch: arch, Waves: DefaultWaves(f.clock.Now())}))
		f.accept(Refresh)
		f.failed(Refresh, 101, begins)
	}
}

// F30: Failed with the signal as the exit status and what had been printed by then; nothing is done.
func updogIsKilled(t *testing.T, variant string) {
	exit := map[string]int32{"9": 9, "15": 15}[variant]
	for _, c := range allCommands {
		f := newFixture(t)
		f.reach(allowedIn[c])
		flagsBefore := flags(f.Snapshot())
		f.faults(Fault{ID: F30, Variant: variant, Command: c, Count: 1})
		f.accept(c)
		stderr, state := "", allowedIn[c]
		switch c {
		case Refresh:
			state = Idle
		case Prepare:
			stderr = "Starting update to 1.27.0\n"
		case Activate, Deactivate:
		}
		f.recorded(c, "Failed", exit, stderr)
		assert.Equal(t, f.status().State, state)
		assert.Equal(t, flags(f.Snapshot()), flagsBefore)
	}
}

// F31: both flips load the repository first. The failure says so at its end, nothing changes, and the lock was held all
// the while.
func repositoryIsDownAtAFlip(t *testing.T, _ string) {
	for _, c := range []Command{Activate, Deactivate} {
		f := newFixture(t)
		f.reach(allowedIn[c])
		before := flags(f.Snapshot())
		f.faults(Fault{ID: F31, Command: c, Count: 1, Delay: Duration(155 * time.Second)})
		f.answers("POST", posts[c], 204, "")
		f.clock.Step(154 * time.Second)
		f.isLocked()
		f.clock.Step(time.Second)
		f.failed(c, 1, "Metadata error: Failed to fetch ")
		stderr := f.status().Last.Stderr
		assert.Assert(t, len(stderr) > 300 && strings.HasSuffix(stderr, "(os error 111)\n"), stderr)
		assert.Equal(t, f.status().State, allowedIn[c])
		assert.Equal(t, flags(f.Snapshot()), before)
		f.accept(c)
		assert.Equal(t, f.status().Last.Status, "Success")
	}
}

// F32: 408 without a body, or a reset, and nothing was executed.
func requestComesTooLate(t *testing.T, variant string) {
	want := Answer{Status: 408}
	if variant == "reset" {
		want = Answer{Cut: CutReset}
	}
	f := newFixture(t)
	f.reach(Ready)
	before := f.status()
	for _, request := range [][2]string{{"GET", pathStatus}, {"POST", posts[Deactivate]}, {"POST", pathReboot}} {
		f.faults(Fault{ID: F32, Variant: variant, On: request[1], Count: 1})
		assert.DeepEqual(t, f.do(request[0], request[1]), want)
		assert.DeepEqual(t, f.status(), before)
	}
	assert.Equal(t, f.Snapshot().Counters.RebootsAsked, 0)
	f.faults(Fault{ID: F32, Variant: variant})
	assert.DeepEqual(t, f.do("GET", pathOS), want)
}

// F33: it passes by itself, and makes no record.
func dispatcherCannotBeStarted(t *testing.T, _ string) {
	for _, c := range allCommands {
		f := newFixture(t)
		f.reach(allowedIn[c])
		before := f.status()
		f.faults(Fault{ID: F33, Command: c, Count: 1})
		f.answers("POST", posts[c], 500, "Unable to start the update dispatcher: Cannot allocate memory (os error 12) ")
		assert.DeepEqual(t, f.status(), before)
		f.accept(c)
	}
}

// F34: Success, and what was known before stands; on the first refresh of a boot that is nothing.
func refreshDoesNotLook(t *testing.T, _ string) {
	f := newFixture(t)
	f.faults(Fault{ID: F34})
	f.accept(Refresh)
	f.recorded(Refresh, "Success", 0, "")
	r := f.status()
	assert.Equal(t, r.State, Idle)
	assert.Assert(t, r.Chosen == nil && len(r.Available) == 0)
	f.faults()
	f.accept(Refresh)
	f.release("1.28.0")
	f.faults(Fault{ID: F34})
	f.accept(Refresh)
	r = f.status()
	assert.Equal(t, r.State, Available)
	assert.Equal(t, r.Chosen.Version, v1270)
}

// F35: the command does what it does, and the record of it is megabytes long.
func commandPrintsMegabytes(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Available)
	f.faults(Fault{ID: F35, Command: Prepare, Count: 1})
	f.accept(Prepare)
	r := f.status()
	assert.Equal(t, r.State, Staged)
	assert.Assert(t, len(r.Last.Stderr) > 2<<20 && strings.HasPrefix(r.Last.Stderr, "Starting update to 1.27.0\n"))
}
