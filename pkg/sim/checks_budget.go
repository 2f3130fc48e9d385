package sim

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// cordon: S1, counted on what is stored, with the settings of the controller that writes.
func (c *checks) cordon(actor string, before, after *corev1.Node) {
	w := c.w
	c.count("S1")
	c.count("S6")
	p := w.controllerNamed(actor)
	held, lost, certain := 0, 0, 0
	for _, n := range w.server.Nodes() {
		if n.Name == after.Name {
			n = after
		}
		if !has(n, marker.KeyDisruption) || n.Name != after.Name && c.tampered[string(n.UID)] {
			continue
		}
		held++
		if n.Name != after.Name && !c.tampered[string(n.UID)] && c.lost(n, p, false) {
			lost++
			if c.lost(n, p, true) {
				certain++
			}
		}
	}
	all := len(w.server.Nodes())
	maxUnavailable, maxLost := p.settings.MaxUnavailable.Of(all), p.settings.MaxLost.Of(all)
	if certain > maxLost && w.now.Sub(p.jumpedAt) > time.Minute {
		// A pass that began before its clock jumped counts by the time before.
		w.violate("S1", "%s cordons %s although %d nodes are Lost, with maxLost %d", actor, after.Name, certain, maxLost)
	}
	limit := maxUnavailable + min(lost, maxLost)
	if held > limit {
		w.violate("S1", "%s cordons %s: %d nodes are in our hands, %d of them Lost, with a limit of %d and maxLost %d", actor, after.Name,
			held, lost, maxUnavailable, maxLost)
	}
	c.held = max(c.held, held)
	if !w.holdsSlot(after) {
		w.violate("S1", "%s cordons %s without a slot", actor, after.Name)
	}
	if has(before, marker.KeyPaused) {
		w.violate("S6", "%s cordons %s, which is paused", actor, after.Name)
	}
	if _, ok := after.Labels[string(marker.KeyInterfaceVersion)]; !ok {
		w.violate("S6", "%s cordons %s, which is not labelled", actor, after.Name)
	}
	if annotation(after, marker.KeyRebootFrom) == "" {
		w.violate("S3", "%s cordons %s and does not fence its boot", actor, after.Name)
	}
}

// slots: whoever is in our hands holds one, whatever a controller writes.
func (c *checks) slots(actor string) {
	w := c.w
	c.count("S1")
	for _, n := range w.server.Nodes() {
		if has(n, marker.KeyDisruption) && !c.tampered[string(n.UID)] && !w.holdsSlot(n) {
			w.violate("S1", "%s takes the slot of %s away, which is in our hands", actor, n.Name)
		}
	}
}

// holdsSlot reads the list; one that isn't there, or that people broke, is rebuilt before anybody needs it.
func (w *world) holdsSlot(n *corev1.Node) bool {
	cm := w.server.ConfigMap(namespace, kube.StateConfigMap)
	if cm == nil {
		return true
	}
	held := map[string]string{}
	if json.Unmarshal([]byte(cm.Data["slots"]), &held) != nil {
		return true
	}
	_, ok := held[string(n.UID)]
	return ok
}

// lost is the design's definition, by the clock of the controller that decides. Not every controller has
// seen yet what an agent or a kubelet says now: certain leaves out who may be coming back.
func (c *checks) lost(n *corev1.Node, p *controllerProcess, certain bool) bool {
	since, err := time.Parse(time.RFC3339, annotation(n, marker.KeyIntentTime))
	if err != nil {
		return false
	}
	now := p.process.now()
	d := p.settings.Deadlines
	age := now.Sub(since)
	if since.After(now.Add(p.settings.RetryMax)) {
		age = forever
	}
	answer := ""
	if annotation(n, marker.KeyActiveID) == annotation(n, marker.KeyIntentID) {
		answer = annotation(n, marker.KeyActionState)
	}
	switch annotation(n, marker.KeyActionWanted) {
	case string(marker.ActionRebootUpdate):
		if certain {
			return answer == string(marker.StateBusy) && age >= d.Reboot+5*time.Second
		}
		return (answer != "" || n.Status.NodeInfo.BootID != annotation(n, marker.KeyRebootFrom)) && age >= d.Reboot
	case string(marker.ActionStabilize), string(marker.ActionResetState):
		return !certain && age >= p.settings.Soak+d.Return
	}
	return false
}
