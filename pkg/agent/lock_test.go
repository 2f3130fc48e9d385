package agent_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
)

const (
	older  = "1.25.0"
	newest = "1.28.0"
)

// newLockWorld is a world of four releases, whose host locks to the first of settings, if there is one, in a node whose
// writes are judged as the proxy judges them.
func newLockWorld(t *testing.T, lock string, options ...option) *world {
	t.Helper()
	w := newWorld(t, append(options, func(c *hostsim.Config) { c.Settings.VersionLock = lock })...)
	w.release(older)
	w.release(newest)
	w.node.before = func(p agent.Patch) error {
		w.node.mu.Lock()
		defer w.node.mu.Unlock()
		s := w.node.snapshot()
		live := rule.Live{Name: "n1", UID: s.UID, ResourceVersion: s.ResourceVersion, Annotations: s.Annotations}
		patch := rule.Patch{ResourceVersion: p.ResourceVersion, Annotations: map[string]*string{}}
		for k, v := range p.Annotations {
			patch.Annotations[string(k)] = v
		}
		refusal := rule.Judge(rule.Write{NodeName: "n1", NodeUID: s.UID, Live: live, Patch: patch, Now: w.clock.Now()})
		if refusal != nil && refusal.Reason != rule.ReasonConflict {
			return apierrors.NewForbidden(nodes, "n1", errors.New(refusal.Message))
		}
		return nil
	}
	return w
}

// wish writes the wish with a new stabilize, in one patch, as the controller would.
func (w *world) wish(l marker.Lock) {
	w.ids++
	m := marker.Marks{Lock: &l, Intent: marker.Intent{
		ID: fmt.Sprintf("77&tx=default/%d", w.ids), Action: marker.ActionStabilize, Time: w.clock.Now(), Until: w.clock.Now().Add(30 * time.Minute),
	}}
	w.node.mu.Lock()
	diff := marker.Diff(w.node.annotations, marker.Encode(m), marker.WriterController)
	delete(diff, marker.KeyPaused)
	w.node.mu.Unlock()
	w.agent.Update(w.node.write(diff))
}

func (w *world) setting() string { return w.host.Snapshot().Settings.VersionLock }

// others changes the setting as an administrator would.
func (w *world) others(lock string) {
	w.t.Helper()
	s := w.host.Snapshot().Settings
	s.VersionLock = lock
	assert.NilError(w.t, w.host.SetSettings(s))
}

// changes counts the commits that the host was asked for, whatever came of them.
func (w *world) changes() int {
	n := 0
	for _, r := range w.host.Requests() {
		if r.Path == "/tx/commit_and_apply" {
			n++
		}
	}
	return n
}

func (w *world) lockError(reason marker.ReportReason, says string) {
	w.t.Helper()
	w.until("error", w.answered(marker.StateError))
	r := w.node.report()
	assert.Equal(w.t, r.Reason, reason, "%s", r.Message)
	assert.Assert(w.t, strings.Contains(r.Message, says), "%s", r.Message)
}

// S5: a host is locked after busy, says so with ready, and gets back what stood there, byte for byte.
func TestLockAndBack(t *testing.T) {
	for _, before := range []string{"latest", "v1.26.1", "1.26.1"} {
		for _, wanted := range []string{target, older} {
			t.Run(before+" "+wanted, func(t *testing.T) {
				w := newLockWorld(t, before)
				w.want(marker.ActionStabilize, "")
				w.until("stable", w.answered(marker.StateReady))
				w.rest()
				patches := len(w.node.patches)
				wish := &marker.Lock{Want: wanted, Before: before}
				w.wish(*wish)
				w.until("busy", w.answered(marker.StateBusy))
				assert.Equal(t, w.setting(), before)
				assert.Equal(t, w.changes(), 0)
				w.until("locked", w.answered(marker.StateReady))
				r := w.node.report()
				assert.Equal(t, w.setting(), wanted)
				assert.Equal(t, r.VersionLock, wanted)
				assert.Equal(t, r.Available, wanted, "a lower version is chosen too")
				assert.Equal(t, len(w.node.patches)-patches, 2, "busy, and ready with the facts")
				w.rest()
				assert.Equal(t, w.changes(), 1)

				w.wish(*wish.Changed(before, true))
				w.until("unlocked", w.answered(marker.StateReady))
				assert.Equal(t, w.setting(), before)
				assert.Equal(t, w.node.report().VersionLock, before)
				w.rest()
				assert.Equal(t, w.changes(), 2)
			})
		}
	}
}

