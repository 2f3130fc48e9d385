package hostsim

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestPartitionFlags(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Latencies.Prepare = time.Minute })
	is := func(want string) {
		t.Helper()
		assert.Equal(t, flags(f.Snapshot()), want)
	}
	is("1/0/1 0/0/0")
	f.accept(Refresh, Prepare)
	is("1/0/1 0/0/0") // under way
	f.clock.Step(time.Minute)
	is("1/0/1 0/1/0")
	f.accept(Activate)
	is("1/0/1 2/1/0")
	f.accept(Deactivate)
	is("2/0/1 0/1/0")
	f.accept(Activate)
	is("1/0/1 2/1/0")
	f.Boot()
	is("1/0/1 2/0/1")
	assert.Equal(t, f.Snapshot().Version, v1270)
	// And back over the set that was the running one before.
	f.release("1.28.0")
	f.accept(Refresh, Prepare)
	is("0/0/0 2/0/1")
	f.clock.Step(time.Minute)
	is("0/1/0 2/0/1")
	f.accept(Activate)
	is("2/1/0 1/0/1")
	f.Boot()
	is("2/0/1 1/0/1")
	assert.Equal(t, f.Snapshot().Version, "1.28.0")
}

// F17 is about new sets: a set that came up once isn't touched, and the fault isn't used up.
func TestRollbackSparesProvenSets(t *testing.T) {
	f := newFixture(t)
	f.faults(Fault{ID: F17, Count: 1})
	f.Boot()
	assert.Equal(t, f.Snapshot().Counters.Boots, 1)
	assert.Equal(t, len(f.Faults()), 1)
}

func TestBootIDsAreDeterministicAndDistinct(t *testing.T) {
	a, b := newFixture(t), newFixture(t)
	other := newFixture(t, func(c *Config) { c.Name = "node-2" })
	seen := map[string]bool{}
	for range 3 {
		assert.Equal(t, a.BootID(), b.BootID())
		assert.Equal(t, len(a.BootID()), 36)
		seen[a.BootID()], seen[other.BootID()] = true, true
		a.Boot()
		b.Boot()
		other.Boot()
	}
	assert.Equal(t, len(seen), 6)
}

func TestBootWipesWhatIsVolatile(t *testing.T) {
	for _, s := range []UpdateState{Idle, Available, Staged, Ready} {
		t.Run(string(s), func(t *testing.T) {
			f := newFixture(t)
			f.reach(s)
			f.Boot()
			want := v1261
			if s == Ready {
				want = v1270 // an unplanned reboot in Ready is an update
			}
			assert.Equal(t, f.Snapshot().Version, want)
			assert.Equal(t, f.do("GET", pathStatus).Status, 404)
		})
	}
}

func TestMachineGoesDownWithACommandUnderWay(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Latencies.Prepare = time.Minute })
	f.accept(Refresh, Prepare)
	f.PowerOff()
	assert.Assert(t, f.Snapshot().Off)
	assert.Equal(t, f.do("GET", pathOS).Cut, CutEOF)
	assert.ErrorContains(t, f.Foreign(Refresh), "off")
	f.clock.Step(time.Hour)
	_, any := f.NextEvent()
	assert.Assert(t, !any)
	f.Boot()
	assert.Equal(t, f.Snapshot().Sets[1], Set{})
}

func TestForeignBoot(t *testing.T) {
	f := newFixture(t)
	assert.NilError(t, f.ApplyOutside("1.28.0"))
	f.accept(Refresh)
	assert.Equal(t, f.status().Active.NextToBoot, false)
	f.Boot()
	assert.Equal(t, f.Snapshot().Version, "1.28.0")
}

func TestRebootCallsBackOnce(t *testing.T) {
	f := newFixture(t)
	assert.DeepEqual(t, f.do("POST", pathReboot), Answer{Status: 204})
	assert.Equal(t, f.downs, 0)
	assert.Assert(t, f.Settle())
	assert.Assert(t, !f.Settle())
	assert.Equal(t, f.downs, 1)
	assert.Equal(t, f.Snapshot().Counters.RebootsAsked, 1)
}
