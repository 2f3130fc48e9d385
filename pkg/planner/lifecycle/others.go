package lifecycle

import "github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"

// exclude asks load balancers to send nothing to the node any more. Where the label stands already they don't.
func (c *change) exclude() {
	if _, stands := c.v.Labels[marker.LabelExcluded]; c.v.Rules.Balancers.Exclude && !stands {
		c.mark(c.v.Labels, &c.Labels, marker.LabelExcluded)
	}
}

// include takes that back.
func (c *change) include() { c.unmark(c.v.Labels, &c.Labels, marker.LabelExcluded) }

// protect asks autoscalers to leave the node alone.
func (c *change) protect() {
	if !c.v.Rules.Protect {
		return
	}
	for _, k := range marker.AutoscalerMarks() {
		c.mark(c.v.Autoscalers, &c.Annotations, k)
	}
}

// endProtection takes that back.
func (c *change) endProtection() {
	for _, k := range marker.AutoscalerMarks() {
		c.unmark(c.v.Autoscalers, &c.Annotations, k)
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

// unmark puts back what stood there before the operator's mark, if that still stands.
func (c *change) unmark(stands map[string]string, write *map[string]*string, key string) {
	if !c.v.Disrupted() {
		return
	}
	before, ours := c.v.Marks.Disruption.Before[key]
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
