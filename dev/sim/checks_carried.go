package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// outage is one disruption of a node.
type outage struct {
	// since is when it began, at which revision.
	since    time.Time
	revision int64
	// looked is the revision at which what the node carries was looked at before it began, or that at which it began.
	looked int64
	// empty is when nothing was left to evict for the first time; zero: something still is.
	empty time.Time
	// evicting: something was evicted.
	evicting bool
	// asked is the revision at which hooks were asked last; 0: none were.
	asked int64
}

// outage keeps account of what the operator and users do to a node that is disrupted.
func (c *checks) outage(actor string, controller bool, before, after *corev1.Node) {
	k := c.of(after)
	if has(after, marker.KeyDisruption) && !has(before, marker.KeyDisruption) {
		k.out = outage{since: c.w.now, revision: c.w.server.Revision(), looked: c.w.server.Revision()}
		if p := c.w.controllerNamed(actor); p != nil && carries(after) != nil {
			k.out.looked = p.checked[lookedFor{after.Name, fleet.CheckBaseline}].decided(p.decided.real).revision
		}
		c.look(after)
	}
	id := annotation(after, marker.KeyHookID)
	if id == annotation(before, marker.KeyHookID) || c.tampered[string(after.UID)] {
		return
	}
	if id == "" {
		return
	}
	if controller {
		c.asks(actor, after, id)
	}
	k.out.asked = c.w.server.Revision()
	if _, known := k.hookIDs[id]; !known {
		k.hookIDs[id] = c.w.now
	}
}

// asks: hooks are asked once by each id, only for a disrupted node, and before a reboot only once the node is drained.
func (c *checks) asks(actor string, n *corev1.Node, id string) {
	c.count("S2")
	k, p := c.of(n), c.w.controllerNamed(actor)
	switch _, known := k.hookIDs[id]; {
	case known:
		c.w.violate("S6", "%s asks hooks on %s by %s once more", actor, n.Name, id)
	case !has(n, marker.KeyDisruption):
		c.w.violate("S6", "%s asks hooks on %s, which is not disrupted", actor, n.Name)
	case marker.Action(annotation(n, marker.KeyActionWanted)).Stages() && k.out.empty.IsZero() && !inPlace(n) && !c.leftInPlace(p, n, p.decided.shown):
		c.w.violate("S2", "%s asks hooks on %s, which is not drained", actor, n.Name)
	}
}

// emptied notes that nothing is left to evict on a node that a pod has left.
func (c *checks) emptied(before, after *corev1.Pod) {
	if before == nil || after != nil && evictable(after) {
		return
	}
	if n := c.w.server.Node(before.Spec.NodeName); n != nil && has(n, marker.KeyDisruption) {
		c.look(n)
	}
}

func (c *checks) look(n *corev1.Node) {
	if k := c.of(n); k.out.empty.IsZero() && !slices.ContainsFunc(c.w.server.PodsOn(n.Name), evictable) {
		k.out.empty = c.w.now
	}
}

// couldGo: no node is cordoned that, by a look at it, can't be drained now (S6).
func (c *checks) couldGo(actor string, n *corev1.Node) {
	p := c.w.controllerNamed(actor)
	rules := rulesOf(&p.decided.set, n)
	if !rules.Eviction.Predict || rules.Eviction.Force || inPlace(n) || c.leftInPlace(p, n, p.decided.shown) {
		return
	}
	c.count("S6")
	look := p.foreseen[n.Name].decided(p.decided.real)
	looked := look.revision
	if looked == 0 {
		c.w.violate("S6", "%s cordons %s and has not looked at its pods", actor, n.Name)
		return
	}
	if age := p.decided.real.Sub(look.at); age > freshFor+passTime && !p.jumped {
		c.w.violate("S6", "%s cordons %s by what it saw %s ago", actor, n.Name, age)
	}
	for _, pod := range c.w.server.PodsOn(n.Name) {
		t := c.carried.pods[string(pod.UID)]
		levels := c.carried.budgets[pod.Labels[appKey]]
		if evictable(pod) && pod.DeletionTimestamp == nil && t.ready && t.since <= looked && len(levels) > 0 && mostSince(levels, looked) == 0 {
			c.w.violate("S6", "%s cordons %s, and the budget of %s has let nothing go since it looked", actor, n.Name, pod.Name)
		}
	}
}

// freshFor is how long a look ahead is good for.
const freshFor = 30 * time.Second

// carries is what a record says that a node's workloads were.
func carries(n *corev1.Node) map[string]int {
	var d struct {
		Workloads map[string]int `json:"workloads"`
	}
	_ = json.Unmarshal([]byte(annotation(n, marker.KeyDisruption)), &d)
	return d.Workloads
}

// careless reports whether some policy ignores workloads: which node went by which policy is hard to tell.
func (w *world) careless() bool {
	return slices.ContainsFunc(w.scenario.Policies, func(r Rules) bool {
		return slices.ContainsFunc(r, func(line string) bool { return strings.Contains(line, "onWorkloads: ignore") })
	})
}

const ofReplicaSet = "ReplicaSet/" + appsNamespace + "/"

