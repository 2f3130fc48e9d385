package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// cordon: S1, counted on what is stored, with the settings of the controller that writes.
func (c *checks) cordon(actor string, before, after *corev1.Node) {
	w := c.w
	c.count("S1")
	c.count("S6")
	p := w.controllerNamed(actor)
	held, lost, certain, fresh, freshLost := 0, 0, 0, 0, 0
	for _, n := range w.server.Nodes() {
		if n.Name == after.Name {
			n = after
		}
		if !has(n, marker.KeyDisruption) || n.Name != after.Name && c.tampered[string(n.UID)] {
			continue
		}
		if goesFresh(n) {
			fresh++
			if n.Name != after.Name && c.lost(n, p, false) {
				freshLost++
			}
		} else {
			held++
		}
		if n.Name != after.Name && !c.tampered[string(n.UID)] && c.lost(n, p, false) {
			lost++
			if c.lost(n, p, true) {
				certain++
			}
		}
	}
	all := len(w.server.Nodes())
	// A controller that took a slot by a policy that the others don't know any more may still use it. A limit that is a
	// share counts nodes that were there when it decided and are gone since.
	maxUnavailable, maxLost := 0, p.settings.MaxLost.Of(all)
	for _, other := range w.controllers {
		d := &other.decided
		were := c.capacity(d.shown, func(*corev1.Node) bool { return true })
		maxUnavailable = max(maxUnavailable, most(d.set.MaxUnavailable, max(all, were)))
	}
	if certain > maxLost && w.now.Sub(p.jumpedAt) > time.Minute {
		// A pass that began before its clock jumped counts by the time before.
		w.violate("S1", "%s cordons %s although %d nodes are Lost, with maxLost %d", actor, after.Name, certain, maxLost)
	}
	limit := maxUnavailable + min(lost, maxLost)
	if !goesFresh(after) && held > limit {
		w.violate("S1", "%s cordons %s: %d nodes are disrupted, %d of them Lost, with a limit of %d and maxLost %d", actor, after.Name,
			held, lost, maxUnavailable, maxLost)
	}
	c.held = max(c.held, held+fresh)
	c.cordonFresh(actor, after, fresh, min(freshLost, maxLost))
	c.couldGo(actor, after)
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

// slots: a disrupted node holds one, whatever a controller writes.
func (c *checks) slots(actor string) {
	w := c.w
	c.count("S1")
	for _, n := range w.server.Nodes() {
		if has(n, marker.KeyDisruption) && !c.tampered[string(n.UID)] && !w.holdsSlot(n) {
			w.violate("S1", "%s takes the slot of %s away, which is disrupted", actor, n.Name)
		}
	}
}

// holdsSlot reads the list; one that isn't there, or that a user broke, is rebuilt before it is needed.
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

// lost is as docs/design.md#the-life-of-a-node has it, by the clock of the controller when it decided. Not every controller has
// seen yet what an agent or a kubelet says now: certain leaves out nodes that may be coming back.
func (c *checks) lost(n *corev1.Node, p *controllerProcess, certain bool) bool {
	if !certain && c.outOfReach(n, p) {
		return true
	}
	since, err := time.Parse(time.RFC3339, annotation(n, marker.KeyIntentTime))
	if err != nil {
		return false
	}
	now := p.decided.at
	d := p.settings.Deadlines
	d.Reboot = actTime(n, p)
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
		back := answer != "" || n.Status.NodeInfo.BootID != annotation(n, marker.KeyRebootFrom)
		return back && (age >= d.Reboot || c.hooksSilent(n, p))
	case string(marker.ActionStabilize), string(marker.ActionResetState):
		most := d.Return
		if v := rulesOf(&p.decided.set, n).Verify; len(v.Pods) > 0 {
			most = min(most, v.Deadline)
		}
		return !certain && age >= p.settings.Soak+most
	}
	return false
}

// scope is a part of the fleet with a budget: all of it, a group, or a zone of either.
type scope struct {
	name  string
	limit policy.Limit
	in    func(n *corev1.Node) bool
}

// scopes are those that a node is in.
func scopes(set *policy.Settings, n *corev1.Node) []scope {
	in := allNodes
	all := []scope{{"the fleet", set.MaxUnavailable, in}}
	zones := func(name string, r *policy.Rules, in func(*corev1.Node) bool) {
		for _, t := range r.Topology {
			value := n.Labels[t.Key]
			all = append(all, scope{fmt.Sprintf("%s=%s of %s", t.Key, value, name), t.MaxUnavailable, func(n *corev1.Node) bool { return in(n) && n.Labels[t.Key] == value }})
		}
	}
	zones("the fleet", &set.Rules, in)
	if g := groupOf(set, n); g != nil {
		in = func(n *corev1.Node) bool { return groupOf(set, n) == g }
		all = append(all, scope{"group " + g.Name, g.MaxUnavailable, in})
		zones("group "+g.Name, &g.Rules, in)
	}
	return all
}

