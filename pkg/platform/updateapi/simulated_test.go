package updateapi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
)

const (
	variant = "aws-k8s-1.31"
	arch    = "x86_64"
)

// simulated is a client of a simulated host over a real socket. Only the test moves the host's clock.
type simulated struct {
	*updateapi.Client
	t      *testing.T
	host   *hostsim.Host
	server *hostsim.Server
	repo   *hostsim.Repo
	socket string
	clock  *clocktesting.FakeClock
	down   chan struct{}
}

func simulate(t *testing.T, change ...func(*hostsim.Config)) *simulated {
	t.Helper()
	// The path of a socket is bounded to some 100 bytes, and t.TempDir has the test's name in it.
	dir, err := os.MkdirTemp("", "updateapi")
	assert.NilError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &simulated{
		t: t, repo: &hostsim.Repo{}, socket: filepath.Join(dir, "api.sock"), down: make(chan struct{}, 8),
		clock: clocktesting.NewFakeClock(time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)),
	}
	for _, v := range []string{"1.26.0", "1.26.1", "1.27.0"} {
		assert.NilError(t, s.repo.Release(hostsim.Release{Version: v, Variant: variant, Arch: arch}))
	}
	cfg := hostsim.Config{
		Version: "1.26.1", Repo: s.repo, Now: s.clock.Now,
		OnReboot: func() { s.down <- struct{}{} },
	}
	for _, c := range change {
		c(&cfg)
	}
	s.host, err = hostsim.New(cfg)
	assert.NilError(t, err)
	s.server = hostsim.NewServer(s.host)
	assert.NilError(t, s.server.Serve(s.socket))
	t.Cleanup(func() { assert.NilError(t, s.server.Close()) })
	s.Client = updateapi.New(updateapi.Config{
		Socket:  s.socket,
		Timeout: 20 * time.Second,
		BootID:  func() (string, error) { return s.host.BootID(), nil },
	})
	return s
}

// impatient is a client with a short timeout, for hosts that hang.
func (s *simulated) impatient() *updateapi.Client {
	return updateapi.New(updateapi.Config{
		Socket:  s.socket,
		Timeout: 200 * time.Millisecond,
		BootID:  func() (string, error) { return s.host.BootID(), nil },
	})
}

func (s *simulated) observe() next.Host {
	s.t.Helper()
	h, err := s.Observe(context.Background())
	assert.NilError(s.t, err)
	return h
}

func (s *simulated) start(commands ...next.Command) {
	s.t.Helper()
	for _, c := range commands {
		assert.NilError(s.t, s.Start(context.Background(), c))
		s.clock.Step(time.Second)
	}
}

func (s *simulated) refused(c next.Command, why next.Refusal, body string) {
	s.t.Helper()
	var r *platform.RefusedError
	err := s.Start(context.Background(), c)
	assert.Assert(s.t, errors.As(err, &r), "%v", err)
	assert.DeepEqual(s.t, r, &platform.RefusedError{Command: c, Why: why, Body: body})
}

func (s *simulated) faults(faults ...hostsim.Fault) {
	s.t.Helper()
	assert.NilError(s.t, s.host.SetFaults(faults...))
}

func (s *simulated) goesDown() {
	s.t.Helper()
	select {
	case <-s.down:
	case <-time.After(20 * time.Second):
		s.t.Fatal("the machine doesn't go down")
	}
}

// A whole update, as the client sees it.
func TestUpdate(t *testing.T) {
	s := simulate(t)
	want := next.Host{BootID: s.host.BootID(), Version: "1.26.1", Variant: variant, Arch: arch, VersionLock: "latest", WaveSeed: "0"}
	assert.DeepEqual(t, s.observe(), want)

	s.start(next.CommandRefresh)
	want.State, want.Chosen, want.ChosenKnown, want.Offered = next.HostAvailable, "1.27.0", true, "1.27.0,1.26.1,1.26.0"
	want.Last = next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: "2026-09-20T10:00:00Z"}
	assert.DeepEqual(t, s.observe(), want)

	s.start(next.CommandPrepare)
	want.State, want.Staged, want.ChosenKnown = next.HostStaged, "1.27.0", false
	want.Last = next.LastCommand{
		Command: next.CommandPrepare, Success: true, Timestamp: "2026-09-20T10:00:01Z", Started: "1.27.0",
	}
	assert.DeepEqual(t, s.observe(), want)

	s.start(next.CommandActivate)
	want.State = next.HostReady
	want.Last = next.LastCommand{Command: next.CommandActivate, Success: true, Timestamp: "2026-09-20T10:00:02Z"}
	assert.DeepEqual(t, s.observe(), want)

	s.start(next.CommandDeactivate)
	assert.Equal(t, s.observe().State, next.HostStaged)
	s.start(next.CommandActivate, next.CommandReboot)
	s.goesDown()
	s.host.Boot()
	got := s.observe()
	assert.Assert(t, got.BootID != want.BootID)
	assert.DeepEqual(t, got, next.Host{BootID: s.host.BootID(), Version: "1.27.0", Variant: variant, Arch: arch, VersionLock: "latest", WaveSeed: "0"})
}

