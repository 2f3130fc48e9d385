package agent

import (
	"time"

	"github.com/pkg/errors"
)

// stuckAfter is how long a turn may take, or be late, before the loop counts as stuck. The timeouts of requests to the
// host and the proxy add up to less.
const stuckAfter = 5 * time.Minute

// probes is the state that the probes report.
type probes struct {
	// node: the node was read at least once.
	node bool
	// host: the host was observed, and since then no unreadyAfter looks in a row failed.
	host bool
	// hostErr is why the last look at the host failed.
	hostErr error
	// due is when the current turn must have ended, or the next one begun.
	due time.Time
}

func (a *Agent) began(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes.due = now.Add(stuckAfter)
}

func (a *Agent) ended(next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probes.due = next.Add(stuckAfter)
}

// unreadyAfter is how many failed looks at the host in a row make an agent unready: its facts are old, and it can't
// carry out an intent.
const unreadyAfter = 3

// Ready returns nil if the agent has read its node through the proxy, would receive a new intent, and observes its
// host. Nothing starts on a node whose agent is not Ready: it would be drained in vain.
func (a *Agent) Ready() error {
	if err := a.cfg.Node.WatchErr(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.probes.node:
		return errors.New("the node has not been read through the proxy yet")
	case !a.probes.host && a.probes.hostErr != nil:
		return errors.WithMessage(a.probes.hostErr, "the host can't be looked at")
	case !a.probes.host:
		return errors.New("the host has not been looked at yet")
	}
	return nil
}

// Healthy returns nil if the loop is not stuck.
func (a *Agent) Healthy() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if late := a.cfg.Now().Sub(a.probes.due); !a.probes.due.IsZero() && late > 0 {
		return errors.Errorf("the loop has been stuck for %s", (late + stuckAfter).Round(time.Second))
	}
	return nil
}