// baselined: before anything is evicted it was noted what has Ready pods on the node (S7).
func (c *checks) baselined(actor string, p *corev1.Pod) {
	n := c.w.server.Node(p.Spec.NodeName)
	if n == nil || !has(n, marker.KeyDisruption) || c.tampered[string(n.UID)] || c.w.careless() {
		return
	}
	k := c.of(n)
	if k.out.evicting {
		return
	}
	k.out.evicting = true
	c.count("S7")
	stands := carries(n)
	for _, pod := range append(c.w.server.PodsOn(n.Name), p) {
		app := pod.Labels[appKey]
		levels := c.carried.workloads[app]
		t := c.carried.pods[string(pod.UID)]
		least, most := rangeSince(levels, k.out.looked)
		if least == 0 || !t.ready || t.since > k.out.looked || pod.DeletionTimestamp != nil {
			continue
		}
		noted, ok := stands[ofReplicaSet+app]
		if !ok {
			c.w.violate("S7", "%s evicts from %s and has not noted that %s has Ready pods there", actor, n.Name, app)
		} else if noted < least || noted > most {
			c.w.violate("S7", "%s has noted for %s that %s has %d Ready pods, and it had %d to %d", actor, n.Name, app, noted, least, most)
		}
	}
}

// workloadsWell: no update is called a success whose workloads are worse than before (S7).
func (c *checks) workloadsWell(actor string, n *corev1.Node) {
	if c.w.careless() {
		return
	}
	looked := c.w.controllerNamed(actor).checked[lookedFor{n.Name, fleet.CheckWorkloads}][0].revision
	for name, before := range carries(n) {
		a := c.w.cluster.app(strings.TrimPrefix(name, ofReplicaSet))
		if had := min(before, a.replicas); had > 0 && (looked < c.of(n).out.revision || mostSince(c.carried.workloads[a.name], looked) < had) {
			c.w.violate("S7", "%s calls %s updated, and %s, which had %d Ready pods, has less since it looked", actor, n.Name, a.name, had)
		}
	}
}

// carriesWell: a node takes pods again once those that it must have are Ready on it, and hooks have answered (S7).
func (c *checks) carriesWell(actor string, n *corev1.Node) {
	p := c.w.controllerNamed(actor)
	rules := rulesOf(&p.decided.set, n)
	c.hooksAnswered("S7", actor, "takes %s for back", rules.Hooks.BeforeUncordon, n)
	if len(rules.Verify.Pods) == 0 {
		return
	}
	looked := p.checked[lookedFor{n.Name, fleet.CheckPods}][0].revision
	well := false
	for _, pod := range c.w.server.PodsOn(n.Name) {
		if pod.Labels[appKey] == daemonApp {
			t := c.carried.pods[string(pod.UID)]
			well = well || t.ready || t.since > looked
		}
	}
	if looked < c.of(n).out.revision || !well {
		c.w.violate("S7", "%s takes %s for back, and the pod that must be Ready there is not", actor, n.Name)
	}
}

// detached: no node is rebooted whose volumes are still attached, but for those that had their time (S2).
func (c *checks) detached(actor string, n *corev1.Node) {
	w, k := c.w, c.of(n)
	p := w.controllerNamed(actor)
	rules := rulesOf(&p.decided.set, n)
	if rules.Volumes.Wait == 0 || c.tampered[string(n.UID)] {
		return
	}
	c.count("S2")
	looked := p.checked[lookedFor{n.Name, fleet.CheckVolumes}][0].revision
	if looked < k.out.revision {
		// This leader looked for pods alone, unless another one saw all volumes detached before hooks were asked.
		looked = p.looked[n.Name]
		if k.out.asked > k.out.revision {
			looked = min(looked, k.out.asked)
		}
	}
	for _, a := range w.server.VolumeAttachments() {
		since, attached := c.carried.attached[a.Name]
		if a.Spec.NodeName != n.Name || !attached || since > looked {
			continue
		}
		waited := w.now.Sub(k.out.empty)
		// Once hooks were asked, volumes had been waited for by the policy of then.
		lenient := k.out.asked > k.out.revision && w.lenient()
		if k.out.empty.IsZero() || !lenient && (rules.Volumes.OnTimeout == policy.Abort || waited < rules.Volumes.Wait && !c.anyJumped()) {
			w.violate("S2", "%s asks %s to reboot, and %s is attached there, %s after it was drained", actor, n.Name, a.Name, waited)
		}
	}
}

// lenient reports whether some policy lets volumes stay attached after a while, as those without a word on them do.
func (w *world) lenient() bool {
	return slices.ContainsFunc(w.scenario.Policies, func(r Rules) bool {
		at := slices.IndexFunc(r, func(line string) bool { return strings.HasPrefix(line, "volumes:") })
		return at < 0 || strings.Contains(r[at], "ignore")
	})
}

// takenAway reports whether a taint says that an autoscaler takes a node out of the cluster. It shares no code with
// the operator.
func takenAway(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "karpenter.sh/disrupted"
	})
}

// inOurHands is longer than all that a disruption may wait for, one after the other.
const inOurHands = 75 * time.Minute

// stubbornFor is longer than that.
const stubbornFor = 100 * time.Minute

// isLost reports whether an annotation says that a node is Lost.
func isLost(n *corev1.Node) bool {
	return strings.HasPrefix(annotation(n, marker.KeyWaitingFor), string(plan.ReasonLost))
}

// inTime: once everything is put right only a Lost node stays disrupted for long (L2).
func (c *checks) inTime() {
	c.count("L2")
	for _, n := range c.w.server.Nodes() {
		if !has(n, marker.KeyDisruption) || isLost(n) {
			continue
		}
		if since := maxTime(c.of(n).out.since, c.w.calmSince); c.w.now.Sub(since) > inOurHands {
			c.w.violate("L2", "%s has been disrupted for %s since everything was put right: %s", n.Name, c.w.now.Sub(since), annotation(n, marker.KeyWaitingFor))
		}
	}
}
