package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// checks hold the promises against every write and every reboot. They look at what is stored and at the
// machines, never at what a process believes, and read annotations by themselves.
type checks struct {
	w         *world
	violation string
	// writes counts the operator's writes of Nodes, ConfigMaps and pods, events its Events: at rest there are none.
	writes, events int
	// resting: nothing is to be written any more, so whatever is goes into the trace.
	resting bool
	// counted is how often each promise was looked at.
	counted map[string]int

	nodes map[string]*watched
	// givenBack is when the last disruption of a node ended, by its name.
	givenBack map[string]time.Time
	// came is the revision at which a pod came, bound to its node, by UID.
	came map[string]int64
	// tampered are nodes, by UID, into whose marks users wrote: what stands isn't what was agreed.
	tampered map[string]bool
	// taken is when steps that Nodes show were taken, and once are those that an Event has told of; by UID and id.
	taken map[string]time.Time
	once  map[string]bool
	// reasons are those that users could read, by machine.
	reasons map[string]map[plan.Reason]bool
	// held is the most nodes that were disrupted at once.
	held int
	// times are when each revision was written, from that of the first write on.
	times []time.Time
	// history is what stood of each node, by UID, and known when a version was first seen on any.
	history map[string][]stood
	known   map[string]time.Time
	// carried is what nodes carry, and how it is.
	carried carried
	// went are the machines that rebooted into each version.
	went map[string]map[string]bool
	// made counts the pods that were made for each intent of a Node.
	made map[string]int
}

// watched is what is known of one Node object, by UID.
type watched struct {
	// ours: the cordon is the operator's; theirs: it is not.
	ours, theirs bool
	// blurred: it is unknown whether the cordon is the operator's.
	blurred bool
	// others are the marks for others that are the operator's.
	others map[string]otherMark
	// out is the disruption that the node is in, or was in last.
	out outage
	// blamed is since when a version is to blame for a failure here.
	blamed map[string]time.Time
	// hookIDs are when hooks were asked by which id.
	hookIDs map[string]time.Time
	// readySince is since when its Ready condition has been True; zero: it isn't.
	readySince time.Time
	// uncordoned are intents whose cordon, or Node, was removed after the point of no return.
	uncordoned map[string]bool
	// begun are intents whose `busy` the proxy accepted.
	begun map[string]bool
	// failed are intents that were answered with an error.
	failed map[string]bool
	// requests are the attempts that took the node out of service for each request of a user, rebooted the reboots for it;
	// again are ids that a user gave more than once.
	requests, rebooted map[string]int
	again              map[string]bool
	// left: the node was taken out of the operator's care at some time. unlabelled: a user did that by removing the label
	// from a node that showed that it was in that care.
	left, unlabelled bool
	// taintDue is since when its taint of new nodes has been due to go at each look; zero: it is not.
	taintDue time.Time
}

func (c *checks) of(n *corev1.Node) *watched {
	k := c.nodes[string(n.UID)]
	if k == nil {
		k = &watched{uncordoned: map[string]bool{}, begun: map[string]bool{}, failed: map[string]bool{}, hookIDs: map[string]time.Time{}, blamed: map[string]time.Time{},
			requests: map[string]int{}, rebooted: map[string]int{}, again: map[string]bool{}}
		c.nodes[string(n.UID)] = k
	}
	return k
}

func (c *checks) count(promise string) { c.counted[promise]++ }

func annotation(n *corev1.Node, k marker.Key) string { return n.Annotations[string(k)] }

func has(n *corev1.Node, k marker.Key) bool {
	_, ok := n.Annotations[string(k)]
	return ok
}

// told notes a reason that users can read.
func (c *checks) told(node string, r plan.Reason) {
	name := node
	if m := c.w.cluster.machineOf(node); m != nil {
		name = m.name
	}
	if c.reasons[name] == nil {
		c.reasons[name] = map[plan.Reason]bool{}
	}
	c.reasons[name][r] = true
}

// wrote is told of every write.
func (c *checks) wrote(actor string, r apiserver.Request, before, after runtime.Object) {
	w := c.w
	c.times = append(c.times, w.now)
	controller := strings.HasPrefix(actor, "controller-")
	ran := strings.HasPrefix(actor, "runner-")
	if (controller || ran || actor == "proxy") && r.Resource != "leases" {
		c.writes++
		if c.resting {
			c.w.note(actor, "writes %s %v", r, changes(before, after))
		}
	}
	c.carried.wrote(w.server.Revision(), before, after)
	switch r.Resource {
	case "configmaps":
		if controller {
			c.slots(actor)
			b, _ := before.(*corev1.ConfigMap)
			a, _ := after.(*corev1.ConfigMap)
			c.takes(actor, b, a)
		}
	case "nodes":
		b, _ := before.(*corev1.Node)
		a, _ := after.(*corev1.Node)
		c.remember(b, a)
		c.node(actor, controller, b, a)
	case "pods":
		b, _ := before.(*corev1.Pod)
		a, _ := after.(*corev1.Pod)
		if b == nil && a != nil {
			c.came[string(a.UID)] = w.server.Revision()
		}
		if r.Namespace == plansNamespace {
			c.planPod(actor, r, b, a)
			w.planPodWrote(b, a)
			break
		}
		if r.Namespace == namespace {
			w.runnerPodWrote(b, a)
		}
		if a == nil && b != nil {
			w.cluster.podGone(b)
		}
		if a != nil && a.DeletionTimestamp != nil && (b == nil || b.DeletionTimestamp == nil) {
			w.cluster.terminating(a)
		}
		if controller && a != nil && a.DeletionTimestamp != nil && b != nil && b.DeletionTimestamp == nil {
			c.evicted(actor, b)
			c.baselined(actor, b)
			if r.Subresource == "" {
				c.deleted(actor, b)
			}
		}
		c.emptied(b, a)
	}
	for _, f := range w.watches {
		if f.sel.Resource == r.Resource {
			f.schedule()
		}
	}
}

