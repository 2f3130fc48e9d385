package sim

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// admit is the admission of what is created: a quota, and in half of the scenarios what the policies of components/plans/plans.yaml
// say of a runner's pods. In the other half a runner's own care must do.
func (w *world) admit(actor string, r apiserver.Request, obj runtime.Object) error {
	p, ok := obj.(*corev1.Pod)
	if !ok || r.Namespace != plansNamespace {
		return nil
	}
	refuse := func(why string) error {
		w.note("admission", "refuses %s of %s: %s", r, actor, why)
		return apierrors.NewForbidden(corev1.Resource("pods"), p.Name, errors.New(why))
	}
	if w.now.Before(w.quota) && !w.calm {
		w.strike(PlanPodRefused)
		return refuse("exceeded quota")
	}
	if !w.scenario.Walls {
		return nil
	}
	if why := w.wrong(p, r.DryRun); why != "" {
		return refuse(why)
	}
	return nil
}

// wrong is why a Node asks for no such pod; empty if it does. The policies see the Node as it was some moments ago.
func (w *world) wrong(p *corev1.Pod, try bool) string {
	n := w.server.Node(p.Spec.NodeName)
	if n == nil {
		return "no Node"
	}
	if !w.calm && w.chance(8) {
		n = w.checks.was(n, w.now.Add(-w.between(0, 2*time.Second)))
	}
	until, err := time.Parse(time.RFC3339, annotation(n, marker.KeyIntentUntil))
	_, _, digest, _ := target(annotation(n, marker.KeyTargetVersion))
	want := p.Labels[planLabel] + "/" + p.Annotations[planTarget] + "#"
	switch action := annotation(n, marker.KeyActionWanted); {
	case string(n.UID) != p.Annotations[planNodeUID]:
		return "another UID"
	case n.Labels[string(marker.KeyInterfaceVersion)] != "plan":
		return "no node of plans"
	case annotation(n, marker.KeyIntentID) != p.Annotations[planIntent]:
		return "another intent"
	case annotation(n, marker.KeyPlanTemplate) != p.Annotations[planTemplate]:
		return "another template"
	case !strings.HasPrefix(annotation(n, marker.KeyTargetVersion), want) && digest != p.Annotations[planTarget]:
		return "another plan or target"
	case action != string(marker.ActionPrepareUpdate) && action != string(marker.ActionRebootUpdate):
		return "an action without a pod"
	case action == string(marker.ActionRebootUpdate) && !n.Spec.Unschedulable && !inService(n):
		return "not cordoned"
	case !try && !isBusy(n):
		return "not busy with that"
	case err != nil || p.CreationTimestamp.Add(time.Second).After(until):
		return "after intent-until"
	}
	return ""
}

// isBusy reports whether `busy` stands for the intent that does.
func isBusy(n *corev1.Node) bool {
	return annotation(n, marker.KeyActiveID) == annotation(n, marker.KeyIntentID) && annotation(n, marker.KeyActionState) == string(marker.StateBusy)
}

// was is a Node as it stood at a time; as it is, if it was not there yet.
func (c *checks) was(n *corev1.Node, at time.Time) *corev1.Node {
	states := c.history[string(n.UID)]
	for i := len(states) - 1; i >= 0; i-- {
		if states[i].node != nil && !states[i].from.After(at) {
			return states[i].node
		}
	}
	return n
}
