package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// runnerKeys are those of an agent's that a runner may write.
var runnerKeys = slices.DeleteFunc(slices.Clone(agentKeys), func(k marker.Key) bool {
	return k == marker.KeyAvailableVersion || k == marker.KeyUpdateAvailable
})

// planPod holds a write of a pod of a plan against S2, S3, S4 and S6.
func (c *checks) planPod(actor string, r apiserver.Request, before, after *corev1.Pod) {
	switch {
	case before == nil:
		c.planPodMade(actor, after)
	case strings.HasPrefix(actor, "controller-"):
		c.w.violate("S5", "%s writes to pod %s of a plan", actor, before.Name)
	case !strings.HasPrefix(actor, "runner-"):
	case after != nil && r.Verb == "patch" && len(after.Finalizers) < len(before.Finalizers):
		c.released(actor, before)
	}
}

// planPodMade: a pod is made once for an intent that stands, after `busy` and before its end, as the API server's clock
// says, and an apply pod only on a node that is as its plan wants it.
func (c *checks) planPodMade(actor string, p *corev1.Pod) {
	w := c.w
	c.count("S3")
	n := w.server.Node(p.Spec.NodeName)
	if runner := w.runnerNamed(actor); runner == nil {
		w.violate("S4", "%s makes a pod of a plan", actor)
	}
	intent := p.Annotations[planIntent]
	key := p.Annotations[planNodeUID] + " " + intent
	c.made[key]++
	if c.made[key] > 1 {
		w.violate("S3", "%s makes pod %s once more for intent %q", actor, p.Name, intent)
	}
	if len(w.awaited) > 0 && n != nil {
		w.moment(n.Name, AtPod)
	}
	if n == nil || string(n.UID) != p.Annotations[planNodeUID] || c.tampered[string(n.UID)] {
		// The Node was deleted, or another one has its name: the runner could not know that in time.
		return
	}
	k := c.of(n)
	c.bounded(actor, p, n)
	if !k.begun[intent] {
		w.violate("S3", "%s makes pod %s on %s, and nothing was `busy` with %q", actor, p.Name, n.Name, intent)
	}
	if annotation(n, marker.KeyIntentID) != intent {
		// What is prepared may be taken back at any time. But for a user's doing, an attempt that has begun is not.
		if !strings.HasPrefix(p.Annotations[planTemplate], prepares) && !k.uncordoned[intent] && !k.failed[intent] && !k.left {
			w.violate("S3", "%s makes pod %s on %s for intent %q, which does not stand", actor, p.Name, n.Name, intent)
		}
		return
	}
	if !k.begun[intent] || !isBusy(n) {
		w.violate("S3", "%s makes pod %s on %s, and `busy` does not stand: %q", actor, p.Name, n.Name, annotation(n, marker.KeyActionState))
	}
	mark, ok := planOf(n)
	if !ok || annotation(n, marker.KeyPlanTemplate) != p.Annotations[planTemplate] {
		w.violate("S3", "%s makes pod %s of template %s, and %s asks for %s", actor, p.Name, p.Annotations[planTemplate], n.Name, annotation(n, marker.KeyPlanTemplate))
		return
	}
	if p.Annotations[planTemplate] != mark.Apply {
		return
	}
	c.count("S2")
	if annotation(n, marker.KeyActionWanted) != string(marker.ActionRebootUpdate) || !has(n, marker.KeyDisruption) {
		w.violate("S2", "%s makes apply pod %s on %s, which is not out of service for it", actor, p.Name, n.Name)
	}
	if mark.Drain == "false" && mark.Effect != "none" {
		w.violate("S2", "%s makes pod %s on %s, whose plan does %s in service", actor, p.Name, n.Name, mark.Effect)
	}
	if mark.Drain != "false" && !n.Spec.Unschedulable && !k.uncordoned[intent] {
		w.violate("S2", "%s makes apply pod %s on %s, which is not cordoned", actor, p.Name, n.Name)
	}
	if n.Status.NodeInfo.BootID != annotation(n, marker.KeyRebootFrom) && !c.bootedSince(n, 20*time.Second) {
		w.violate("S3", "%s makes apply pod %s on %s, which has booted since its cordon", actor, p.Name, n.Name)
	}
	for _, other := range w.planPodsOn(n.Name) {
		if other.UID != p.UID && other.Annotations[planNodeUID] == string(n.UID) && other.Status.Phase != corev1.PodSucceeded && other.Status.Phase != corev1.PodFailed {
			w.violate("S3", "%s makes apply pod %s on %s, where %s is not over", actor, p.Name, n.Name, other.Name)
		}
	}
}