// Settings are what stands in the data store. A store that is locked down, or an answer without them, says nothing of
// them, and hinders nothing else.
func TestSettings(t *testing.T) {
	s := simulate(t)
	settings := func() string {
		h := s.observe()
		assert.Equal(t, h.Version, "1.26.1")
		return h.VersionLock + " " + h.WaveSeed
	}
	assert.NilError(t, s.host.SetSettings(hostsim.Settings{VersionLock: "v1.26.1", Seed: 2047}))
	assert.Equal(t, settings(), "v1.26.1 2047")
	s.faults(hostsim.Fault{ID: hostsim.F26})
	assert.Equal(t, settings(), " ")
}

func TestLocked(t *testing.T) {
	s := simulate(t, func(c *hostsim.Config) { c.Latencies.Refresh = time.Minute })
	s.start(next.CommandRefresh)
	assert.DeepEqual(t, s.observe(),
		next.Host{BootID: s.host.BootID(), Version: "1.26.1", Variant: variant, Arch: arch, Locked: true})
	s.refused(next.CommandPrepare, next.RefusedLocked, "Update lock held")
	s.clock.Step(time.Minute)
	assert.Equal(t, s.observe().State, next.HostAvailable)
}

func TestRefusals(t *testing.T) {
	s := simulate(t)
	s.refused(next.CommandPrepare, next.RefusedState, "Update action not allowed according to update state")
	s.start(next.CommandRefresh, next.CommandPrepare)
	s.repo.Withdraw(variant, arch, "1.27.0")
	s.start(next.CommandRefresh)
	s.refused(next.CommandPrepare, next.RefusedMissing, "Previously chosen Update no longer exists")
	// Nothing chosen, and that is known.
	h := s.observe()
	assert.Assert(t, h.ChosenKnown)
	assert.Equal(t, h.Chosen, "")
	s.faults(hostsim.Fault{ID: hostsim.F25})
	s.refused(next.CommandRefresh, next.RefusedUnsupported,
		"Unable to start the update dispatcher: No such file or directory (os error 2)")
	assert.Equal(t, s.observe().State, next.HostUninitialized)
	s.faults(hostsim.Fault{ID: hostsim.F25, Variant: "routes"})
	s.refused(next.CommandRefresh, next.RefusedUnsupported, "")
	_, err := s.Observe(context.Background())
	assert.ErrorContains(t, err, "get /os: the api has no such route: the os is older than 0.4.1")
}

func TestStaleChoiceIsNotKnown(t *testing.T) {
	s := simulate(t)
	s.start(next.CommandRefresh)
	s.faults(hostsim.Fault{ID: hostsim.F3})
	s.start(next.CommandRefresh)
	h := s.observe()
	assert.Equal(t, h.State, next.HostIdle)
	assert.Equal(t, h.Chosen, "1.27.0")
	assert.Assert(t, !h.ChosenKnown && !h.Last.Success)
	assert.Equal(t, h.Last.Problem, "Metadata error: Failed to fetch https://updates.bottlerocket.aws/2020-07-07/"+
		"aws-k8s-1.31/x86_64/timestamp.json: error sending request")
}

func TestPrepareOutcomes(t *testing.T) {
	s := simulate(t)
	s.start(next.CommandRefresh)
	s.faults(hostsim.Fault{ID: hostsim.F4, Variant: "target"})
	s.start(next.CommandPrepare)
	h := s.observe()
	assert.Equal(t, h.Last.Started, "1.27.0")
	assert.Equal(t, h.Last.Problem, "Target not found: bottlerocket-boot.ext4.lz4")
	// Another version than the one that the host then says is staged.
	s.faults(hostsim.Fault{ID: hostsim.F9, Version: "1.26.0"})
	s.start(next.CommandPrepare)
	h = s.observe()
	assert.Equal(t, h.Staged, "1.27.0")
	assert.Equal(t, h.Last.Started, "1.26.0")
	// None at all.
	s.faults(hostsim.Fault{ID: hostsim.F7})
	s.start(next.CommandPrepare)
	h = s.observe()
	assert.Equal(t, h.State, next.HostStaged)
	assert.Equal(t, h.Last.Started, "")
	assert.Assert(t, h.Last.Success)
}

func TestForeignBoot(t *testing.T) {
	s := simulate(t)
	assert.NilError(t, s.host.ApplyOutside("1.28.0"))
	s.start(next.CommandRefresh)
	assert.Assert(t, s.observe().ForeignBoot)
}

