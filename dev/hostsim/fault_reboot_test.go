package hostsim

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// F14: 500 with the reason, and the machine stays up.
func rebootIsRefused(t *testing.T, variant string) {
	f := newFixture(t)
	f.reach(Ready)
	id := f.BootID()
	f.faults(Fault{ID: F14, Variant: variant, Count: 1})
	a := f.do("POST", pathReboot)
	assert.Equal(t, a.Status, 500)
	assert.Equal(t, a.ContentType, "")
	begins := map[string]string{
		"inhibited": "Failed to reboot, exit code: 1, stderr: Operation inhibited by ", "start": "Unable to start shutdown: "}[variant]
	assert.Assert(t, strings.HasPrefix(string(a.Body), begins), string(a.Body))
	f.clock.Step(time.Hour)
	assert.Assert(t, !f.Settle())
	assert.Equal(t, f.BootID(), id)
	assert.Equal(t, f.status().State, Ready)
	f.answers("POST", pathReboot, 204, "")
	assert.Assert(t, f.Settle())
	assert.Equal(t, f.Snapshot().Counters.RebootsAsked, 2)
}

// F15: no status at all and the machine reboots; or 204, and it reboots up to 300 s later.
func rebootAnswerIsLost(t *testing.T, variant string) {
	if variant == "delay" {
		rebootIsLate(t)
		return
	}
	want := map[string]error{"eof": io.EOF, "reset": syscall.ECONNRESET}[variant]
	down := make(chan struct{}, 1)
	s := serve(t, newFixture(t, func(c *Config) { c.OnReboot = func() { down <- struct{}{} } }))
	s.reach(Ready)
	id := s.BootID()
	s.faults(Fault{ID: F15, Variant: variant, Count: 1})
	_, _, err := s.request("POST", pathReboot)
	assert.ErrorIs(t, err, want)
	select {
	case <-down:
	case <-time.After(20 * time.Second):
		t.Fatal("the machine doesn't go down")
	}
	s.Boot()
	assert.Assert(t, s.BootID() != id)
	s.runs(v1270)

	// And without a socket.
	s = &served{fixture: newFixture(t)}
	s.client = &http.Client{Transport: s.Transport()}
	s.faults(Fault{ID: F15, Variant: variant})
	_, _, err = s.request("POST", pathReboot)
	assert.ErrorIs(t, err, want)
	assert.Equal(t, s.downs, 1)
}

func rebootIsLate(t *testing.T) {
	f := newFixture(t)
	f.reach(Ready)
	id := f.BootID()
	f.faults(Fault{ID: F15, Variant: "delay", Delay: Duration(300 * time.Second)})
	f.answers("POST", pathReboot, 204, "")
	next, _ := f.NextEvent()
	assert.Equal(t, next, f.clock.Now().Add(300*time.Second))
	f.clock.Step(300*time.Second - 1)
	assert.Assert(t, !f.Settle())
	assert.Equal(t, f.status().State, Ready)
	assert.Equal(t, f.BootID(), id)
	// To ask once more doesn't put it off.
	f.answers("POST", pathReboot, 204, "")
	f.clock.Step(1)
	assert.Assert(t, f.Settle())
	assert.Equal(t, f.downs, 1)
}

// F16: 204, and the machine either stays up for ever or goes down and never returns.
func rebootNeverHappens(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Ready)
	id := f.BootID()
	f.faults(Fault{ID: F16})
	f.answers("POST", pathReboot, 204, "")
	f.clock.Step(24 * time.Hour)
	assert.Assert(t, !f.Settle())
	assert.Equal(t, f.downs, 0)
	assert.Equal(t, f.BootID(), id)
	assert.Equal(t, f.status().State, Ready)
	f.runs(v1261)

	s := &served{fixture: newFixture(t, func(c *Config) { c.OnReboot = nil })}
	s.client = &http.Client{Transport: s.Transport()}
	status, _, err := s.request("POST", pathReboot)
	assert.NilError(t, err)
	assert.Equal(t, status, 204)
	s.PowerOff()
	for range 3 {
		s.clock.Step(24 * time.Hour)
		_, _, err = s.request("GET", pathOS)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	// A machine that dies with a request in hand doesn't answer it.
	assert.Equal(t, s.do("GET", pathOS).Cut, CutEOF)
}

// F17: a new boot ID, but the old version everywhere, and no memory of it: the same is offered again.
func newSetRollsBack(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Ready)
	f.faults(Fault{ID: F17, Version: v1270, Count: 1})
	id := f.BootID()
	f.answers("POST", pathReboot, 204, "")
	assert.Assert(t, f.Settle())
	f.Boot()
	assert.Assert(t, f.BootID() != id)
	f.runs(v1261)
	s := f.Snapshot()
	assert.Equal(t, s.Counters.Boots, 2)
	assert.Equal(t, flags(s), "1/0/1 2/0/0")
	f.answers("GET", pathStatus, 404, textUninitialized)
	f.accept(Refresh)
	r := f.status()
	assert.Equal(t, r.State, Available)
	assert.Equal(t, r.Chosen.Version, v1270)
	assert.Assert(t, r.Active.NextToBoot)
	// Any later boot stays on the old version: the one try is used up.
	f.Boot()
	f.runs(v1261)
	// A second attempt is like the first.
	f.accept(Refresh, Prepare, Activate)
	f.Boot()
	f.runs(v1270)

	// It is about the version that is named.
	f = newFixture(t)
	f.reach(Ready)
	f.faults(Fault{ID: F17, Version: "1.28.0"})
	f.Boot()
	f.runs(v1270)
}

// F18: new boot ID and version, and nothing rolls back: the set was marked successful long before the
// kubelet starts. That the node isn't Ready is for the simulated kubelet.
func nodeNeverGetsReady(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Ready)
	f.faults(Fault{ID: F18})
	id := f.BootID()
	f.Boot()
	assert.Assert(t, f.BootID() != id)
	f.runs(v1270)
	assert.Equal(t, flags(f.Snapshot()), "1/0/1 2/0/1")
	f.clock.Step(24 * time.Hour)
	f.Boot()
	f.runs(v1270)
	assert.DeepEqual(t, f.Faults(), []Fault{{ID: F18}})
}

// F19: the new version, with no reboot that we asked for.
func rebootFromOutsideWhileReady(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Ready)
	id := f.BootID()
	f.Boot()
	assert.Assert(t, f.BootID() != id)
	f.runs(v1270)
	f.answers("GET", pathStatus, 404, textUninitialized)
	assert.Equal(t, f.Snapshot().Counters.RebootsAsked, 0)
	f.accept(Refresh)
	r := f.status()
	assert.Equal(t, r.State, Idle)
	assert.Equal(t, r.Active.Image.Version, v1270)
}

// F20: the old version in a new boot, and the stage is forgotten.
func rebootFromOutsideWhileStaged(t *testing.T, _ string) {
	f := newFixture(t)
	f.reach(Staged)
	id := f.BootID()
	f.Boot()
	assert.Assert(t, f.BootID() != id)
	f.runs(v1261)
	f.answers("GET", pathStatus, 404, textUninitialized)
	assert.Equal(t, f.Snapshot().Counters.RebootsAsked, 0)
	f.answers("POST", posts[Activate], 409, textDisallowed)
	f.accept(Refresh)
	r := f.status()
	assert.Equal(t, r.State, Available)
	assert.Assert(t, r.Staging == nil)
	assert.Equal(t, r.Chosen.Version, v1270)
}

// isTimeout tells a client that gave up.
func isTimeout(err error) bool {
	var ne interface{ Timeout() bool }
	return errors.As(err, &ne) && ne.Timeout()
}
