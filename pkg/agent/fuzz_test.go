package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// agreeable is a node that accepts every write, and a host that accepts everything and changes by nothing; both record
// what they accept.
type agreeable struct {
	t           *testing.T
	clock       *clocktesting.FakeClock
	version     int
	annotations map[string]string
	host        next.Host
	// busy is the intent for which this run wrote busy, until it gives another answer.
	busy     string
	commands []next.Command
	// locks counts the changes of the setting.
	locks int
}

func (a *agreeable) snapshot() *agent.Snapshot {
	return agent.SnapshotOf(&metav1.ObjectMeta{UID: "uid", ResourceVersion: strconv.Itoa(a.version), Annotations: a.annotations})
}

func (a *agreeable) Get(context.Context) (*agent.Snapshot, error) { return a.snapshot(), nil }

func (a *agreeable) Watch(ctx context.Context, _ func(*agent.Snapshot)) { <-ctx.Done() }
func (a *agreeable) WatchErr() error                                    { return nil }

// Patch also checks what is sent: S4, as far as the agent itself holds it.
func (a *agreeable) Patch(_ context.Context, p agent.Patch) (*agent.Snapshot, error) {
	assert.Equal(a.t, p.ResourceVersion, strconv.Itoa(a.version))
	body, err := p.Body()
	assert.NilError(a.t, err)
	var sent struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]*string
		}
	}
	assert.NilError(a.t, json.Unmarshal(body, &sent))
	assert.Equal(a.t, len(sent.Metadata.Annotations), len(p.Annotations))
	for k, v := range sent.Metadata.Annotations {
		assert.Assert(a.t, marker.Owns(marker.WriterAgent, k), k)
		if v == nil {
			delete(a.annotations, k)
		} else {
			a.annotations[k] = *v
		}
	}
	_, problems := marker.DecodeReport(a.annotations)
	for _, p := range problems {
		_, touched := sent.Metadata.Annotations[string(p.Key)]
		assert.Assert(a.t, !touched, "%s", p)
	}
	if id, ok := sent.Metadata.Annotations["bottlerocket.aws/active-id"]; ok {
		assert.Assert(a.t, id != nil && *id == a.annotations["bottlerocket.aws/intent-id"], "answered another intent")
		a.busy = ""
		if a.annotations["bottlerocket.aws/action-state"] == "busy" {
			a.busy = *id
		}
		if a.annotations["bottlerocket.aws/action-state"] == "error" {
			assert.Assert(a.t, a.annotations["bottlerocket.aws/message"] != "")
		}
	}
	a.version++
	return a.snapshot(), nil
}

func (a *agreeable) Observe(context.Context) (next.Host, error) { return a.host, nil }

// plainVersion and plainWord are what an intent's values may be, by other means than the code under test.
var (
	plainVersion = regexp.MustCompile(`^\d+\.\d+\.\d+[0-9A-Za-z.+-]*$`)
	plainWord    = regexp.MustCompile(`^[!-~]+$`)
)

// Start asserts that the intent, read strictly, asks for the command.
func (a *agreeable) Start(_ context.Context, c next.Command) error {
	a.commands = append(a.commands, c)
	if c == next.CommandRefresh {
		return nil
	}
	mark := func(k string) string { return a.annotations["bottlerocket.aws/"+k] }
	for _, k := range []string{"intent-time", "intent-until"} {
		_, err := time.Parse(time.RFC3339, mark(k))
		assert.NilError(a.t, err, "%s for an intent without its %s", c, k)
	}
	assert.Assert(a.t, plainWord.MatchString(mark("intent-id")), "%s for an intent that can't be read", c)
	action := mark("action-wanted")
	switch c {
	case next.CommandPrepare, next.CommandActivate, next.CommandReboot:
		assert.Equal(a.t, action, map[next.Command]string{next.CommandPrepare: "prepare-update",
			next.CommandActivate: "reboot-update", next.CommandReboot: "reboot-update"}[c])
		assert.Assert(a.t, plainVersion.MatchString(mark("target-version")), "%s of no version", c)
		assert.Equal(a.t, a.busy, mark("intent-id"), "%s before busy was accepted", c)
		if c != next.CommandPrepare {
			assert.Equal(a.t, mark("reboot-from"), a.host.BootID, "%s in another boot", c)
			assert.Equal(a.t, a.host.Staged, mark("target-version"), "%s of something else", c)
		}
	case next.CommandDeactivate:
		assert.Assert(a.t, action == "reset-state" || action == "prepare-update", "%s under %q", c, action)
	default:
		a.t.Fatalf("command %q", c)
	}
	return nil
}

