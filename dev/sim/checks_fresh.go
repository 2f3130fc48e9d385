package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// mostUntainted is how often the operator takes the taint of new nodes off a node.
const mostUntainted = 3

// freshMark is what the annotation says of the taint.
type freshMark struct {
	Why   string `json:"why"`
	Times int    `json:"times"`
}

func freshMarkOf(n *corev1.Node) freshMark {
	var m freshMark
	_ = json.Unmarshal([]byte(annotation(n, marker.KeyFresh)), &m)
	return m
}

// goesFresh reports whether a record says that the node was taken out of service as a new one.
func goesFresh(n *corev1.Node) bool {
	var d struct {
		Fresh bool `json:"fresh"`
	}
	_ = json.Unmarshal([]byte(annotation(n, marker.KeyDisruption)), &d)
	return d.Fresh
}

// clockGrain is how far apart the times may be at which a pass reads its clock.
const clockGrain = 2 * time.Second

// fresh reports whether a node goes by the rules of new ones, as it stood at some time, for a pass that decides so. Where
// that hangs on a second, or on marks into which users wrote, it isn't certain.
func (c *checks) fresh(d *decision, n *corev1.Node) (fresh, certain bool) {
	switch {
	case c.tampered[string(n.UID)]:
		return false, false
	case has(n, marker.KeyDisruption):
		return goesFresh(n), true
	case !isTainted(n), n.Labels[string(marker.KeyInterfaceVersion)] != "2.0.0", has(n, marker.KeyFresh), len(history(n)) > 0:
		return false, true
	}
	left := n.CreationTimestamp.Add(d.set.FreshNodes.Deadline).Sub(d.at)
	return left > 0, left.Abs() > clockGrain
}

// freshSince is the same for all that the deciding process may have been shown of the node. What was written just now, it
// wasn't shown.
func (c *checks) freshSince(d *decision, n, written *corev1.Node) (fresh, certain bool) {
	first := true
	certain = true
	c.since(string(n.UID), d.shown, func(state *corev1.Node) bool {
		if state == nil || state == written {
			return true
		}
		is, sure := c.fresh(d, state)
		certain = certain && sure && (first || is == fresh)
		first, fresh = false, is
		return true
	})
	return fresh, certain && !first
}

// surelyFresh and surelyNot leave out nodes of which it isn't certain. A node that was gone already counts in both rooms.
func (c *checks) surelyFresh(d *decision, n *corev1.Node) bool {
	fresh, certain := c.freshSince(d, n, nil)
	return fresh && certain || c.wasGone(d, n)
}

func (c *checks) surelyNot(d *decision, n *corev1.Node) bool {
	fresh, certain := c.freshSince(d, n, nil)
	return !fresh && certain || c.wasGone(d, n)
}

// wasGone reports whether the deciding process knew the slot of a node, and was shown that the node is gone.
func (c *checks) wasGone(d *decision, n *corev1.Node) bool {
	return c.since(string(n.UID), d.shown, func(state *corev1.Node) bool { return state == nil })
}

// maybeFresh reports whether the node, as it stood, may have gone by the rules of new ones.
func (c *checks) maybeFresh(d *decision, n *corev1.Node) bool {
	fresh, certain := c.fresh(d, n)
	return fresh || !certain
}

// takesFresh holds the slot of a new node against the limit of these alone (S1).
func (c *checks) takesFresh(actor string, d *decision, n *corev1.Node, disrupted []*corev1.Node, lost map[*corev1.Node]bool) {
	c.count(FreshTaken)
	held, lent := 0, 0
	for _, other := range disrupted {
		if c.surelyFresh(d, other) {
			held++
			if lost[other] {
				lent++
			}
		}
	}
	all := func(n *corev1.Node) bool { return true }
	limit := most(d.set.FreshNodes.MaxUnavailable, c.capacity(d.shown, all)) + min(lent, most(d.set.MaxLost, len(c.w.server.Nodes())))
	if held > limit {
		c.w.violate("S1", "%s takes a slot for %s: %d new nodes are disrupted then, with a limit of %d", actor, n.Name, held, limit)
	}
}

