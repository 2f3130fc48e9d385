package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// decided holds a controller's write against the promises.
func (c *checks) decided(actor string, before, after *corev1.Node) {
	w := c.w
	k := c.of(after)
	c.telling(actor, before, after)
	if waiting := annotation(after, marker.KeyWaitingFor); waiting != annotation(before, marker.KeyWaitingFor) {
		reason, _, _ := strings.Cut(waiting, ":")
		c.told(after.Name, plan.Reason(reason))
	}
	for _, key := range changedKeys(before, after) {
		if !strings.HasPrefix(key, marker.Prefix) && !slices.Contains(othersKeys, key) || key == string(marker.KeyPaused) {
			w.violate("S5", "%s changed %s of %s", actor, key, after.Name)
		}
	}
	if has(after, marker.KeyDisruption) && !has(before, marker.KeyDisruption) {
		c.starts(actor, after, "the cordon of")
	}
	leaves := !has(after, marker.KeyIntentID) && has(before, marker.KeyIntentID)
	id, action := annotation(after, marker.KeyIntentID), annotation(after, marker.KeyActionWanted)
	if id != annotation(before, marker.KeyIntentID) && !leaves {
		w.note(actor, "%s: wants %s %s", after.Name, action, annotation(after, marker.KeyTargetVersion))
		c.count("S6")
		if action == string(marker.ActionPrepareUpdate) {
			c.starts(actor, after, "the staging on")
		}
		if (marker.Action(action).Stages() || action == string(marker.ActionRebootUpdate)) && has(before, marker.KeyPaused) &&
			!(action == string(marker.ActionRebootUpdate) && before.Status.NodeInfo.BootID != annotation(before, marker.KeyRebootFrom)) {
			w.violate("S6", "%s starts %s on %s, which is paused", actor, action, after.Name)
		}
	}
	if action == string(marker.ActionStabilize) && takesBack(before, after) && has(after, marker.KeyDisruption) {
		c.returned(actor, before)
	}
	c.wishesLock(actor, before, after)
	ended := endedBy(before, after)
	c.cycles(actor, before, after, ended)
	if ended.Outcome == string(marker.OutcomeFailed) && !cycles(before) {
		c.count("L3")
		if annotation(after, marker.KeyFailure) == annotation(before, marker.KeyFailure) && !c.tampered[string(after.UID)] {
			w.violate("L3", "%s ends an attempt on %s as failed and does not count the failure with it", actor, after.Name)
		}
	}
	if takesBack(before, after) {
		// Once `busy` stands only a new boot ID or the agent's late error decides.
		c.count("S3")
		rebooted := before.Status.NodeInfo.BootID != annotation(before, marker.KeyRebootFrom)
		begun := annotation(before, marker.KeyActiveID) == annotation(before, marker.KeyIntentID) && annotation(before, marker.KeyActionState) == string(marker.StateBusy)
		if begun && !rebooted && !c.tampered[string(after.UID)] {
			c.gaveUp(actor, before, leaves)
		}
	}
	if !has(before, marker.KeyDisruption) && has(after, marker.KeyDisruption) {
		c.cordon(actor, before, after)
	}
	if before.Spec.Unschedulable != after.Spec.Unschedulable {
		c.count("S5")
		if after.Spec.Unschedulable {
			k.ours = true
		} else {
			if k.theirs && !k.ours && !k.blurred {
				w.violate("S5", "%s uncordons %s, whose cordon is not the operator's", actor, after.Name)
			}
			k.ours, k.theirs = false, false
		}
	}
	if has(before, marker.KeyDisruption) && !has(after, marker.KeyDisruption) {
		if k.ours && after.Spec.Unschedulable && !k.theirs {
			w.violate("S5", "%s leaves %s cordoned, and the cordon was the operator's", actor, after.Name)
		}
		k.blurred = false
		c.givenBack[after.Name] = w.now
	}
	if action == string(marker.ActionRebootUpdate) && id != annotation(before, marker.KeyIntentID) {
		c.beforeReboot(actor, before)
	}
	if ended.Outcome == string(marker.OutcomeUpdated) || ended.Outcome == string(marker.OutcomeCycled) {
		c.success(actor, before, after)
	}
}

// returned: a node is only taken for back when its kubelet says Ready from the new boot that the agent
// sees too.
func (c *checks) returned(actor string, n *corev1.Node) {
	c.count("S7")
	if c.tampered[string(n.UID)] {
		return
	}
	c.carriesWell(actor, n)
	boot := n.Status.NodeInfo.BootID
	if why := c.unapplied(n); why != "" && annotation(n, marker.KeyActionState) != string(marker.StateError) {
		c.w.violate("S7", "%s takes %s for back, and %s", actor, n.Name, why)
	}
	switch failed := annotation(n, marker.KeyActionState) == string(marker.StateError); {
	case !boots(n) || failed && !isBottlerocket(n):
		if !isReady(n) {
			c.w.violate("S7", "%s takes %s for back, and it is not Ready", actor, n.Name)
		}
	case boot == annotation(n, marker.KeyRebootFrom):
		c.w.violate("S7", "%s takes %s for back, and its kubelet has not said so", actor, n.Name)
	case boot != annotation(n, marker.KeyBootID):
		c.w.violate("S7", "%s takes %s for back, and its agent speaks of another boot", actor, n.Name)
	case !isReady(n):
		c.w.violate("S7", "%s takes %s for back, and it is not Ready", actor, n.Name)
	}
}

