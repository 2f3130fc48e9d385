package lifecycle

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// NeverLabelled reports whether a node that is not managed runs Bottlerocket and, as far as its Node shows, was never
// in the operator's care nor is on its way out. What can't be read is taken for no.
func NeverLabelled(n *fleet.Node) bool {
	return !n.Labelled() && !n.Marked() && len(n.Problems) == 0 && n.OSVersion != "" && n.Marks.AutoLabelled == nil && n.Leaving == ""
}

// Label is the next step of such a node. The mark that it was labelled is in the same patch, so that a label which a
// user removes at once stays removed.
func (v *View) Label() Next {
	c := v.keep()
	put(&c.Labels, string(marker.KeyInterfaceVersion), new(string(fleet.InterfaceUpdateAPI)))
	c.Marks.AutoLabelled = v.stamp()
	return v.do(intent.ActLabel, plan.ReasonAutoLabelled, "it runs Bottlerocket and was never labelled, and the policy has autoLabel: true", c)
}

// stamp is now, for people.
func (v *View) stamp() *string { return new(v.Now.UTC().Format(time.RFC3339)) }
