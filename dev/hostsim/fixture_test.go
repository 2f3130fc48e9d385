package hostsim

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	variant = "aws-k8s-1.31"
	arch    = "x86_64"
	v1260   = "1.26.0"
	v1261   = "1.26.1"
	v1270   = "1.27.0"
)

// fixture is a host on 1.26.1 with a repository of 1.26.0, 1.26.1 and 1.27.0.
type fixture struct {
	*Host
	t     *testing.T
	clock *clocktesting.FakeClock
	repo  *Repo
	// downs counts calls of OnReboot.
	downs int
}

func newFixture(t *testing.T, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{
		t:     t,
		clock: clocktesting.NewFakeClock(time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)),
		repo:  &Repo{},
	}
	for _, v := range []string{v1260, v1261, v1270} {
		f.release(v)
	}
	cfg := Config{Name: "node-1", Version: v1261, Repo: f.repo, Now: f.clock.Now, OnReboot: func() { f.downs++ }}
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(cfg)
	assert.NilError(t, err)
	f.Host = h
	return f
}

func (f *fixture) release(v string) {
	f.t.Helper()
	assert.NilError(f.t, f.repo.Release(Release{Version: v, Variant: variant, Arch: arch}))
}

// at sets the clock.
func (f *fixture) at(s string) {
	f.t.Helper()
	f.clock.SetTime(instant(f.t, s))
}

func instant(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	assert.NilError(t, err)
	return at
}

func (f *fixture) faults(faults ...Fault) {
	f.t.Helper()
	assert.NilError(f.t, f.SetFaults(faults...))
}

// do sends a request like "GET /os?prefix=version".
func (f *fixture) do(method, target string) Answer {
	f.t.Helper()
	u, err := url.Parse(target)
	assert.NilError(f.t, err)
	return f.Handle(Request{Method: method, Path: u.Path, Query: u.Query()})
}

var posts = map[Command]string{
	Refresh:    "/actions/refresh-updates",
	Prepare:    "/actions/prepare-update",
	Activate:   "/actions/activate-update",
	Deactivate: "/actions/deactivate-update",
}

func (f *fixture) post(c Command) Answer { f.t.Helper(); return f.do("POST", posts[c]) }

// accept posts commands that have to be accepted, a second apart.
func (f *fixture) accept(commands ...Command) {
	f.t.Helper()
	for _, c := range commands {
		assert.Equal(f.t, f.post(c).Status, 204, string(c))
		f.clock.Step(time.Second)
	}
}

// status is the status record, which has to be there.
func (f *fixture) status() record {
	f.t.Helper()
	a := f.do("GET", pathStatus)
	assert.Equal(f.t, a.Status, 200, string(a.Body))
	var r record
	assert.NilError(f.t, json.Unmarshal(a.Body, &r))
	return r
}

// reach brings a fresh host into a state; empty is the one without a record.
func (f *fixture) reach(s UpdateState) {
	f.t.Helper()
	switch s {
	case Idle:
		assert.Equal(f.t, f.post(Prepare).Status, 409)
	case Available:
		f.accept(Refresh)
	case Staged:
		f.accept(Refresh, Prepare)
	case Ready:
		f.accept(Refresh, Prepare, Activate)
	}
}

// flags writes the sets as the tables do.
func flags(s Snapshot) string {
	var out []string
	for _, set := range s.Sets {
		ok := "0"
		if set.Successful {
			ok = "1"
		}
		out = append(out, string(rune('0'+set.Priority))+"/"+string(rune('0'+set.Tries))+"/"+ok)
	}
	return strings.Join(out, " ")
}
