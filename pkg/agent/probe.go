package agent

import (
	"time"

	"github.com/pkg/errors"
)

// stuckAfter is how long a turn may take, or be late, before the loop counts as stuck. Requests to the
// host and the proxy have timeouts that add up to less.
const stuckAfter = 5 * time.Minute

// probes is what the probes answer from.
type probes struct {
	// node: it was seen at least once.
	node bool
	// host: it was seen, and since then no blindLooks in a row found nothing out.
	host bool
	// blind is why the last looks at the host found nothing out.
	blind error
	// due is when the turn under way must have ended, or the next one must have begun.
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

// blindLooks is how many looks in a row that find nothing out make an agent unready: its facts are old, and
// nothing that is asked of it comes true.
const blindLooks = 3

// Ready tells, as nil, that the agent has seen its node through the proxy, would hear of a new intent, and sees its host.
// It is what a node's update begins with: a node whose agent is deaf would be drained for nothing.
func (a *Agent) Ready() error {
	if err := a.cfg.Node.Hears(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.probes.node:
		return errors.New("the node has not been read through the proxy yet")
	case !a.probes.host && a.probes.blind != nil:
		return errors.WithMessage(a.probes.blind, "the host can't be looked at")
	case !a.probes.host:
		return errors.New("the host has not been looked at yet")
	}
	return nil
}

// Healthy tells, as nil, that the loop moves.
func (a *Agent) Healthy() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if late := a.cfg.Now().Sub(a.probes.due); !a.probes.due.IsZero() && late > 0 {
		return errors.Errorf("the loop has been stuck for %s", (late + stuckAfter).Round(time.Second))
	}
	return nil
}
