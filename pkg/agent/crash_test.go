package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// death ends a process before or after one of its requests.
type death struct {
	count, at int
	behind    bool
}

type died struct{}

func (d *death) around(request func()) {
	d.count++
	if d.count == d.at && !d.behind {
		panic(died{})
	}
	request()
	if d.count == d.at && d.behind {
		panic(died{})
	}
}

type mortalHost struct {
	platform.Host
	death *death
}

func (m mortalHost) Observe(ctx context.Context) (h next.Host, err error) {
	m.death.around(func() { h, err = m.Host.Observe(ctx) })
	return h, err
}

func (m mortalHost) Start(ctx context.Context, c next.Command) (err error) {
	m.death.around(func() { err = m.Host.Start(ctx, c) })
	return err
}

func (m mortalHost) SetLock(ctx context.Context, id, value string) (err error) {
	m.death.around(func() { err = m.Host.SetLock(ctx, id, value) })
	return err
}

type mortalNode struct {
	*memoryNode
	death *death
}

func (m mortalNode) Get(ctx context.Context) (s *agent.Snapshot, err error) {
	m.death.around(func() { s, err = m.memoryNode.Get(ctx) })
	return s, err
}

func (m mortalNode) Patch(ctx context.Context, p agent.Patch) (s *agent.Snapshot, err error) {
	m.death.around(func() { s, err = m.memoryNode.Patch(ctx, p) })
	return s, err
}

// mortalTurn is turn for a process that may die; its successor starts at once.
func (w *world) mortalTurn() {
	w.t.Helper()
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case died:
			if !w.rebooted() {
				w.start()
			}
		default:
			panic(r)
		}
	}()
	w.turn()
}

func TestProcessMayDieAnywhere(t *testing.T) {
	// A run without a death shows how many requests there are.
	whole := theWayWith(t, &death{})
	for _, behind := range []bool{false, true} {
		for at := 1; at <= whole; at++ {
			t.Run(fmt.Sprintf("%d behind %t", at, behind), func(t *testing.T) {
				theWayWith(t, &death{at: at, behind: behind})
			})
		}
	}
}

func theWayWith(t *testing.T, d *death) int {
	t.Helper()
	// Long enough that a process dies while a command runs, too.
	w := newWorld(t, func(c *hostsim.Config) {
		c.Latencies = hostsim.Latencies{Refresh: 400 * time.Millisecond, Prepare: time.Second, Activate: 400 * time.Millisecond}
	})
	w.death = d
	w.start()
	until := func(s marker.State) {
		t.Helper()
		for range 300 {
			if w.answered(s)() {
				return
			}
			w.mortalTurn()
		}
		t.Fatalf("never %s: report %+v, host %+v", s, w.node.report(), w.host.Snapshot())
	}
	w.want(marker.ActionStabilize, "")
	until(marker.StateReady)
	w.want(marker.ActionPrepareUpdate, "")
	until(marker.StateReady)
	w.want(marker.ActionRebootUpdate, w.host.BootID())
	until(marker.StateReady)
	s := w.host.Snapshot()
	assert.Equal(t, s.Version, target)
	assert.Equal(t, s.Counters.RebootsAsked, 1)
	assert.Equal(t, s.Counters.Boots, 1)
	assert.Equal(t, w.node.report().Current, target)
	assert.Equal(t, w.node.report().BootID, s.BootID)
	return d.count
}

// After busy was accepted, proxies that stay away don't keep a drained node from its reboot, whatever could not be
// reported meanwhile (L2).
func TestNoProxyAfterBusy(t *testing.T) {
	w := newWorld(t)
	w.reboot()
	w.until("busy", w.answered(marker.StateBusy))
	away := errors.New("connection refused")
	w.node.mu.Lock()
	w.node.getErr, w.node.before = away, func(agent.Patch) error { return away }
	w.node.mu.Unlock()
	began := w.clock.Now()
	w.until("the reboot is asked for", func() bool { return w.host.Snapshot().Counters.RebootsAsked == 1 })
	assert.Assert(t, w.clock.Now().Sub(began) < 10*time.Minute, "%s", w.clock.Now().Sub(began))
}