// evicted: only pods of a disrupted node, and of those only what a drain may take.
func (c *checks) evicted(actor string, p *corev1.Pod) {
	c.count("S2")
	c.count("S5")
	n := c.w.server.Node(p.Spec.NodeName)
	if !evictable(p) {
		c.w.violate("S5", "%s evicts %s/%s, which is none of a drain's", actor, p.Namespace, p.Name)
	}
	// One pass in flight may go on for its time after a node was given back.
	if n != nil && !has(n, marker.KeyDisruption) && c.w.now.Sub(c.givenBack[n.Name]) > passTime+passPause {
		c.w.violate("S5", "%s evicts %s/%s from node %s, which is not disrupted", actor, p.Namespace, p.Name, n.Name)
	}
}

// deleted: past the eviction API nothing goes unless some policy says force, and not before the drain's own deadline.
func (c *checks) deleted(actor string, p *corev1.Pod) {
	n, w := c.w.server.Node(p.Spec.NodeName), c.w
	c.count("S2")
	said := slices.ContainsFunc(w.scenario.Policies, func(r Rules) bool { return slices.Contains(r, "drain: "+forceful) })
	if !said {
		w.violate("S2", "%s deletes %s/%s, and no policy says force", actor, p.Namespace, p.Name)
	}
	var d struct {
		Since time.Time `json:"since"`
	}
	if n == nil || json.Unmarshal([]byte(annotation(n, marker.KeyDisruption)), &d) != nil || c.tampered[string(n.UID)] || w.controllerNamed(actor).jumped {
		return
	}
	if since := w.now.Sub(d.Since); since < w.settings.Drain {
		w.violate("S2", "%s deletes %s/%s after %s, before the drain's deadline", actor, p.Namespace, p.Name, since)
	}
}

func (c *checks) node(actor string, controller bool, before, after *corev1.Node) {
	w := c.w
	if after == nil {
		w.note(actor, "node %s is deleted", before.Name)
		c.givenBack[before.Name] = w.now
		return
	}
	k := c.of(after)
	if before == nil {
		w.note(actor, "node %s is registered", after.Name)
	}
	if ready := isReady(after); !ready {
		k.readySince = time.Time{}
	} else if k.readySince.IsZero() || before != nil && transition(before) != transition(after) {
		k.readySince = w.now
	}
	if before == nil {
		return
	}
	if m := momentOf(before, after); m != "" && len(w.awaited) > 0 {
		w.moment(after.Name, m)
	}
	c.of(after).left = c.of(after).left || !labelled(after)
	c.othersMarked(actor, controller, before, after)
	c.labels(actor, controller, before, after)
	c.tainted(actor, controller, before, after)
	c.outage(actor, controller, before, after)
	c.blame(before, after)
	w.hooked(before, after)
	switch {
	case actor == "proxy":
		c.report(before, after)
	case strings.HasPrefix(actor, "runner-"):
		c.ranReport(actor, before, after)
	case controller:
		c.decided(actor, before, after)
	case actor == people:
		c.touched(before, after)
	}
}

func transition(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// touched keeps account of what users did to a node.
func (c *checks) touched(before, after *corev1.Node) {
	k := c.of(after)
	if before.Spec.Unschedulable == after.Spec.Unschedulable {
		return
	}
	if after.Spec.Unschedulable {
		k.theirs = true
		if d := annotation(after, marker.KeyDisruption); d != "" && !strings.Contains(d, `"soak"`) {
			// Our record says that the cordon is ours, and theirs looks the same.
			k.blurred = true
		}
		return
	}
	k.ours, k.theirs = false, false
	if id := annotation(after, marker.KeyIntentID); annotation(after, marker.KeyActionWanted) == string(marker.ActionRebootUpdate) && annotation(after, marker.KeyActiveID) == id {
		// Past the point of no return the reboot can't be held back any more.
		k.uncordoned[id] = true
	}
}

func changes(before, after runtime.Object) []string {
	b, _ := before.(*corev1.Node)
	a, ok := after.(*corev1.Node)
	if !ok || b == nil || a == nil {
		return nil
	}
	keys := changedKeys(b, a)
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s: %q to %q", k, b.Annotations[k], a.Annotations[k])
	}
	return keys
}

// changedKeys are the annotations that differ.
func changedKeys(before, after *corev1.Node) []string {
	var keys []string
	for k, v := range after.Annotations {
		if old, ok := before.Annotations[k]; !ok || old != v {
			keys = append(keys, k)
		}
	}
	for k := range before.Annotations {
		if _, ok := after.Annotations[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// explained: every managed node has a reason from the closed list (S9).
func (c *checks) explained(out plan.Plan) {
	c.count("S9")
	standing := map[string]plan.Decision{}
	for _, s := range out.Nodes {
		standing[s.Node] = s
	}
	for _, n := range c.w.server.Nodes() {
		_, labelled := n.Labels[string(marker.KeyInterfaceVersion)]
		if !labelled && !has(n, marker.KeyDisruption) {
			continue
		}
		s, ok := standing[n.Name]
		if !ok || s.Reason == "" || s.Message.String() == "" || !slices.Contains(plan.Reasons(), s.Reason) {
			c.w.violate("S9", "nothing explains where node %s stands: %+v", n.Name, s)
		}
	}
}