// cordonFresh holds the cordon of a new node against its limit (S1), and that it is marked as one, for only by its mark
// it is told from others later; and that it goes to a version that its group has run (S6).
func (c *checks) cordonFresh(actor string, after *corev1.Node, held, lent int) {
	w, p := c.w, c.w.controllerNamed(actor)
	d := &p.decided
	fresh, certain := c.freshSince(d, after, after)
	switch marked := goesFresh(after); {
	case certain && fresh != marked:
		w.violate("S1", "%s cordons %s and says fresh: %t, and it is: %t", actor, after.Name, marked, fresh)
	case !marked:
		return
	}
	c.count(FreshTaken)
	limit := 0
	for _, other := range w.controllers {
		limit = max(limit, most(other.decided.set.FreshNodes.MaxUnavailable, len(w.server.Nodes())))
	}
	if limit += lent; held > limit {
		w.violate("S1", "%s cordons %s: %d new nodes are disrupted, with a limit of %d", actor, after.Name, held, limit)
	}
	if why := c.freshUnproven(d, after); why != "" {
		w.violate("S6", "%s cordons %s, which is new, %s", actor, after.Name, why)
	}
}

// freshUnproven says why a new node may not go to its target: no other node of its group has run it, by its kubelet's and
// its agent's word, and it isn't pinned to it.
func (c *checks) freshUnproven(d *decision, n *corev1.Node) string {
	version := annotation(n, marker.KeyTargetVersion)
	if pin := rulesOf(&d.set, n).Versions.Pin; cycles(n) || pin != "" && pin == version || c.tampered[string(n.UID)] {
		return ""
	}
	for uid, states := range c.history {
		if uid == string(n.UID) {
			continue
		}
		for _, s := range states {
			if s.node != nil && groupOf(&d.set, s.node) == groupOf(&d.set, n) && runsBoth(s.node, version) && !isTainted(s.node) {
				return ""
			}
		}
	}
	return fmt.Sprintf("although no other node of its group has run %s", version)
}

// runsBoth reports whether kubelet and agent say that a node runs a version.
func runsBoth(n *corev1.Node, version string) bool {
	return annotation(n, marker.KeyCurrentVersion) == version && strings.HasPrefix(n.Status.NodeInfo.OSImage, "Bottlerocket OS "+version+" ")
}

// tainted holds that of a node's taints the operator takes off none but that of new nodes, and puts none on: all others
// stay byte for byte (S5). It keeps account of that in the same patch, and a node in its hands keeps the taint until its
// cordon goes.
func (c *checks) tainted(actor string, controller bool, before, after *corev1.Node) {
	if actor == people || actor == "kubernetes" || equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) {
		return
	}
	w := c.w
	c.count("S5")
	c.count(Untainted)
	left := slices.DeleteFunc(slices.Clone(before.Spec.Taints), func(t corev1.Taint) bool { return t.Key == freshKey && t.Effect == corev1.TaintEffectNoSchedule })
	was, is := freshMarkOf(before), freshMarkOf(after)
	switch {
	case !controller:
		w.violate("S5", "%s changes the taints of %s", actor, after.Name)
	case !equality.Semantic.DeepEqual(left, after.Spec.Taints):
		w.violate("S5", "%s changes the taints of %s from %v to %v", actor, after.Name, before.Spec.Taints, after.Spec.Taints)
	case !labelled(before) && !marked(before):
		w.violate("S5", "%s takes the taint off %s, which is not in its care", actor, after.Name)
	case c.tampered[string(after.UID)]:
	case has(after, marker.KeyDisruption) && after.Spec.Unschedulable && !c.of(after).theirs && !soaks(after):
		w.violate("S5", "%s takes the taint off %s, which it keeps out of service", actor, after.Name)
	case !labelled(before):
		// It leaves, and with all marks goes what is known of its taint.
	case is.Times != was.Times+1 || is.Why == "" || is.Times > mostUntainted:
		w.violate("S5", "%s takes the taint off %s for the %d. time, and notes %+v", actor, after.Name, was.Times+1, is)
	}
	w.note(actor, "takes the taint off %s: %s", after.Name, is.Why)
}

// marked reports whether anything on a node tells of the operator.
func marked(n *corev1.Node) bool {
	for k := range n.Annotations {
		if strings.HasPrefix(k, marker.Prefix) {
			return true
		}
	}
	return false
}

// soaks reports whether a disrupted node is in service again.
func soaks(n *corev1.Node) bool {
	return strings.Contains(annotation(n, marker.KeyDisruption), `"soak"`)
}

