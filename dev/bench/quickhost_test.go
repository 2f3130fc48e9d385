package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// quickHost carries out every command before it has answered, so that its agent has nothing to wait for but
// the proxy. A reboot leaves the agent alone: its loop finds the host in another boot.
type quickHost struct {
	name int

	mu      sync.Mutex
	host    next.Host
	offered string
	// commands and boots count.
	commands, boots int
}

var _ platform.Host = (*quickHost)(nil)

func newQuickHost(name int) *quickHost {
	h := &quickHost{name: name}
	h.boot(osNow)
	return h
}

func (h *quickHost) boot(version string) {
	h.boots++
	h.host = next.Host{BootID: fmt.Sprintf("%d-boot-%d", h.name, h.boots), Version: version}
}

// offer makes the next refresh find a version, and returns the boot that the host is in.
func (h *quickHost) offer(version string) (boot string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offered = version
	return h.host.BootID
}

// Observe implements platform.Host.
func (h *quickHost) Observe(context.Context) (next.Host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.host, nil
}

// SetLock implements platform.Host.
func (h *quickHost) SetLock(context.Context, string, string) error {
	return errors.New("no lock is expected here")
}

// Start implements platform.Host.
func (h *quickHost) Start(_ context.Context, c next.Command) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commands++
	last := next.LastCommand{Command: c, Success: true, Timestamp: fmt.Sprint(h.commands)}
	switch c {
	case next.CommandRefresh:
		h.host.State, h.host.Chosen, h.host.ChosenKnown = next.HostIdle, "", false
		if h.offered != "" && h.offered != h.host.Version {
			h.host.State, h.host.Chosen, h.host.ChosenKnown = next.HostAvailable, h.offered, true
		}
	case next.CommandPrepare:
		last.Started = h.host.Chosen
		h.host.State, h.host.Staged, h.host.Chosen, h.host.ChosenKnown = next.HostStaged, h.host.Chosen, "", false
	case next.CommandActivate:
		h.host.State = next.HostReady
	case next.CommandReboot:
		h.boot(h.host.Staged)
		return nil
	default:
		return errors.Errorf("no request for %q is expected here", c)
	}
	h.host.Last = last
	return nil
}