// bounded: no pod after its intent's end, by the API server's clock.
func (c *checks) bounded(actor string, p *corev1.Pod, n *corev1.Node) {
	until, err := time.Parse(time.RFC3339, annotation(n, marker.KeyIntentUntil))
	if annotation(n, marker.KeyIntentID) == p.Annotations[planIntent] && (err != nil || !c.w.now.Before(until)) {
		c.w.violate("S3", "%s makes pod %s on %s after the end of its intent, %s", actor, p.Name, n.Name, until)
	}
}

// bootedSince reports whether a node came up with its boot so short a time ago.
func (c *checks) bootedSince(n *corev1.Node, d time.Duration) bool {
	boot := n.Status.NodeInfo.BootID
	return !c.since(string(n.UID), c.w.now.Add(-d), func(n *corev1.Node) bool { return n == nil || n.Status.NodeInfo.BootID == boot })
}

// released: the name of an intent's pod stays taken while the intent stands and can still begin.
func (c *checks) released(actor string, p *corev1.Pod) {
	w := c.w
	c.count("S3")
	n := w.server.Node(p.Spec.NodeName)
	if n == nil || string(n.UID) != p.Annotations[planNodeUID] || c.tampered[string(n.UID)] || annotation(n, marker.KeyIntentID) != p.Annotations[planIntent] {
		return
	}
	if until, err := time.Parse(time.RFC3339, annotation(n, marker.KeyIntentUntil)); err == nil && w.now.Before(until) && labelled(n) {
		w.violate("S3", "%s lets pod %s go, whose intent stands until %s", actor, p.Name, until)
	}
}

// ran: a machine runs at most one pod for one intent, and that once.
func (c *checks) ran(m *machine, run *planRun) {
	c.count("S3")
	p := run.pod
	if times := m.ran[p.Annotations[planNodeUID]+" "+p.Annotations[planIntent]]; times > 1 {
		c.w.violate("S3", "%s runs a pod for intent %q %d times", m.name, p.Annotations[planIntent], times)
	}
	c.w.note(m.name, "runs pod %s of %s", p.Name, p.Annotations[planTemplate])
	for _, other := range m.runs {
		if other != run && other.running && other.pod.Annotations[planNodeUID] == p.Annotations[planNodeUID] {
			c.w.violate("S3", "%s runs %s and %s at once", m.name, other.pod.Name, p.Name)
		}
	}
}

// ranReport holds a runner's write to a Node against S3, S4 and S7.
func (c *checks) ranReport(actor string, before, after *corev1.Node) {
	w := c.w
	c.count("S4")
	for _, key := range changedKeys(before, after) {
		if !slices.Contains(runnerKeys, marker.Key(key)) {
			w.violate("S4", "%s wrote %s of %s", actor, key, after.Name)
		}
	}
	if before.Spec.Unschedulable != after.Spec.Unschedulable {
		w.violate("S4", "%s changed the cordon of %s", actor, after.Name)
	}
	if before.Labels[string(marker.KeyInterfaceVersion)] != "plan" {
		w.violate("S4", "%s wrote to %s, which is no node of plans", actor, after.Name)
	}
	id, state := annotation(after, marker.KeyActiveID), annotation(after, marker.KeyActionState)
	if id == annotation(before, marker.KeyActiveID) && state == annotation(before, marker.KeyActionState) {
		return
	}
	w.note(actor, "%s: %s to %s %s", after.Name, state, annotation(after, marker.KeyActionWanted), annotation(after, marker.KeyMessage))
	if id != annotation(after, marker.KeyIntentID) {
		w.violate("S4", "%s answered %q on %s, and %q stands", actor, id, after.Name, annotation(after, marker.KeyIntentID))
	}
	c.answered(before, after, w.runnerNamed(actor).now)
	if state == string(marker.StateReady) && annotation(after, marker.KeyActionWanted) == string(marker.ActionRebootUpdate) && !c.tampered[string(after.UID)] {
		c.count("S7")
		if why := c.unproven(after); why != "" {
			w.violate("S7", "%s claims %s for %s, and %s", actor, annotation(after, marker.KeyTargetVersion), after.Name, why)
		}
	}
}

// unproven is why nothing shows that a node has the target of its attempt; empty if all that must show it does.
func (c *checks) unproven(n *corev1.Node) string {
	mark, ok := planOf(n)
	_, want, digest, _ := target(annotation(n, marker.KeyTargetVersion))
	m := c.w.cluster.machineOf(n.Name)
	switch {
	case !ok || m == nil:
		return "there is no plan"
	case mark.Effect == "reboot" && n.Status.NodeInfo.BootID == annotation(n, marker.KeyRebootFrom):
		return "it has not booted"
	case mark.Proof == "content" && m.has[mark.Name] != digest:
		return "the machine has " + m.has[mark.Name]
	case mark.Proof == "kubeletVersion" && n.Status.NodeInfo.KubeletVersion != want:
		return "its kubelet shows " + n.Status.NodeInfo.KubeletVersion
	}
	for _, p := range c.w.planPodsOn(n.Name) {
		if p.Annotations[planIntent] != annotation(n, marker.KeyIntentID) {
			continue
		}
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			return "its pod is not over"
		}
	}
	return ""
}