// gaveUp: a reboot that has begun is waited for, but not for ever: taking the label off ends a Lost node. What the
// machine does then is for the user who took it off.
func (c *checks) gaveUp(actor string, before *corev1.Node, leaves bool) {
	p := c.w.controllerNamed(actor)
	switch {
	case !leaves:
		c.w.violate("S3", "%s takes the reboot of %s back, which has begun", actor, before.Name)
	case !c.lost(before, p, false) && c.w.now.Sub(p.jumpedAt) > time.Minute:
		c.w.violate("S3", "%s no longer waits for the reboot of %s, which has begun and is not Lost", actor, before.Name)
	}
	c.of(before).uncordoned[annotation(before, marker.KeyIntentID)] = true
}

// takesBack reports whether the write replaces an intent to reboot that has no answer that ends it.
func takesBack(before, after *corev1.Node) bool {
	return annotation(before, marker.KeyActionWanted) == string(marker.ActionRebootUpdate) &&
		annotation(after, marker.KeyIntentID) != annotation(before, marker.KeyIntentID)
}

// beforeReboot: the node is cordoned, and nothing was left to evict at the controller's last look.
func (c *checks) beforeReboot(actor string, n *corev1.Node) {
	w := c.w
	c.count("S2")
	if n.Status.NodeInfo.BootID != annotation(n, marker.KeyRebootFrom) {
		// It was rebooted already; nothing is asked of it but to say so.
		return
	}
	c.goesOn(actor, n)
	if inService(n) {
		return
	}
	if !n.Spec.Unschedulable {
		w.violate("S2", "%s asks %s to reboot, which is not cordoned", actor, n.Name)
	}
	p := w.controllerNamed(actor)
	if looked := p.alone[string(n.UID)]; looked > 0 && c.leftInPlace(p, n, c.when(looked)) {
		// Its workloads are left in place.
		c.count(LeftInPlace)
		return
	}
	if inPlace(n) {
		return
	}
	c.detached(actor, n)
	looked := p.looked[n.Name]
	for _, p := range w.server.PodsOn(n.Name) {
		if evictable(p) && c.came[string(p.UID)] <= looked {
			w.violate("S2", "%s asks %s to reboot, and pod %s/%s is still there", actor, n.Name, p.Namespace, p.Name)
		}
	}
	if looked == 0 {
		w.violate("S2", "%s asks %s to reboot and never looked at its pods", actor, n.Name)
	}
}

// leftInPlace reports whether the policy lets a node go down with its workloads, and it may have been seen at some time from t
// on that there is no other that isn't on its way out.
func (c *checks) leftInPlace(p *controllerProcess, n *corev1.Node, t time.Time) bool {
	if p.decided.set.SingleNode != policy.SingleNodeAllow {
		return false
	}
	for _, other := range c.w.server.Nodes() {
		uid := string(other.UID)
		if uid != string(n.UID) && !c.history[uid][0].from.After(t) && c.always(other, t, func(n *corev1.Node) bool { return !takenAway(n) }) {
			return false
		}
	}
	return true
}

// endedBy is the attempt that a write ended; the zero one if it ended none. A user's wish for another one is noted with
// the last that there was, and ends none.
func endedBy(before, after *corev1.Node) attempt {
	last := func(n *corev1.Node) attempt {
		h := history(n)
		if len(h) == 0 {
			return attempt{}
		}
		return h[len(h)-1]
	}
	if a := last(after); a != last(before) {
		return a
	}
	return attempt{}
}

type attempt struct {
	Version string    `json:"version"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
	Ended   time.Time `json:"ended"`
	Cycle   string    `json:"cycle"`
}

func history(n *corev1.Node) []attempt {
	var h []attempt
	_ = json.Unmarshal([]byte(annotation(n, marker.KeyHistory)), &h)
	return h
}

// success: what is claimed is true of the machine, and both witnesses said so.
func (c *checks) success(actor string, before, after *corev1.Node) {
	w := c.w
	c.count("S7")
	if c.tampered[string(after.UID)] {
		return
	}
	h := history(after)
	claimed := h[len(h)-1].Version
	m := w.cluster.machineOf(after.Name)
	info := before.Status.NodeInfo
	_, _, _, ofPlan := target(claimed)
	switch {
	case ofPlan:
		c.planSuccess(actor, before, after, claimed)
	case info.OSImage == "" || !strings.Contains(info.OSImage, " "+claimed+" "):
		w.violate("S7", "%s calls %s updated to %s, and its kubelet says %q", actor, after.Name, claimed, info.OSImage)
	case annotation(before, marker.KeyCurrentVersion) != claimed || annotation(before, marker.KeyBootID) != info.BootID:
		w.violate("S7", "%s calls %s updated to %s, and its agent says %s", actor, after.Name, claimed, annotation(before, marker.KeyCurrentVersion))
	case info.BootID == annotation(before, marker.KeyRebootFrom):
		w.violate("S7", "%s calls %s updated, and it has not booted since", actor, after.Name)
	case !isReady(before):
		w.violate("S7", "%s calls %s updated, and it is not Ready", actor, after.Name)
	case m != nil && m.up && m.host.BootID() == info.BootID && m.host.Snapshot().Version != claimed:
		w.violate("S7", "%s calls %s updated to %s, and it runs %s", actor, after.Name, claimed, m.host.Snapshot().Version)
	}
	c.workloadsWell(actor, before)
	p := w.controllerNamed(actor)
	if k := c.of(after); p != nil && !p.jumped {
		// Ready's time is in whole seconds: what comes and goes within one of them can't be seen afterwards.
		soak := p.settings.Soak
		if !boots(before) {
			soak = max(soak, planSoak)
		}
		if ready := w.now.Sub(k.readySince); ready < soak-time.Second {
			w.violate("S7", "%s calls %s updated after it was Ready for %s only", actor, after.Name, ready)
		}
	}
}
