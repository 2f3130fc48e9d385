package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// late tells if pods were found on a node whose volumes or hooks are awaited, because it was empty: such as tolerate the
// cordon.
func late(n *fleet.Node) bool {
	d := n.Marks.Disruption
	return n.Drain != nil && n.Drain.Failed == "" && n.Drain.Remaining > 0 && (d.Drained != nil || d.Asked != nil)
}

// drainAgain takes a node for one that isn't empty: when it is again its volumes are awaited, and hooks asked, anew.
func (p *planner) drainAgain(n *fleet.Node) {
	c := keep(n)
	c.unhook()
	d := c.Marks.Disruption
	d.Drained = nil
	if d.Late == nil {
		at := p.Now.Truncate(time.Millisecond)
		d.Late = &at
	}
	r, message := p.drainWait(n)
	c.Marks.Waiting = plan.Verbatim(message).Mark(r, p.Now)
	p.step(n, intent.PhaseDraining, intent.ActNote, r, message, c)
}

// drainSince is since when a drain has its time, and how much more than that. What volumes and hooks take on the empty
// node is theirs. When pods first come late the drain has its time once more, and whoever comes later has what is left
// of that.
func (p *planner) drainSince(n *fleet.Node) (time.Time, time.Duration) {
	d, r := n.Marks.Disruption, p.place(n).rules
	switch {
	case d.Asked != nil:
		return *d.Asked, policy.LongestHook(r.Hooks.AfterDrain)
	case d.Drained != nil:
		return *d.Drained, r.Volumes.Wait
	case d.Late != nil:
		return *d.Late, 0
	}
	return d.Since, 0
}