func TestReboot(t *testing.T) {
	s := simulate(t)
	ctx := context.Background()
	var refused *platform.RefusedError
	var gone *platform.GoneError
	s.faults(hostsim.Fault{ID: hostsim.F14})
	err := s.Start(ctx, next.CommandReboot)
	assert.ErrorContains(t, err, "post /actions/reboot: whether it began is open after the answer 500: Failed to reboot, exit code: 1")
	assert.Assert(t, !errors.As(err, &refused))
	for _, v := range []string{"eof", "reset"} {
		s.faults(hostsim.Fault{ID: hostsim.F15, Variant: v})
		err = s.Start(ctx, next.CommandReboot)
		assert.ErrorContains(t, err, "post /actions/reboot: ")
		assert.Assert(t, !errors.As(err, &refused) && !errors.As(err, &gone), "%v", err)
		s.goesDown()
	}
	s.faults(hostsim.Fault{ID: hostsim.F12})
	err = s.impatient().Start(ctx, next.CommandReboot)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Assert(t, !errors.As(err, &refused))
}

func TestHungSocket(t *testing.T) {
	s := simulate(t)
	s.start(next.CommandRefresh)
	for v, want := range map[string]string{
		"silent": "deadline exceeded", "headers": "read the body of the 200 answer: context deadline exceeded", "truncated": "unexpected EOF",
	} {
		s.faults(hostsim.Fault{ID: hostsim.F12, Variant: v, On: "/updates/status"})
		_, err := s.impatient().Observe(context.Background())
		assert.ErrorContains(t, err, "get /updates/status: ", v)
		assert.ErrorContains(t, err, want, v)
	}
}

func TestCallerMayCancel(t *testing.T) {
	s := simulate(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Observe(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, s.Start(ctx, next.CommandRefresh), context.Canceled)
}

func TestMalformedAnswers(t *testing.T) {
	s := simulate(t)
	s.start(next.CommandRefresh)
	for variant, want := range map[string]string{
		"cut": "decode body", "html": `"<html> <body>It works!</body> </html>": body is not a json object`, "empty": "not a json object",
		"types": "decode body", "state": `unknown update_state "Rebooting"`, "command": `unknown cmd_type "defragment"`,
		"version": `version "one point two" is not a semantic version`, "oversize": "longer than 1048576 bytes",
		"dispatcher": "unexpected answer 500: Update dispatcher failed",
	} {
		t.Run(variant, func(t *testing.T) {
			s.faults(hostsim.Fault{ID: hostsim.F13, Variant: variant})
			h, err := s.Observe(context.Background())
			assert.ErrorContains(t, err, "get /updates/status: ")
			assert.ErrorContains(t, err, want)
			assert.DeepEqual(t, h, next.Host{})
		})
	}
	for _, variant := range []string{"cut", "html", "types", "version"} {
		s.faults(hostsim.Fault{ID: hostsim.F13, Variant: variant, On: "/os"})
		_, err := s.Observe(context.Background())
		assert.ErrorContains(t, err, "get /os: can't understand the answer ")
	}
	s.faults(hostsim.Fault{ID: hostsim.F13, Variant: "extra"})
	assert.Equal(t, s.observe().Chosen, "1.27.0")
	s.faults(hostsim.Fault{ID: hostsim.F13, Variant: "nulls"})
	assert.DeepEqual(t, s.observe().Last, next.LastCommand{Command: next.CommandRefresh, Timestamp: "2026-09-20T10:00:02Z"})
}

func TestSocketGoneAndBack(t *testing.T) {
	s := simulate(t)
	ctx := context.Background()
	s.observe()
	assert.NilError(t, s.server.Close())
	check := func() {
		t.Helper()
		var gone *platform.GoneError
		_, err := s.Observe(ctx)
		assert.Assert(t, errors.As(err, &gone), "%v", err)
		assert.Equal(t, gone.Path, s.socket)
		err = s.Start(ctx, next.CommandReboot)
		assert.Assert(t, errors.As(err, &gone), "%v", err)
	}
	check() // refused
	assert.NilError(t, os.Remove(s.socket))
	check() // not there
	assert.NilError(t, s.server.Serve(s.socket))
	s.observe()
}

// The same client without a socket.
func TestInProcess(t *testing.T) {
	s := simulate(t)
	c := updateapi.New(updateapi.Config{
		Socket: "/simulated", Transport: s.host.Transport(),
		BootID: func() (string, error) { return s.host.BootID(), nil },
	})
	ctx := context.Background()
	h, err := c.Observe(ctx)
	assert.NilError(t, err)
	assert.DeepEqual(t, h, s.observe())
	assert.NilError(t, c.Start(ctx, next.CommandReboot))
	assert.Equal(t, len(s.down), 1)
	s.faults(hostsim.Fault{ID: hostsim.F28})
	_, err = c.Observe(ctx)
	assert.ErrorContains(t, err, "get /os: the socket /simulated may not be used: check the SELinux type")
	s.host.PowerOff()
	_, err = c.Observe(ctx)
	var gone *platform.GoneError
	assert.Assert(t, errors.As(err, &gone))
	assert.Equal(t, gone.Path, "/simulated")
}