// S5: a version that was asked for is not what stood there in other words.
func TestGiveBackByteForByte(t *testing.T) {
	w := newLockWorld(t, "v1.26.1")
	wish := &marker.Lock{Want: target, Before: "v1.26.1"}
	for _, l := range []*marker.Lock{wish, wish.Changed("1.26.1", false)} {
		w.wish(*l)
		w.until("locked", w.answered(marker.StateReady))
		assert.Equal(t, w.setting(), l.Want)
	}
	w.wish(*wish.Changed("1.26.1", false).Changed("v1.26.1", true))
	w.until("unlocked", w.answered(marker.StateReady))
	assert.Equal(t, w.setting(), "v1.26.1")
}

// The very value, set before us, needs no busy and no change.
func TestLockThatStandsAlready(t *testing.T) {
	w := newLockWorld(t, "v1.27.0")
	w.wish(marker.Lock{Want: target, Before: "latest"})
	w.until("ready", w.answered(marker.StateReady))
	assert.Equal(t, len(w.node.patches), 1)
	assert.Equal(t, w.changes(), 0)
	assert.Equal(t, w.setting(), "v1.27.0")
	w.others("latest")
	w.advance(time.Hour)
	w.rest()
	assert.Equal(t, w.setting(), "latest", "after ready it is a fact")
	assert.Equal(t, w.node.report().VersionLock, "latest")
	assert.Assert(t, w.answered(marker.StateReady)())
}

// The host's files are written after the commit's answer: the lock is ready once the host chooses by it.
func TestLockRenderedLate(t *testing.T) {
	late := func(d time.Duration) option { return func(c *hostsim.Config) { c.Latencies.Settings = d } }
	w := newLockWorld(t, "latest", late(21*time.Second))
	w.wish(marker.Lock{Want: target, Before: "latest"})
	w.until("the setting", func() bool { return w.setting() == target })
	began := w.clock.Now()
	w.until("ready", w.answered(marker.StateReady))
	took := w.clock.Now().Sub(began)
	assert.Assert(t, took > 20*time.Second && took < 30*time.Second, "%s", took)
	assert.Equal(t, w.node.report().Available, target)
	assert.Assert(t, w.commands(hostsim.Refresh) <= 8, "%d refreshes", w.commands(hostsim.Refresh))

	// Too late is an error, which passes with the next refresh.
	w = newLockWorld(t, "latest", late(10*time.Minute))
	w.wish(marker.Lock{Want: target, Before: "latest"})
	w.lockError(marker.ReasonLockFailed, "setting version-lock to 1.27.0: the host does not heed it after 2m0s: it chooses 1.28.0")
	assert.Equal(t, w.node.report().VersionLock, target)
	w.until("ready", w.answered(marker.StateReady))
	assert.Equal(t, w.changes(), 1)
	assert.Equal(t, w.node.report().Reason, marker.ReportReasonNone)
}

