package plugin

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// effect says what a change that cleans a node does to it.
func effect(n *corev1.Node, v *fleet.Node, c *plan.Change) (done cleaned) {
	removed := len(c.Diff(n.Annotations))
	if c.Unschedulable != nil {
		done.parts = append(done.parts, "uncordoned")
	}
	if removed > 0 {
		done.parts = append(done.parts, plural(removed, "annotation")+" removed")
	}
	if done.unchanged() {
		return done
	}
	if stays := stays(n, v, c); stays != "" {
		done.parts = append(done.parts, stays)
	}
	resetting := v.Phase() == intent.PhaseResetting && v.Marks.Report.Answer(v.Marks.Intent.ID) != marker.StateReady
	if resetting || lifecycle.RebootBegun(v) {
		done.notes = append(done.notes, fmt.Sprintf("the host of node %q may have an update activated, which its next reboot goes into", v.Name))
	}
	return done
}

// stays says which marks stay on a node that was taken out of service, since they are not known to be the operator's.
func stays(n *corev1.Node, v *fleet.Node, c *plan.Change) string {
	cordoned := v.Unschedulable && c.Unschedulable == nil
	unreadable := slices.ContainsFunc(v.Problems, func(p marker.Problem) bool { return p.Key == marker.KeyDisruption })
	switch {
	case v.Disrupted() && unreadable:
		if stand := othersMarks(n, cordoned); len(stand) > 0 {
			return strings.Join(stand, ", ") + " kept, nobody can tell whose it is"
		}
	case v.Disrupted() && cordoned:
		return "cordon kept, it is somebody else's"
	}
	return ""
}

// othersMarks are the cordon and the marks for load balancers and autoscalers that stand as the operator writes them.
func othersMarks(n *corev1.Node, cordoned bool) []string {
	var stand []string
	if cordoned {
		stand = append(stand, "cordon")
	}
	if n.Labels[marker.LabelExcluded] == marker.OthersValue {
		stand = append(stand, "label "+marker.LabelExcluded)
	}
	for _, k := range marker.AutoscalerMarks() {
		if n.Annotations[k] == marker.OthersValue {
			stand = append(stand, "annotation "+k)
		}
	}
	return stand
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
