package planner

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// exclude asks load balancers to send nothing to the node any more. Where the label stands already they don't.
func (c *change) exclude(n *fleet.Node, r *policy.Rules) {
	if _, stands := n.Labels[marker.LabelExcluded]; r.Balancers.Exclude && !stands {
		c.mark(n.Labels, &c.Labels, marker.LabelExcluded)
	}
}

// include takes that back.
func (c *change) include(n *fleet.Node) { c.unmark(n, n.Labels, &c.Labels, marker.LabelExcluded) }

// protect asks autoscalers to leave the node alone.
func (c *change) protect(n *fleet.Node, r *policy.Rules) {
	if !r.Protect {
		return
	}
	for _, k := range marker.AutoscalerMarks() {
		c.mark(n.Autoscalers, &c.Annotations, k)
	}
}

// unprotect takes that back.
func (c *change) unprotect(n *fleet.Node) {
	for _, k := range marker.AutoscalerMarks() {
		c.unmark(n, n.Autoscalers, &c.Annotations, k)
	}
}

// mark writes a mark for others and notes what stood there, in one patch. What couldn't be put back as it was, and
// what says the same already, is left alone.
func (c *change) mark(stands map[string]string, write *map[string]*string, key string) {
	var before *string
	if value, stood := stands[key]; stood {
		if value == marker.OthersValue || !marker.CanStandBefore(value) {
			return
		}
		before = &value
	}
	d := c.Marks.Disruption
	if d.Before == nil {
		d.Before = map[string]*string{}
	}
	d.Before[key] = before
	put(write, key, new(marker.OthersValue))
}

// unmark puts back what stood there before our mark, if ours still stands.
func (c *change) unmark(n *fleet.Node, stands map[string]string, write *map[string]*string, key string) {
	if !n.Disrupted() {
		return
	}
	before, ours := n.Marks.Disruption.Before[key]
	if !ours {
		return
	}
	delete(c.Marks.Disruption.Before, key)
	if value, still := stands[key]; still && value == marker.OthersValue {
		put(write, key, before)
	}
}

func put(write *map[string]*string, key string, value *string) {
	if *write == nil {
		*write = map[string]*string{}
	}
	(*write)[key] = value
}

// leavesBalancers lets a node wait for them.
func (p *planner) leavesBalancers(n *fleet.Node) {
	end := p.balanced(n)
	p.wakeAt(end)
	p.wait(n, intent.PhaseDraining, plan.ReasonLeavingBalancers, plan.Say("load balancers have until {t} to send nothing to the node any more").At(end).Over(end))
}

// balanced is when load balancers have had the time that they are given; those that nothing was asked of need none.
func (p *planner) balanced(n *fleet.Node) time.Time {
	d := n.Marks.Disruption
	if _, asked := d.Before[marker.LabelExcluded]; !asked {
		return d.Since
	}
	return d.Since.Add(p.place(n).rules.Balancers.Wait)
}