// S5: what others set is left as it is, and so is what they are about to set.
func TestLockOfOthers(t *testing.T) {
	for _, lock := range []marker.Lock{{Want: target, Before: "latest"}, {Want: "latest", Before: "latest", Asked: []string{target}, GiveBack: true}} {
		t.Run(fmt.Sprint(lock.GiveBack), func(t *testing.T) {
			w := newLockWorld(t, "v1.25.0")
			w.wish(lock)
			w.lockError(marker.ReasonLockedByOthers, "it is v1.25.0, which this operator did not set")
			w.others("latest")
			if lock.GiveBack {
				w.others(older)
			}
			w.advance(time.Hour)
			w.rest()
			assert.Equal(t, w.changes(), 0)
			assert.Assert(t, w.answered(marker.StateError)())
			w.others(lock.Want)
			w.advance(time.Hour)
			w.until("what others set is what is wanted", w.answered(marker.StateReady))
			assert.Equal(t, w.changes(), 0)
		})
	}
	t.Run("after busy", func(t *testing.T) {
		w := newLockWorld(t, "latest")
		w.wish(marker.Lock{Want: target, Before: "latest"})
		w.until("busy", w.answered(marker.StateBusy))
		w.others(older)
		w.lockError(marker.ReasonLockedByOthers, older)
		assert.Equal(t, w.changes(), 0)
	})
	t.Run("put back by others meanwhile", func(t *testing.T) {
		w := newLockWorld(t, "latest", func(c *hostsim.Config) { c.Latencies.Settings = time.Minute })
		w.wish(marker.Lock{Want: target, Before: "latest"})
		w.until("the setting", func() bool { return w.setting() == target })
		w.turn()
		w.others("latest")
		w.lockError(marker.ReasonLockedByOthers, "it is latest")
		assert.Equal(t, w.changes(), 1)
	})
	t.Run("between the look and the change", func(t *testing.T) {
		// The two are two acts: a change in between is lost. Only one in that very moment.
		w := newLockWorld(t, "latest")
		spy := w.spy()
		spy.beforeLock = func() { w.others(older) }
		w.wish(marker.Lock{Want: target, Before: "latest"})
		w.until("ready", w.answered(marker.StateReady))
		assert.Equal(t, w.setting(), target)
		assert.DeepEqual(t, spy.locks, []string{target})
	})
}

// S5: what other programs have staged is neither committed nor lost.
func TestTransactionsOfOthers(t *testing.T) {
	w := newLockWorld(t, "latest")
	ask := func(method, path, tx, body string) hostsim.Answer {
		return w.host.Handle(hostsim.Request{Method: method, Path: path, Query: url.Values{"tx": {tx}}, ContentType: "application/json", Body: []byte(body)})
	}
	for tx, body := range map[string]string{"default": `{"updates":{"seed":99}}`, "theirs": `{"updates":{"version-lock":"1.25.0"}}`} {
		assert.Equal(t, ask("PATCH", "/settings", tx, body).Status, 204)
	}
	wish := &marker.Lock{Want: target, Before: "latest"}
	for _, l := range []*marker.Lock{wish, wish.Changed("latest", true)} {
		w.wish(*l)
		w.until("ready", w.answered(marker.StateReady))
		s := w.host.Snapshot().Settings
		assert.Assert(t, s.VersionLock == l.Want && s.Seed == 0, "%+v", s)
	}
	for tx, want := range map[string]string{"default": `["settings.updates.seed"]`, "theirs": `["settings.updates.version-lock"]`} {
		assert.Equal(t, string(ask("POST", "/tx/commit_and_apply", tx, "").Body), want)
	}
}

// A host that won't be changed is left, with its own words, after three tries.
func TestLockRefused(t *testing.T) {
	const commit, patch = "/tx/commit_and_apply", "PATCH /settings"
	for _, tc := range []struct {
		name   string
		faults []hostsim.Fault
		says   string
	}{
		{"locked down", []hostsim.Fault{{ID: hostsim.F26}}, "the host does not say its settings, which may be locked down"},
		{"locked down for changes", []hostsim.Fault{{ID: hostsim.F26, On: patch}}, "the host refused: Data store error during set_keys: lockdown is in effect"},
		{"locked down before the commit", []hostsim.Fault{{ID: hostsim.F26, On: commit}}, "the host refused: Data store error during commit: lockdown is in effect"},
		{"too busy for three tries", []hostsim.Fault{{ID: hostsim.F32, On: patch}}, "it is still latest after 3 tries"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newLockWorld(t, "latest")
			w.want(marker.ActionStabilize, "")
			w.until("stable", w.answered(marker.StateReady))
			assert.NilError(t, w.host.SetFaults(tc.faults...))
			spy := w.spy()
			w.wish(marker.Lock{Want: target, Before: "latest"})
			w.lockError(marker.ReasonLockFailed, "setting version-lock to 1.27.0: "+tc.says)
			assert.Assert(t, len(spy.locks) <= 3)
			tried := len(spy.locks)
			assert.NilError(t, w.host.SetFaults())
			w.advance(time.Hour)
			w.rest()
			assert.Equal(t, w.setting(), "latest")
			assert.Equal(t, len(spy.locks), tried, "nothing more is done for this intent")
			w.wish(marker.Lock{Want: target, Before: "latest"})
			w.until("another intent", w.answered(marker.StateReady))
			assert.Equal(t, w.setting(), target)
		})
	}
	t.Run("locked down after the change was staged", func(t *testing.T) {
		w := newLockWorld(t, "latest")
		w.wish(marker.Lock{Want: target, Before: "latest"})
		w.until("busy", w.answered(marker.StateBusy))
		w.spy().beforeLock = func() {
			assert.NilError(t, w.host.SetFaults(hostsim.Fault{ID: hostsim.F26, On: commit}, hostsim.Fault{ID: hostsim.F26, On: "GET /settings"}))
		}
		w.until("busy of the new process", w.answered(marker.StateBusy))
		w.lockError(marker.ReasonLockFailed, "the host does not say its settings any more, and refused the change: Data store error during commit")
		assert.Equal(t, w.setting(), "latest")
	})
}

