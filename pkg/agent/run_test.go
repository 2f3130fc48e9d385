package agent_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// still is a host on which every command ends at once and changes nothing but the host's record.
type still struct {
	mu     sync.Mutex
	looks  int
	starts int
	err    error
}

func (s *still) Observe(context.Context) (next.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return next.Host{
		BootID: "boot", Version: from, State: next.HostAvailable, Chosen: target, ChosenKnown: true,
		Last: next.LastCommand{Command: next.CommandRefresh, Success: true, Timestamp: fmt.Sprint(s.starts)},
	}, s.err
}

func (s *still) Start(context.Context, next.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts++
	return nil
}

func (s *still) SetLock(context.Context, string, string) error { return nil }

func (s *still) counts() (looks, starts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.starts
}

func newRunning(t *testing.T, n *memoryNode, h platform.Host) *agent.Agent {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	a, err := agent.New(agent.Config{Node: n, Host: h, Log: log, Version: "test"})
	assert.NilError(t, err)
	return a
}

func TestRunAnswersAtOnceRestsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, h := newMemoryNode(), &still{}
		a := newRunning(t, n, h)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(5 * time.Second)

		begun := time.Now()
		n.write(map[marker.Key]*string{
			marker.KeyIntentID: ptr("i"), marker.KeyActionWanted: ptr(string(marker.ActionStabilize)),
			marker.KeyIntentTime:  ptr(begun.UTC().Format(time.RFC3339)),
			marker.KeyIntentUntil: ptr(begun.UTC().Format(time.RFC3339)),
		})
		synctest.Wait()
		assert.Equal(t, n.report().Answer("i"), marker.StateReady)
		assert.Equal(t, time.Since(begun), time.Duration(0), "a change wakes the agent")

		looks, starts := h.counts()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		looksLater, startsLater := h.counts()
		assert.Assert(t, startsLater-starts >= 24*60/33-1 && startsLater-starts <= 24*60/27+1, "%d refreshes in a day", startsLater-starts)
		assert.Assert(t, looksLater-looks < 400, "%d looks in a day", looksLater-looks)
		n.mu.Lock()
		assert.Equal(t, len(n.patches), 2)
		assert.Assert(t, n.gets < 170, "%d live looks in a day", n.gets)
		n.mu.Unlock()
		// Heartbeats of the kubelet don't wake the agent.
		for range 100 {
			n.mu.Lock()
			n.version++
			s := n.snapshot()
			n.mu.Unlock()
			a.Update(s)
		}
		synctest.Wait()
		later, _ := h.counts()
		assert.Equal(t, later, looksLater)

		cancel()
		assert.NilError(t, <-ended)
	})
}

func TestRunEndsWhenTheSocketIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &still{err: &platform.GoneError{Path: "/run/api.sock", Err: errors.New("connection refused")}}
		err := newRunning(t, newMemoryNode(), h).Run(t.Context())
		assert.Assert(t, errors.Is(err, agent.ErrSocketReplaced))
		assert.ErrorContains(t, err, "/run/api.sock")
	})
}

func TestRunEndsDuringARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := newRunning(t, newMemoryNode(), hanging{})
		ended := make(chan error)
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(time.Hour)
		assert.ErrorContains(t, a.Healthy(), "stuck")
		cancel()
		assert.NilError(t, <-ended)
	})
}

type hanging struct{ platform.Host }

func (hanging) Observe(ctx context.Context) (next.Host, error) {
	<-ctx.Done()
	return next.Host{}, ctx.Err()
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	log := logrus.New()
	for want, cfg := range map[string]agent.Config{
		"agent needs a node":               {Host: hanging{}, Log: log},
		"agent needs a host":               {Node: newMemoryNode(), Log: log},
		"agent needs a log":                {Node: newMemoryNode(), Host: hanging{}},
		"refresh interval -1s is negative": {Node: newMemoryNode(), Host: hanging{}, Log: log, RefreshEvery: -time.Second},
	} {
		_, err := agent.New(cfg)
		assert.ErrorContains(t, err, want)
	}
}