// Intervals at which taints are looked at, and how long one may stay that is to go.
const (
	taintLook  = 10 * time.Second
	taintGrace = 2 * time.Minute
)

// watchTaints looks at the taints of new nodes again and again (L2).
func (w *world) watchTaints() {
	w.checks.overdueTaints()
	w.after(taintLook, w.watchTaints)
}

// overdueTaints: while a controller leads, is shown what happens and can write, a taint that is to go goes soon (L2).
func (c *checks) overdueTaints() {
	w := c.w
	leader := w.unhindered()
	for _, n := range w.server.Nodes() {
		k := c.of(n)
		if leader == nil || !c.taintDue(leader, n) {
			k.taintDue = time.Time{}
			continue
		}
		c.count("L2")
		if k.taintDue.IsZero() {
			k.taintDue = w.now
		}
		if late := w.now.Sub(k.taintDue); late > taintGrace {
			w.violate("L2", "%s has the taint of new nodes, %s after it was to go: %s", n.Name, late, annotation(n, marker.KeyWaitingFor))
		}
	}
}

// taintDue reports whether nothing keeps the taint on a node: it is too old, was updated before, had the taint taken off
// before, or is paused. From the beginning of its reboot it keeps it until that has ended, as one that is disrupted and not
// new does.
func (c *checks) taintDue(leader *controllerProcess, n *corev1.Node) bool {
	w := c.w
	switch {
	case !isTainted(n), !labelled(n), c.tampered[string(n.UID)], freshMarkOf(n).Times >= mostUntainted:
		return false
	}
	if m := w.cluster.machineOf(n.Name); m == nil || w.now.Before(m.unwritten.until) {
		return false
	}
	if u := w.unreached[n.Name]; u != nil && (u.ended.IsZero() || w.now.Sub(u.ended) < 10*time.Minute) {
		return false
	}
	if has(n, marker.KeyDisruption) && !soaks(n) {
		asked := marker.Action(annotation(n, marker.KeyActionWanted))
		begun := asked == marker.ActionRebootUpdate && annotation(n, marker.KeyActiveID) == annotation(n, marker.KeyIntentID)
		if !goesFresh(n) || begun || asked != marker.ActionRebootUpdate && !asked.Stages() || n.Status.NodeInfo.BootID != annotation(n, marker.KeyRebootFrom) {
			return false
		}
	}
	old := w.now.Sub(n.CreationTimestamp.Time) > leader.decided.set.FreshNodes.Deadline
	return old || has(n, marker.KeyFresh) || len(history(n)) > 0 || has(n, marker.KeyPaused) && !has(n, marker.KeyDisruption) || n.Labels[string(marker.KeyInterfaceVersion)] != "2.0.0"
}

// unhindered is the leader, if nothing keeps it from its work now; nil if there is none.
func (w *world) unhindered() *controllerProcess {
	for _, p := range w.controllers {
		if !p.leading || !p.process.runs() {
			continue
		}
		disturbed := false
		for _, until := range p.process.net.until {
			disturbed = disturbed || !w.calm && w.now.Before(until)
		}
		if disturbed || p.process.stopped || p.process.clock != 0 || w.now.Before(w.apiDown) || w.now.Sub(p.renewed) > renewDeadline ||
			w.now.Sub(p.nodes.shown()) > taintLook || p.decided.at.IsZero() {
			return nil
		}
		return p
	}
	return nil
}

// taintLeft says which labelled node still has the taint of new nodes in the end.
func (w *world) taintLeft(n *corev1.Node) string {
	if !isTainted(n) || freshMarkOf(n).Times >= mostUntainted {
		return ""
	}
	return n.Name + " has the taint of new nodes"
}

// windowHolds reports whether a window that is shut, as why says, holds a start on a node: no new one, but a freeze does.
func (c *checks) windowHolds(d *decision, n *corev1.Node, why string) bool {
	return why == inFreeze || !c.maybeFresh(d, n)
}

// freshStarts holds the staging on a new node against its rules (S6).
func (c *checks) freshStarts(d *decision, n, written *corev1.Node) string {
	if fresh, certain := c.freshSince(d, n, written); !fresh || !certain {
		return ""
	}
	if d.set.FreshNodes.MaxUnavailable == policy.Count(0) {
		return "although no new node may go"
	}
	return c.freshUnproven(d, n)
}