// An answer that is lost leads to another look, and a request that came too late to another try.
func TestLockAnswersLost(t *testing.T) {
	for _, path := range []string{"PATCH /settings", "/tx/commit_and_apply", "GET /settings"} {
		for _, f := range []hostsim.Fault{
			{ID: hostsim.F12, Variant: "truncated"}, {ID: hostsim.F12, Variant: "headers"}, {ID: hostsim.F12, Variant: "silent"},
			{ID: hostsim.F32, Variant: "late"}, {ID: hostsim.F32, Variant: "reset"},
		} {
			t.Run(path+" "+string(f.ID)+" "+f.Variant, func(t *testing.T) {
				w := newLockWorld(t, "latest")
				w.client = updateapi.New(updateapi.Config{Socket: w.socket, BootIDPath: w.bootID, Timeout: 300 * time.Millisecond})
				w.start()
				w.want(marker.ActionStabilize, "")
				w.until("stable", w.answered(marker.StateReady))
				f.On, f.Count = path, 1
				if path != "GET /settings" {
					f.Count = 2
				}
				w.wish(marker.Lock{Want: target, Before: "latest"})
				w.until("busy", w.answered(marker.StateBusy))
				assert.NilError(t, w.host.SetFaults(f))
				if path == "GET /settings" && f.ID == hostsim.F32 && f.Variant == "late" {
					// A look that is answered, and says no settings, is an error.
					w.lockError(marker.ReasonLockFailed, "does not say its settings")
					return
				}
				w.until("ready", w.answered(marker.StateReady))
				assert.Equal(t, w.setting(), target)
				assert.Equal(t, w.node.report().VersionLock, target)
			})
		}
	}
}

// S6: a paused node's lock is given back, and no other is changed; nor is one during an update.
func TestLockPaused(t *testing.T) {
	w := newLockWorld(t, "latest")
	why := "maintenance"
	w.node.write(map[marker.Key]*string{marker.KeyPaused: &why})
	wish := &marker.Lock{Want: target, Before: "latest"}
	w.wish(*wish)
	for range 50 {
		w.turn()
	}
	assert.Equal(t, w.setting(), "latest")
	w.others(target)
	w.wish(*wish.Changed("latest", true))
	w.until("given back", w.answered(marker.StateReady))
	assert.Equal(t, w.setting(), "latest")
	assert.Equal(t, w.changes(), 1)
}

func TestLockDuringAnUpdate(t *testing.T) {
	for _, disruption := range []string{"", "{", `{"since":"2026-09-20T10:00:00Z"}`} {
		w := newLockWorld(t, "latest")
		w.node.write(map[marker.Key]*string{marker.KeyDisruption: &disruption})
		w.wish(marker.Lock{Want: target, Before: "latest"})
		// The patch of the test's controller has none.
		w.agent.Update(w.node.write(map[marker.Key]*string{marker.KeyDisruption: &disruption}))
		w.until("ready", w.answered(marker.StateReady))
		w.rest()
		assert.Equal(t, w.changes(), 0)
	}
}

// S8: a wish that can't be read permits nothing, and hinders nothing else.
func TestLockUnreadable(t *testing.T) {
	for _, lock := range []string{"", "{", `{"want":"newest","before":"latest"}`, `{"want":"1.27.0"}`, `{"want":"1.27.0","before":"latest","asked":["x"]}`} {
		w := newLockWorld(t, "latest")
		w.wish(marker.Lock{Want: target, Before: "latest"})
		w.agent.Update(w.node.write(map[marker.Key]*string{marker.KeyLock: &lock}))
		w.until("ready", w.answered(marker.StateReady))
		w.rest()
		assert.Equal(t, w.changes(), 0, lock)
		assert.Equal(t, w.setting(), "latest")
	}
}