// SetLock asserts that the intent and the wish ask for the change, by what the host says.
func (a *agreeable) SetLock(_ context.Context, id, value string) error {
	mark := func(k string) string { return a.annotations["bottlerocket.aws/"+k] }
	assert.Equal(a.t, mark("action-wanted"), "stabilize")
	assert.Equal(a.t, id, mark("intent-id"))
	assert.Equal(a.t, a.busy, id, "the lock before busy was accepted")
	_, disrupted := a.annotations["bottlerocket.aws/disruption"]
	assert.Assert(a.t, !disrupted)
	var wish struct {
		Want, Before string
		Asked        []string
		GiveBack     bool
	}
	assert.NilError(a.t, json.Unmarshal([]byte(mark("lock")), &wish))
	assert.Assert(a.t, value == wish.Want && !wish.GiveBack || value == wish.Before && wish.GiveBack)
	known := false
	for _, k := range append(wish.Asked, wish.Want, wish.Before) {
		known = known || strings.TrimPrefix(k, "v") == strings.TrimPrefix(a.host.VersionLock, "v")
	}
	assert.Assert(a.t, known, "%q is others'", a.host.VersionLock)
	a.locks++
	assert.Assert(a.t, a.locks <= 3)
	return nil
}

// FuzzNode: whatever is on the agent's node, the agent does nothing on its host that no readable intent asks for, and
// writes nothing but its own report, which can be read.
func FuzzNode(f *testing.F) {
	const at, until = "2026-09-20T09:00:00Z", "2026-09-20T11:00:00Z"
	f.Add("prepare-update", "17", at, until, "1.27.0", "", "", "", "", "b1", "Available", "1.27.0", "", "refresh", "", "", byte(3))
	f.Add("prepare-update", "17", at, until, "1.27.0", "b1", "17", "ready", "", "b1", "Staged", "1.27.0", "1.27.0", "prepare", "", "", byte(3))
	f.Add("reboot-update", "17", at, until, "1.27.0", "b1", "16", "ready", "", "b1", "Staged", "1.27.0", "1.27.0", "prepare", "", "", byte(3))
	f.Add("reboot-update", "17", at, until, "1.27.0", "b1", "17", "busy", "", "b1", "Ready", "1.27.0", "1.27.0", "activate", "", "", byte(3))
	f.Add("reboot-update", "17", at, at, "1.27.0", "b1", "17", "busy", "", "b1", "Ready", "", "1.27.0", "activate", "", "", byte(3))
	f.Add("reboot-update", "17", "", until, "1.27.0", "b1", "17", "busy", "", "b1", "Ready", "", "1.27.0", "activate", "", "", byte(3))
	f.Add("reset-state", "18", at, until, "", "", "17", "error", "it broke", "b1", "Ready", "", "1.27.0", "activate", "", "", byte(1))
	f.Add("stabilize", "18", at, until, "", "", "", "", "a\nb", "\xff", "Idle", "", "", "", "", "", byte(0))
	f.Add("dance", "1 8", at, until, "v1", "b 1", "18", "done", strings.Repeat("x", 300), "b1", "Ready", "", "1.27.0", "", "", "", byte(2))
	const wish = `{"want":"1.27.0","before":"latest"}`
	f.Add("stabilize", "18", at, until, "", "b1", "", "", "", "b1", "Available", "1.27.0", "", "refresh", wish, "latest", byte(1))
	f.Add("stabilize", "18", at, until, "", "b1", "18", "busy", "", "b1", "Available", "1.27.0", "", "refresh", wish, "v1.27.0", byte(1))
	f.Add("stabilize", "18", at, until, "", "b1", "18", "error", "m", "b1", "Idle", "", "", "refresh", wish, "1.2.3", byte(1))
	f.Add("stabilize", "18", at, until, "", "b1", "", "", "", "b1", "Idle", "", "", "refresh", `{"want":"x","before":"v1.2.3","asked":["1.26.1"],"giveBack":true}`, "1.26.1", byte(1))
	f.Add("stabilize", "18", at, until, "", "b1", "", "", "", "b1", "Idle", "", "", "refresh", `{"want":"v1.2.3","before":"v1.2.3","asked":["1.26.1"],"giveBack":true}`, "1.26.1", byte(1))
	f.Add("prepare-update", "18", at, until, "1.27.0", "b1", "", "", "", "b1", "Available", "1.27.0", "", "refresh", wish, "latest", byte(1))
	f.Fuzz(func(t *testing.T, action, id, at, until, target, from, activeID, state, message, reported, hostState, chosen, staged, last, lock, setting string, how byte) {
		a := &agreeable{t: t, version: 1, annotations: map[string]string{"example.com/theirs": action},
			clock: clocktesting.NewFakeClock(time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC))}
		for k, v := range map[string]string{"action-wanted": action, "intent-id": id, "intent-time": at, "intent-until": until, "target-version": target,
			"reboot-from": from, "active-id": activeID, "action-state": state, "message": message, "boot-id": reported, "lock": lock, "protocol": "1"} {
			if v != "" {
				a.annotations["bottlerocket.aws/"+k] = v
			}
		}
		controllers := map[string]string{}
		for _, k := range marker.Keys(marker.WriterController) {
			controllers[string(k)] = a.annotations[string(k)]
		}
		a.host = aHost(hostState, chosen, staged, last, how)
		if marker.ValidLock(setting) && !a.host.Locked {
			a.host.VersionLock = setting
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		g, err := agent.New(agent.Config{Node: a, Host: a, Log: log, Version: "test", Now: a.clock.Now, Rand: func() float64 { return 0.5 }})
		assert.NilError(t, err)
		for range 8 {
			next, err := g.Turn(t.Context())
			assert.NilError(t, err)
			assert.Assert(t, next >= 0)
			a.clock.Step(min(next, time.Hour))
		}
		for k, v := range controllers {
			assert.Equal(t, a.annotations[k], v, "%s is the controller's", k)
		}
		assert.Equal(t, a.annotations["example.com/theirs"], action)
		reboots := 0
		for _, c := range a.commands {
			if c == next.CommandReboot {
				reboots++
			}
		}
		assert.Assert(t, reboots <= 1, "%v", a.commands)
	})
}

// aHost returns a host as the edge promises it: known states, valid versions.
func aHost(state, chosen, staged, last string, how byte) next.Host {
	h := next.Host{BootID: "b1", Version: "1.26.1"}
	if how&16 != 0 {
		h.Locked = true
		return h
	}
	switch s := next.HostState(state); s {
	case next.HostIdle, next.HostAvailable, next.HostStaged, next.HostReady:
		h.State = s
	default:
		return h
	}
	if marker.ValidVersion(chosen) {
		h.Chosen = chosen
	}
	if marker.ValidVersion(staged) {
		h.Staged = staged
	}
	switch c := next.Command(last); c {
	case next.CommandRefresh, next.CommandPrepare, next.CommandActivate, next.CommandDeactivate:
		h.Last = next.LastCommand{Command: c, Success: how&1 != 0, Timestamp: "2026-09-20T09:30:00Z"}
	case next.CommandReboot, next.CommandLock:
	}
	if h.Last.Command == next.CommandPrepare && how&2 != 0 {
		h.Last.Started = h.Staged
	}
	h.ChosenKnown = h.Last.Command == next.CommandRefresh && h.Last.Success && h.State != next.HostIdle
	h.ForeignBoot = how&4 != 0 && h.State != next.HostReady
	return h
}