// unapplied is why the pod of a plan's content does not show that it brought it; empty if it does.
func (c *checks) unapplied(n *corev1.Node) string {
	mark, _ := planOf(n)
	if mark.Proof != "content" {
		return ""
	}
	for _, p := range c.w.planPodsOn(n.Name) {
		if p.Annotations[planIntent] != annotation(n, marker.KeyIntentID) {
			continue
		}
		if s := p.Status.ContainerStatuses; p.Status.Phase != corev1.PodSucceeded || len(s) == 0 || s[0].State.Terminated == nil ||
			strings.TrimSuffix(s[0].State.Terminated.Message, " reboot") != mark.Digest {
			return "pod " + p.Name + " does not say so"
		}
		return ""
	}
	return "its pod is not there"
}

// planSuccess: what is claimed is true of the machine.
func (c *checks) planSuccess(actor string, before, after *corev1.Node, claimed string) {
	w := c.w
	mark, _ := planOf(before)
	m := w.cluster.machineOf(after.Name)
	_, want, digest, _ := target(claimed)
	info := before.Status.NodeInfo
	switch {
	case mark.Proof == "kubeletVersion" && info.KubeletVersion != want:
		w.violate("S7", "%s calls %s updated to %s, and its kubelet shows %s", actor, after.Name, claimed, info.KubeletVersion)
	case annotation(before, marker.KeyCurrentVersion) != claimed:
		w.violate("S7", "%s calls %s updated to %s, and the runner says %s", actor, after.Name, claimed, annotation(before, marker.KeyCurrentVersion))
	case mark.Effect == "reboot" && info.BootID == annotation(before, marker.KeyRebootFrom):
		w.violate("S7", "%s calls %s updated, and it has not booted since", actor, after.Name)
	case !isReady(before):
		w.violate("S7", "%s calls %s updated, and it is not Ready", actor, after.Name)
	case mark.Proof == "content" && m != nil && m.has[mark.Name] != digest:
		w.violate("S7", "%s calls %s updated to %s, and it has %q", actor, after.Name, claimed, m.has[mark.Name])
	}
}

// planSoak is the least soak of a node whose plan boots nothing.
const planSoak = time.Minute

// planForbidden says why a node may not be started for a plan's target by the policy that its process was shown.
func (c *checks) planForbidden(d *decision, n *corev1.Node, version string) string {
	name, want, digest, _ := target(version)
	p := planNamed(&d.set, name)
	switch {
	case p == nil:
		return "and the policy has no such plan"
	case !chosen(p.Selector, n.Labels):
		return "and the plan does not choose it"
	case !p.Target.Content && want != p.Target.Version:
		return "and the plan's target is " + p.Target.Version
	}
	if mark, ok := planOf(n); !ok || mark.Name != name || mark.Digest != digest || mark.Effect != string(p.Effect) || mark.Drain != string(p.Drains()) || mark.Apply != p.Apply {
		return "and its marks say something else of the plan than the policy"
	}
	if !c.anyJumped() && c.w.runnersUnreadySince().Before(d.agents) {
		return "and no runner has been Ready"
	}
	return ""
}

// runnersUnreadySince is since when no runner has been Ready; the end of time: one is.
func (w *world) runnersUnreadySince() time.Time {
	since := time.Time{}
	for _, r := range w.runners {
		if r.unready.IsZero() {
			return w.now.Add(forever)
		}
		since = maxTime(since, r.unready)
	}
	return since
}

// hasPlan reports whether a node has the version of a plan, or will never go to it.
func (c *checks) hasPlan(d *decision, n *corev1.Node, version string) bool {
	name, want, digest, _ := target(version)
	p := planNamed(&d.set, name)
	if n.Labels[string(marker.KeyInterfaceVersion)] != "plan" || p == nil || !chosen(p.Selector, n.Labels) {
		return true
	}
	if has(n, marker.KeyDisruption) || !isReady(n) {
		return false
	}
	if p.Target.Content {
		return strings.Contains(annotation(n, marker.KeyPlanDone), digest)
	}
	return n.Status.NodeInfo.KubeletVersion >= want
}

// actTime is how long a plan's attempt may take from its last intent on before its node is Lost, with what it settles.
func actTime(n *corev1.Node, p *controllerProcess) time.Duration {
	mark, ok := planOf(n)
	if !ok {
		return p.settings.Deadlines.Reboot
	}
	deadline, _ := time.ParseDuration(mark.Deadline)
	return 6*time.Minute + deadline + 10*time.Minute
}

// isBottlerocket reports whether a node is not one of plans.
func isBottlerocket(n *corev1.Node) bool {
	return n.Labels[string(marker.KeyInterfaceVersion)] != "plan"
}