// A host that is busy with another program's command is waited for.
func TestLockWaitsForACommand(t *testing.T) {
	w := newLockWorld(t, "latest", slow)
	w.want(marker.ActionStabilize, "")
	w.until("stable", w.answered(marker.StateReady))
	w.wish(marker.Lock{Want: target, Before: "latest"})
	w.until("busy", w.answered(marker.StateBusy))
	assert.NilError(t, w.host.Foreign(hostsim.Prepare))
	began := w.clock.Now()
	w.until("ready", w.answered(marker.StateReady))
	assert.Assert(t, w.clock.Now().Sub(began) < 2*time.Minute, "%s", w.clock.Now().Sub(began))
	assert.Equal(t, w.setting(), target)
}

// mortalTransport is the way to the host of a process that may die around each request.
type mortalTransport struct {
	http.RoundTripper
	death *death
}

func (m mortalTransport) RoundTrip(r *http.Request) (a *http.Response, err error) {
	m.death.around(func() { a, err = m.RoundTripper.RoundTrip(r) })
	return a, err
}

// S5: wherever a process dies, between any two requests to host and proxy, the end is the same, the setting was changed
// after a busy, and nothing of another program's was touched.
func TestProcessMayDieWhileItLocks(t *testing.T) {
	whole := theLockWith(t, &death{})
	for _, behind := range []bool{false, true} {
		for at := 1; at <= whole; at++ {
			t.Run(fmt.Sprintf("%d behind %t", at, behind), func(t *testing.T) {
				theLockWith(t, &death{at: at, behind: behind})
			})
		}
	}
}

func theLockWith(t *testing.T, d *death) int {
	t.Helper()
	w := newLockWorld(t, "v1.26.1", func(c *hostsim.Config) { c.Latencies.Settings = 2 * time.Second })
	var dialer net.Dialer
	w.client = updateapi.New(updateapi.Config{BootIDPath: w.bootID, Transport: mortalTransport{&http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", w.socket)
		},
		DisableKeepAlives: true,
	}, d}})
	w.mortalNode = d
	w.start()
	assert.Equal(t, w.host.Handle(hostsim.Request{Method: "PATCH", Path: "/settings", ContentType: "application/json", Body: []byte(`{"updates":{"seed":99}}`)}).Status, 204)
	until := func(what string) {
		t.Helper()
		begun := false
		for range 300 {
			if w.answered(marker.StateReady)() {
				assert.Assert(t, begun, what)
				return
			}
			was := w.setting()
			w.mortalTurn()
			begun = begun || w.answered(marker.StateBusy)()
			assert.Assert(t, begun || w.setting() == was, "%s: the setting was changed before busy", what)
		}
		t.Fatalf("never %s: report %+v, host %+v", what, w.node.report(), w.host.Snapshot())
	}
	wish := &marker.Lock{Want: target, Before: "v1.26.1"}
	w.wish(*wish)
	until("locked")
	assert.Equal(t, w.setting(), target)
	assert.Equal(t, w.node.report().VersionLock, target)
	w.wish(*wish.Changed("v1.26.1", true))
	until("unlocked")
	s := w.host.Snapshot()
	assert.Assert(t, s.Settings.VersionLock == "v1.26.1" && s.Settings.Seed == 0, "%+v", s.Settings)
	assert.Equal(t, s.Counters.RebootsAsked, 0)
	return d.count
}

// A host is locked and given back also where the facts that tell of it are refused (S5): what is looked at is the host.
func TestLockWithoutOptionalFacts(t *testing.T) {
	w := newLockWorld(t, marker.LockLatest)
	w.olderWall()
	l := marker.Lock{Want: target, Before: marker.LockLatest}
	w.wish(l)
	w.until("locked", w.answered(marker.StateReady))
	assert.Equal(t, w.setting(), target)
	w.wish(*l.Changed(l.Before, true))
	w.until("given back", w.answered(marker.StateReady))
	assert.Equal(t, w.setting(), marker.LockLatest)
	assert.Equal(t, w.node.report().VersionLock, "")
}