// takes holds new slots against every budget of the policy by which they are taken (S1): the list is written by
// comparing, so what is stored now is what was counted. Nodes that are gone count as they were, until their slots are
// freed.
func (c *checks) takes(actor string, before, after *corev1.ConfigMap) {
	w := c.w
	old, now := holders(before), holders(after)
	if old == nil || now == nil {
		return
	}
	p := w.controllerNamed(actor)
	d := &p.decided
	var disrupted, taken []*corev1.Node
	lost := map[*corev1.Node]bool{}
	for _, n := range append(w.server.Nodes(), c.gone(now)...) {
		_, slot := now[string(n.UID)]
		if !slot && (!has(n, marker.KeyDisruption) || c.tampered[string(n.UID)]) {
			continue
		}
		disrupted = append(disrupted, n)
		if has(n, marker.KeyDisruption) && (c.tampered[string(n.UID)] || c.lost(n, p, false)) || c.outOfReach(n, p) {
			lost[n] = true
		}
		if _, had := old[string(n.UID)]; slot && !had {
			taken = append(taken, n)
		}
	}
	ordinary := slices.DeleteFunc(slices.Clone(disrupted), func(n *corev1.Node) bool { return !c.surelyNot(d, n) })
	for _, n := range taken {
		c.count("S1")
		switch fresh, certain := c.freshSince(d, n, nil); {
		case !certain:
			continue
		case fresh:
			c.takesFresh(actor, d, n, disrupted, lost)
			continue
		}
		for _, s := range scopes(&d.set, n) {
			held, lent := 0, 0
			for _, other := range ordinary {
				if s.in(other) {
					held++
					if lost[other] {
						lent++
					}
				}
			}
			limit := most(s.limit, c.capacity(d.shown, func(n *corev1.Node) bool { fresh, certain := c.fresh(d, n); return s.in(n) && (!fresh || !certain) })) + min(lent, most(p.settings.MaxLost, len(w.server.Nodes())))
			if held > limit {
				w.violate("S1", "%s takes a slot for %s: %d nodes of %s are disrupted then, with a limit of %d", actor, n.Name, held, s.name, limit)
			}
			if others := c.othersOut(p, disrupted, s.in); held+others > limit {
				w.violate("S1", "%s takes a slot for %s: %d nodes of %s are disrupted then and %d are otherwise out of service, with a limit of %d",
					actor, n.Name, held, s.name, others, limit)
			}
		}
		c.domains(actor, "the fleet", &d.set.Rules, n, taken, ordinary, lost, allNodes)
		if g := groupOf(&d.set, n); g != nil {
			c.domains(actor, "group "+g.Name, &g.Rules, n, taken, ordinary, lost, func(n *corev1.Node) bool { return groupOf(&d.set, n) == g })
		}
	}
}

// othersOut counts the nodes that are out of service, though not by the operator, and that the process must
// count: it has been shown that, and it was so for less than ignoreAfter.
func (c *checks) othersOut(p *controllerProcess, disrupted []*corev1.Node, in func(*corev1.Node) bool) int {
	d := &p.decided
	if !d.set.CountUnavailable || !p.jumpedAt.IsZero() {
		return 0
	}
	count := 0
	for _, n := range c.w.server.Nodes() {
		if slices.Contains(disrupted, n) || c.tampered[string(n.UID)] || !in(n) {
			continue
		}
		stays := func(n *corev1.Node) bool {
			return labelled(n) && in(n) && out(n) && n.DeletionTimestamp == nil && !c.maybeFresh(d, n)
		}
		if c.always(n, d.shown, stays) && c.outFor(n) < d.set.IgnoreAfter {
			count++
		}
	}
	return count
}

// out reports whether a node is out of service, though not by us, and is not taken out of the cluster.
func out(n *corev1.Node) bool {
	leaves := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key != corev1.TaintNodeUnschedulable && !startsWith(t) })
	return (n.Spec.Unschedulable || !isReady(n)) && !leaves && !has(n, marker.KeyDisruption)
}

// outFor is for how long a node has been out, with every time in which it was that before: a process may not have
// noticed that it was back in between.
func (c *checks) outFor(n *corev1.Node) time.Duration {
	states := c.history[string(n.UID)]
	for _, s := range states {
		if s.node == nil || out(s.node) {
			return c.w.now.Sub(s.from)
		}
	}
	return 0
}

// gone are nodes that hold slots and are gone, as they were last.
func (c *checks) gone(held map[string]string) []*corev1.Node {
	var out []*corev1.Node
	for _, uid := range slices.Sorted(maps.Keys(held)) {
		states := c.history[uid]
		if last := len(states) - 1; last > 0 && states[last].node == nil {
			out = append(out, states[last-1].node)
		}
	}
	return out
}

// domains: a node whose zone has none disrupted only goes if not too many other zones have.
func (c *checks) domains(actor, name string, r *policy.Rules, n *corev1.Node, taken, disrupted []*corev1.Node, lost map[*corev1.Node]bool, in func(*corev1.Node) bool) {
	for _, t := range r.Topology {
		values := map[string]bool{}
		// A record that was meddled with may be one that a controller reads, or not: its zone may have begun.
		begun := slices.ContainsFunc(c.w.server.Nodes(), func(other *corev1.Node) bool {
			return in(other) && other.Labels[t.Key] == n.Labels[t.Key] && has(other, marker.KeyDisruption) && c.tampered[string(other.UID)]
		})
		for _, other := range disrupted {
			if !in(other) {
				continue
			}
			if !lost[other] {
				values[other.Labels[t.Key]] = true
			}
			// One that may be Lost may as well be back, and then its zone has begun.
			if other.Labels[t.Key] == n.Labels[t.Key] && !slices.Contains(taken, other) && (!lost[other] || !c.lost(other, c.w.controllerNamed(actor), true)) {
				begun = true
			}
		}
		if t.MaxDomains > 0 && !begun && len(values) > t.MaxDomains {
			c.w.violate("S1", "%s takes a slot for %s: nodes with %d values of %s of %s are disrupted then, with a limit of %d", actor, n.Name, len(values), t.Key, name, t.MaxDomains)
		}
	}
}

// holders reads a list of slots; nil: there is none that can be read.
func holders(cm *corev1.ConfigMap) map[string]string {
	if cm == nil {
		return nil
	}
	held := map[string]string{}
	if json.Unmarshal([]byte(cm.Data["slots"]), &held) != nil {
		return nil
	}
	return held
}
