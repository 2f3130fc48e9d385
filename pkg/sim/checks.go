package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/sim/apiserver"
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
	// tampered are nodes, by UID, into whose marks people wrote: what stands isn't what was agreed.
	tampered map[string]bool
	// reasons are those that people could read, by machine.
	reasons map[string]map[policy.Reason]bool
	// held is the most nodes that were in our hands at once.
	held int
}

// watched is what is known of one Node object, by UID.
type watched struct {
	name string
	// ours: the cordon that stands is the operator's; theirs: it is somebody else's.
	ours, theirs bool
	// blurred: who the cordon belongs to can't be told by anybody any more.
	blurred bool
	// readySince is since when its Ready condition has been True; zero: it isn't.
	readySince time.Time
	// handsOff are intents whose cordon, or Node, somebody took away after the point of no return.
	handsOff map[string]bool
	// begun are intents whose `busy` the proxy accepted.
	begun map[string]bool
	// failed are intents that were answered with an error.
	failed map[string]bool
}

func (c *checks) of(n *corev1.Node) *watched {
	k := c.nodes[string(n.UID)]
	if k == nil {
		k = &watched{name: n.Name, handsOff: map[string]bool{}, begun: map[string]bool{}, failed: map[string]bool{}}
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

// told notes a reason that people can read.
func (c *checks) told(node string, r policy.Reason) {
	name := node
	if m := c.w.cluster.machineOf(node); m != nil {
		name = m.name
	}
	if c.reasons[name] == nil {
		c.reasons[name] = map[policy.Reason]bool{}
	}
	c.reasons[name][r] = true
}

// wrote is told of every write.
func (c *checks) wrote(actor string, r apiserver.Request, before, after runtime.Object) {
	w := c.w
	controller := strings.HasPrefix(actor, "controller-")
	if (controller || actor == "proxy") && r.Resource != "leases" {
		c.writes++
		if c.resting {
			c.w.note(actor, "writes %s %v", r, changes(before, after))
		}
	}
	switch r.Resource {
	case "configmaps":
		if controller {
			c.slots(actor)
		}
	case "nodes":
		b, _ := before.(*corev1.Node)
		a, _ := after.(*corev1.Node)
		c.node(actor, controller, b, a)
	case "pods":
		b, _ := before.(*corev1.Pod)
		a, _ := after.(*corev1.Pod)
		if b == nil && a != nil {
			c.came[string(a.UID)] = w.server.Revision()
		}
		if a != nil && a.DeletionTimestamp != nil && (b == nil || b.DeletionTimestamp == nil) {
			w.cluster.terminating(a)
		}
		if controller && a != nil && a.DeletionTimestamp != nil && b != nil && b.DeletionTimestamp == nil {
			c.evicted(actor, b)
		}
	}
	for _, f := range w.watches {
		if f.sel.Resource == r.Resource {
			f.schedule()
		}
	}
}

// evicted: nobody's pods but those of a node in our hands, and of those only what a drain may take.
func (c *checks) evicted(actor string, p *corev1.Pod) {
	c.count("S2")
	c.count("S5")
	n := c.w.server.Node(p.Spec.NodeName)
	if !evictable(p) {
		c.w.violate("S5", "%s evicts %s/%s, which is none of a drain's", actor, p.Namespace, p.Name)
	}
	// One pass in flight may go on for its ten seconds after a node was given back.
	if n != nil && !has(n, marker.KeyDisruption) && c.w.now.Sub(c.givenBack[n.Name]) > passTime+passPause {
		c.w.violate("S5", "%s evicts %s/%s from node %s, which is not in our hands", actor, p.Namespace, p.Name, n.Name)
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
	switch {
	case actor == "proxy":
		c.report(before, after)
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

// touched keeps account of what people did to a node.
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
		// Past the point of no return nobody can hold the reboot back any more.
		k.handsOff[id] = true
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

var agentKeys = []marker.Key{marker.KeyActiveID, marker.KeyActionState, marker.KeyMessage, marker.KeyAvailableVersion, marker.KeyCurrentVersion,
	marker.KeyBootID, marker.KeyProtocol, marker.KeyOperatorVersion, marker.KeyActionActive, marker.KeyUpdateAvailable}

// report holds an agent's write against S3 and S4.
func (c *checks) report(before, after *corev1.Node) {
	w := c.w
	c.count("S4")
	for _, key := range changedKeys(before, after) {
		if !slices.Contains(agentKeys, marker.Key(key)) {
			w.violate("S4", "the agent of %s wrote %s", after.Name, key)
		}
	}
	if before.Spec.Unschedulable != after.Spec.Unschedulable {
		w.violate("S4", "the agent of %s changed the cordon", after.Name)
	}
	id, state := annotation(after, marker.KeyActiveID), annotation(after, marker.KeyActionState)
	if id == annotation(before, marker.KeyActiveID) && state == annotation(before, marker.KeyActionState) {
		return
	}
	w.note("agent", "%s: %s to %s %s", after.Name, state, annotation(after, marker.KeyActionWanted), annotation(after, marker.KeyMessage))
	if id != annotation(after, marker.KeyIntentID) {
		w.violate("S4", "the agent of %s answered %q, and %q stands", after.Name, id, annotation(after, marker.KeyIntentID))
	}
	k := c.of(after)
	switch state {
	case string(marker.StateError):
		k.failed[id] = true
	case string(marker.StateBusy):
		c.count("S3")
		if until, err := time.Parse(time.RFC3339, annotation(after, marker.KeyIntentUntil)); err != nil || !w.cluster.machineOf(after.Name).agent.judged.Before(until) {
			w.violate("S3", "%s began intent %q after its end", after.Name, id)
		}
		if has(before, marker.KeyPaused) {
			w.violate("S6", "%s began intent %q although it is paused", after.Name, id)
		}
		if k.failed[id] {
			w.violate("S3", "%s began intent %q after it had failed", after.Name, id)
		}
		k.begun[id] = true
	case string(marker.StateReady):
		if annotation(after, marker.KeyActionWanted) == string(marker.ActionRebootUpdate) {
			c.count("S7")
			m := w.cluster.machineOf(after.Name)
			if s := m.host.Snapshot(); s.Version != annotation(after, marker.KeyTargetVersion) || s.BootID == annotation(after, marker.KeyRebootFrom) {
				w.violate("S7", "the agent of %s claims %s, and the host runs %s", after.Name, annotation(after, marker.KeyTargetVersion), s.Version)
			}
		}
	}
}

// commanding is what an agent's process is about to ask of its host.
func (c *checks) command(m *machine, p *process, command string) {
	w := c.w
	n := m.node()
	id, wanted := "", ""
	var k *watched
	if n != nil && string(n.UID) == m.agent.identity.NodeUID {
		id, wanted, k = annotation(n, marker.KeyIntentID), annotation(n, marker.KeyActionWanted), c.of(n)
	}
	if command != "refresh-updates" {
		w.note(m.name, "is asked to %s", command)
	}
	switch command {
	case "reboot", "activate-update":
		c.count("S3")
		if k == nil {
			// The Node was deleted, or another one has its name: nobody could tell the agent in time.
			break
		}
		busy := wanted == string(marker.ActionRebootUpdate) && k.begun[id] && annotation(n, marker.KeyActiveID) == id && annotation(n, marker.KeyActionState) == string(marker.StateBusy)
		if !busy && !c.tampered[string(n.UID)] {
			w.violate("S3", "%s is asked to %s, and the intent that stands is %q, answered %q", n.Name, command, wanted, annotation(n, marker.KeyActionState))
		}
	}
	if command == "reboot" {
		m.asked, m.askedOn = id, m.agent.identity.NodeUID
	}
}

// reboot is a machine going down because it was asked to.
func (c *checks) reboot(m *machine) {
	w := c.w
	n := m.node()
	c.count("S2")
	c.count("S3")
	if m.asked != "" && m.rebooted[m.asked] > 0 {
		w.violate("S3", "%s reboots twice for intent %q", m.name, m.asked)
	}
	if n == nil || string(n.UID) != m.askedOn || c.tampered[string(n.UID)] {
		// The Node for which it was asked is gone, and with it whoever could have held it back.
		return
	}
	k := c.of(n)
	if !n.Spec.Unschedulable && !k.handsOff[m.asked] {
		w.violate("S2", "%s reboots and is not cordoned", n.Name)
	}
}

// decided holds a controller's write against the promises.
func (c *checks) decided(actor string, before, after *corev1.Node) {
	w := c.w
	k := c.of(after)
	if waiting := annotation(after, marker.KeyWaitingFor); waiting != annotation(before, marker.KeyWaitingFor) {
		reason, _, _ := strings.Cut(waiting, ":")
		c.told(after.Name, policy.Reason(reason))
	}
	for _, key := range changedKeys(before, after) {
		if !strings.HasPrefix(key, marker.Prefix) || key == string(marker.KeyPaused) {
			w.violate("S5", "%s changed %s of %s", actor, key, after.Name)
		}
	}
	leaves := !has(after, marker.KeyIntentID) && has(before, marker.KeyIntentID)
	id, action := annotation(after, marker.KeyIntentID), annotation(after, marker.KeyActionWanted)
	if id != annotation(before, marker.KeyIntentID) && !leaves {
		w.note(actor, "%s: wants %s %s", after.Name, action, annotation(after, marker.KeyTargetVersion))
		c.count("S6")
		if (action == string(marker.ActionPrepareUpdate) || action == string(marker.ActionRebootUpdate)) && has(before, marker.KeyPaused) &&
			!(action == string(marker.ActionRebootUpdate) && before.Status.NodeInfo.BootID != annotation(before, marker.KeyRebootFrom)) {
			w.violate("S6", "%s starts %s on %s, which is paused", actor, action, after.Name)
		}
	}
	if action == string(marker.ActionStabilize) && takesBack(before, after) && has(after, marker.KeyDisruption) {
		c.returned(actor, before)
	}
	if h := history(after); len(h) > 0 && annotation(after, marker.KeyHistory) != annotation(before, marker.KeyHistory) && h[len(h)-1].Outcome == string(marker.OutcomeFailed) {
		c.count("L3")
		if annotation(after, marker.KeyFailure) == annotation(before, marker.KeyFailure) && !c.tampered[string(after.UID)] {
			w.violate("L3", "%s ends an attempt on %s as failed and does not count the failure with it", actor, after.Name)
		}
	}
	if takesBack(before, after) {
		// Once `busy` stands only a new boot ID or the agent's late error decides.
		c.count("S3")
		rebooted := before.Status.NodeInfo.BootID != annotation(before, marker.KeyRebootFrom)
		state := annotation(before, marker.KeyActionState)
		if annotation(before, marker.KeyActiveID) == annotation(before, marker.KeyIntentID) && state == string(marker.StateBusy) && !rebooted && !leaves && !c.tampered[string(after.UID)] {
			w.violate("S3", "%s takes the reboot of %s back, which has begun", actor, after.Name)
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
				w.violate("S5", "%s uncordons %s, which somebody else cordoned", actor, after.Name)
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
	if claims(after) > claims(before) || claims(after) > 0 && annotation(after, marker.KeyHistory) != annotation(before, marker.KeyHistory) && lastOutcome(after) == string(marker.OutcomeUpdated) {
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
	boot := n.Status.NodeInfo.BootID
	switch {
	case boot == annotation(n, marker.KeyRebootFrom):
		c.w.violate("S7", "%s takes %s for back, and its kubelet has not said so", actor, n.Name)
	case boot != annotation(n, marker.KeyBootID):
		c.w.violate("S7", "%s takes %s for back, and its agent speaks of another boot", actor, n.Name)
	case !isReady(n):
		c.w.violate("S7", "%s takes %s for back, and it is not Ready", actor, n.Name)
	}
}

// takesBack tells if the write replaces an intent to reboot that has no answer that ends it.
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
	if !n.Spec.Unschedulable {
		w.violate("S2", "%s asks %s to reboot, which is not cordoned", actor, n.Name)
	}
	looked := int64(0)
	for _, p := range w.controllers {
		if p.name == actor {
			looked = p.looked[n.Name]
		}
	}
	for _, p := range w.server.PodsOn(n.Name) {
		if evictable(p) && c.came[string(p.UID)] <= looked {
			w.violate("S2", "%s asks %s to reboot, and pod %s/%s is still there", actor, n.Name, p.Namespace, p.Name)
		}
	}
	if looked == 0 {
		w.violate("S2", "%s asks %s to reboot and never looked at its pods", actor, n.Name)
	}
}

func lastOutcome(n *corev1.Node) string {
	h := history(n)
	if len(h) == 0 {
		return ""
	}
	return h[len(h)-1].Outcome
}

type attempt struct {
	Version string `json:"version"`
	Outcome string `json:"outcome"`
	Ended   string `json:"ended"`
}

func history(n *corev1.Node) []attempt {
	var h []attempt
	_ = json.Unmarshal([]byte(annotation(n, marker.KeyHistory)), &h)
	return h
}

// claims counts the successes that a node remembers.
func claims(n *corev1.Node) int {
	count := 0
	for _, a := range history(n) {
		if a.Outcome == string(marker.OutcomeUpdated) {
			count++
		}
	}
	return count
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
	switch {
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
	p := w.controllerNamed(actor)
	if k := c.of(after); p != nil && !p.jumped {
		// Ready's time is in whole seconds: what comes and goes within one of them can't be seen afterwards.
		if ready := w.now.Sub(k.readySince); ready < p.settings.Soak-time.Second {
			w.violate("S7", "%s calls %s updated after it was Ready for %s only", actor, after.Name, ready)
		}
	}
}

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
	if certain > p.settings.MaxLost && w.now.Sub(p.jumpedAt) > time.Minute {
		// A pass that began before its clock jumped counts by the time before.
		w.violate("S1", "%s cordons %s although %d nodes are Lost, with maxLost %d", actor, after.Name, certain, p.settings.MaxLost)
	}
	limit := p.settings.MaxUnavailable + min(lost, p.settings.MaxLost)
	if held > limit {
		w.violate("S1", "%s cordons %s: %d nodes are in our hands, %d of them Lost, with a limit of %d and maxLost %d", actor, after.Name,
			held, lost, p.settings.MaxUnavailable, p.settings.MaxLost)
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

// explained: every managed node has a reason from the closed list (S9).
func (c *checks) explained(out policy.Outcome) {
	c.count("S9")
	standing := map[string]policy.Standing{}
	for _, s := range out.Nodes {
		standing[s.Node] = s
	}
	for _, n := range c.w.server.Nodes() {
		_, labelled := n.Labels[string(marker.KeyInterfaceVersion)]
		if !labelled && !has(n, marker.KeyDisruption) {
			continue
		}
		s, ok := standing[n.Name]
		if !ok || s.Reason == "" || s.Message == "" || !slices.Contains(policy.Reasons(), s.Reason) {
			c.w.violate("S9", "nothing explains where node %s stands: %+v", n.Name, s)
		}
	}
}
