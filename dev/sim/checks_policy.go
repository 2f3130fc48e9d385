package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// told is what a process was shown of users' ConfigMaps, as its rules say that it is to be understood: a file
// with a mistake changes nothing, and one that is gone is missed.
type told struct {
	w        *world
	defaults policy.Settings
	// set is the policy to go by, last the last good one.
	set, last policy.Settings
	// beside is the fleet's pause in PauseConfigMap.
	beside *policy.Pause
	// none: there is no policy, and nothing may start. good: there was one. absent: no file stands.
	none, good, absent bool
	acknowledged       map[string]string
}

func (t *told) file(cm *corev1.ConfigMap) {
	t.absent = cm == nil
	if cm == nil {
		t.set, t.none, t.good = t.defaults, false, false
		return
	}
	set, err := file.Decode([]byte(cm.Data[kube.PolicyKey]), t.defaults, time.LoadLocation)
	switch {
	case err == nil:
		t.set, t.last, t.none, t.good = set, set, false, true
	case !t.good:
		t.set, t.none = t.last, true
	}
}

// required is the same where the absence of a file is no decision: there was one before.
func (t told) required() told {
	if t.absent {
		t.set, t.none = t.last, true
	}
	return t
}

func (t *told) pause(cm *corev1.ConfigMap) {
	t.beside = nil
	if cm == nil {
		return
	}
	if fleet := must(kube.ReadPauses(cm.Data)).Fleet; fleet != nil {
		t.beside = &policy.Pause{Reason: fleet.Reason, InFlight: fleet.InFlight}
	}
}

func (t *told) acknowledge(cm *corev1.ConfigMap) {
	t.acknowledged = nil
	if cm != nil {
		t.acknowledged = cm.Data
	}
}

// telling passes on what a watch of one ConfigMap shows, and keeps account of it.
type telling struct {
	sink
	tell func(*corev1.ConfigMap)
}

func (s *telling) replace(objects []runtime.Object) {
	s.sink.replace(objects)
	if len(objects) == 0 {
		s.tell(nil)
		return
	}
	s.tell(objects[0].(*corev1.ConfigMap))
}

func (s *telling) event(e apiserver.Event) {
	s.sink.event(e)
	if e.Type == watch.Deleted {
		s.tell(nil)
		return
	}
	s.tell(e.Object.(*corev1.ConfigMap))
}

func named(configMap string) apiserver.Selection {
	return apiserver.Selection{Resource: "configmaps", Namespace: namespace, FieldSelector: "metadata.name=" + configMap}
}

// decision is what a pass goes by: the policy that its process was shown, and the time on its clock. Of nodes it
// has seen all that happened until shown, and maybe more, and of agents until agents.
type decision struct {
	told
	at, real, shown, agents time.Time
}

// stood is a node as it stood from a time on; nil: it was gone.
type stood struct {
	from time.Time
	node *corev1.Node
}

func (c *checks) remember(before, after *corev1.Node) {
	n := after
	if n == nil {
		n = before
	}
	c.history[string(n.UID)] = append(c.history[string(n.UID)], stood{c.w.now, after})
	if after == nil {
		return
	}
	for _, k := range []marker.Key{marker.KeyAvailableVersion, marker.KeyCurrentVersion} {
		v := annotation(after, k)
		if _, known := c.known[v]; !known {
			c.known[v] = c.w.now
		}
	}
}

// when is when a revision was written.
func (c *checks) when(revision int64) time.Time {
	// The last of the times is that of the last revision.
	i := len(c.times) - 1 - int(c.w.server.Revision()-revision)
	if i < 0 {
		return start
	}
	return c.times[i]
}

// since calls each with every state in which a node stood at any time from t on, until it says no; it reports whether
// none did.
func (c *checks) since(uid string, t time.Time, each func(n *corev1.Node) bool) bool {
	states := c.history[uid]
	for i := len(states) - 1; i >= 0; i-- {
		if !each(states[i].node) {
			return false
		}
		if states[i].from.Before(t) {
			break
		}
	}
	return true
}

// always reports whether the node was there before t, and was so all the time from t on. What came at t itself may be
// one of several writes of that moment, of which not all were shown.
func (c *checks) always(n *corev1.Node, t time.Time, so func(n *corev1.Node) bool) bool {
	if states := c.history[string(n.UID)]; len(states) == 0 || !states[0].from.Before(t) {
		return false
	}
	return c.since(string(n.UID), t, func(n *corev1.Node) bool { return n != nil && so(n) })
}

// capacity is the most labelled nodes that such a part of the fleet had at once, or one after the other, from t on.
func (c *checks) capacity(t time.Time, in func(n *corev1.Node) bool) int {
	count := 0
	for uid := range c.history {
		if !c.since(uid, t, func(n *corev1.Node) bool { return n == nil || !labelled(n) || !in(n) }) {
			count++
		}
	}
	return count
}

func labelled(n *corev1.Node) bool {
	_, ok := n.Labels[string(marker.KeyInterfaceVersion)]
	return ok
}

func allNodes(*corev1.Node) bool { return true }

// most is what a limit lets through of so many nodes: shares round down, but are 1 at least.
func most(l policy.Limit, nodes int) int {
	text := l.String()
	if text == "unlimited" {
		return 1000
	}
	digits, percent := strings.CutSuffix(text, "%")
	n := must(strconv.Atoi(digits))
	if !percent || n == 0 {
		return n
	}
	return max(1, nodes*n/100)
}

// groupOf is the first group that chooses the node; nil if none does.
func groupOf(set *policy.Settings, n *corev1.Node) *policy.Group {
	for i := range set.Groups {
		if chosen(set.Groups[i].Selector, n.Labels) {
			return &set.Groups[i]
		}
	}
	return nil
}

// chosen reads selectors by itself, as far as scenarios use them.
func chosen(s policy.Selector, labels map[string]string) bool {
	return !slices.ContainsFunc(s, func(r policy.Requirement) bool {
		v, has := labels[r.Key]
		return r.Operator != policy.In || !has || !slices.Contains(r.Values, v)
	})
}

// rulesOf are those of a node: its group's, with what it doesn't say from the fleet's.
func rulesOf(set *policy.Settings, n *corev1.Node) *policy.Rules {
	if g := groupOf(set, n); g != nil {
		return &g.Rules
	}
	return &set.Rules
}

// inFreeze is what closed says of a freeze.
const inFreeze = "in a freeze"

// closed says why nothing may be taken out of service; empty if something may.
func closed(r *policy.Rules, at time.Time) string {
	for _, f := range r.Calendar.Freezes {
		if !at.Before(f.From) && at.Before(f.To) {
			return inFreeze
		}
	}
	open := r.Calendar
	open.Freezes = nil
	if !open.At(at).Open {
		return "outside the window"
	}
	return ""
}

// pauses returns the pause that holds for a node; nil if none does.
func (t *told) pauses(n *corev1.Node) *policy.Pause {
	if t.beside != nil {
		return t.beside
	}
	if t.set.Pause != nil {
		return t.set.Pause
	}
	if g := groupOf(&t.set, n); g != nil {
		return g.Pause
	}
	return nil
}

// starts holds a start on a node against the policy (S6).
func (c *checks) starts(actor string, n *corev1.Node, what string) {
	p := c.w.controllerNamed(actor)
	d := &p.decided
	c.count("S6")
	if c.always(n, d.shown, takenAway) {
		c.w.violate("S5", "%s starts %s %s, which is taken out of the cluster", actor, what, n.Name)
	}
	if m := c.w.cluster.machineOf(n.Name); m != nil && !m.agent.unready.IsZero() && m.agent.unready.Before(d.agents) {
		c.w.violate("S6", "%s starts %s %s, whose agent has not been Ready for %s", actor, what, n.Name, c.w.now.Sub(m.agent.unready))
	}
	version, cordon := annotation(n, marker.KeyTargetVersion), what == "the cordon of"
	if cordon && !d.absent {
		// Whatever leads from now on knows it.
		c.w.hadPolicy, p.hadPolicy = true, true
	}
	why := c.forbidden(d, n, version, cordon)
	if why == "" && !cordon {
		why = c.freshStarts(d, n, n)
	}
	if why != "" {
		c.w.violate("S6", "%s starts %s %s for %s %s", actor, what, n.Name, version, why)
	}
}

func (c *checks) forbidden(d *decision, n *corev1.Node, version string, cordon bool) string {
	rules, group := rulesOf(&d.set, n), groupOf(&d.set, n)
	shut := closed(rules, d.at)
	switch {
	case d.none:
		return "without a policy"
	case d.pauses(n) != nil, d.set.MaxUnavailable.None(), rules.MaxUnavailable.None():
		return "in a pause"
	case shut != "" && (cordon || shut == inFreeze || !rules.StageOutside) && c.windowHolds(d, n, shut):
		return shut
	}
	if cycles(n) {
		// It brings no version.
		return ""
	}
	if why := c.noTarget(d, version); why != "" {
		return why
	}
	if _, _, _, ofPlan := target(version); ofPlan {
		if why := c.planForbidden(d, n, version); why != "" || group == nil {
			return why
		}
		return c.before(d, group, version)
	}
	if current := annotation(n, marker.KeyCurrentVersion); !d.set.Versions.Downgrade && marker.CompareVersions(version, current) < 0 {
		return "although it runs " + current
	}
	if age := d.set.Versions.MinAge; age > 0 && !c.anyJumped() && d.real.Sub(c.known[version]) < age-time.Second {
		return fmt.Sprintf("which has been known for %s only", d.real.Sub(c.known[version]))
	}
	if group != nil {
		return c.before(d, group, version)
	}
	return ""
}

func (c *checks) anyJumped() bool {
	return slices.ContainsFunc(c.w.controllers, func(p *controllerProcess) bool { return p.jumped })
}

// noTarget says why no node may go to a version, whatever its age.
func (c *checks) noTarget(d *decision, version string) string {
	v := &d.set.Versions
	if _, _, _, ofPlan := target(version); ofPlan {
		v = &policy.HostVersions{}
	}
	switch {
	case v.Deny != nil && v.Deny.Contains(version), v.Allow != nil && !v.Allow.Contains(version):
		return "which is denied"
	case v.Hold != "" && v.Hold != version:
		return "and the fleet is held at " + v.Hold
	case v.Pin != "" && v.Pin != version:
		return "and hosts are pinned to " + v.Pin
	}
	if _, ok := d.acknowledged[version]; ok {
		return ""
	}
	failed := c.failedOn(d, version)
	if limit := most(d.set.MaxFailed, c.capacity(d.shown, allNodes)); failed >= limit {
		return fmt.Sprintf("which failed on %d nodes already, and may on less than %d", failed, limit)
	}
	return ""
}

// failedOn counts the nodes that a version failed on for all that the deciding process may have seen.
func (c *checks) failedOn(d *decision, version string) int {
	failed := 0
	for _, n := range c.w.server.Nodes() {
		if since, blamed := c.of(n).blamed[version]; blamed && !since.After(d.shown) && !c.tampered[string(n.UID)] {
			failed++
		}
	}
	return failed
}

// blame keeps account of what a node's marks have said that failed on it by the version's fault. It ends with a success
// of that very version, a person's wish, or the operator's care.
func (c *checks) blame(before, after *corev1.Node) {
	k := c.of(after)
	if !labelled(after) || has(before, marker.KeyRetry) {
		clear(k.blamed)
	}
	failure := annotation(after, marker.KeyFailure)
	if failure != annotation(before, marker.KeyFailure) {
		var f struct {
			Broken []string `json:"broken"`
		}
		_ = json.Unmarshal([]byte(failure), &f)
		for _, version := range f.Broken {
			if _, known := k.blamed[version]; known {
				continue
			}
			k.blamed[version] = c.w.now
			c.count("S10")
			if m := c.w.cluster.machineOf(after.Name); m != nil && !m.tried[version] && !m.tested[version] && !c.tampered[string(after.UID)] {
				c.w.violate("S10", "%s is blamed for a failure of %s, which never booted it", version, after.Name)
			}
		}
	}
	if ended := endedBy(before, after); ended.Outcome == string(marker.OutcomeUpdated) {
		delete(k.blamed, ended.Version)
	}
}

// before says which of the groups that go first doesn't have the version; empty if all have.
func (c *checks) before(d *decision, g *policy.Group, version string) string {
	for _, name := range g.After {
		members := 0
		in := func(n *corev1.Node) bool {
			other := groupOf(&d.set, n)
			return other != nil && other.Name == name
		}
		for uid := range c.history {
			if !c.since(uid, d.shown, func(n *corev1.Node) bool { return n == nil || !in(n) }) {
				members++
			}
		}
		_, _, _, ofPlan := target(version)
		if members == 0 && !ofPlan {
			return fmt.Sprintf("after group %s, which has no nodes", name)
		}
		for _, n := range c.w.server.Nodes() {
			if in(n) && !c.tampered[string(n.UID)] && c.always(n, d.shown, func(n *corev1.Node) bool {
				return labelled(n) && !takenAway(n) && !c.maybeFresh(d, n) && !c.has(d, n, version, g.AfterSoak)
			}) {
				return fmt.Sprintf("before %s of group %s has had it for %s", n.Name, name, g.AfterSoak)
			}
		}
	}
	return ""
}

// has reports whether a node is in service with a version, by its kubelet's word, and has been for so long.
func (c *checks) has(d *decision, n *corev1.Node, version string, soak time.Duration) bool {
	if _, _, _, ofPlan := target(version); ofPlan {
		return c.hasPlan(d, n, version)
	}
	if !isBottlerocket(n) {
		return true
	}
	current, _, _ := strings.Cut(strings.TrimPrefix(n.Status.NodeInfo.OSImage, "Bottlerocket OS "), " ")
	if current == "" || marker.CompareVersions(current, version) < 0 || has(n, marker.KeyDisruption) || !isReady(n) ||
		annotation(n, marker.KeyActionWanted) == string(marker.ActionResetState) {
		return false
	}
	for _, a := range slices.Backward(history(n)) {
		if a.Outcome == string(marker.OutcomeUpdated) && marker.CompareVersions(a.Version, version) >= 0 {
			return !d.at.Before(a.Ended.Add(soak)) || a.Ended.After(d.at.Add(d.set.RetryMax))
		}
	}
	// One that joined with it has it since it joined, if the version was known then.
	since := c.known[version]
	if n.CreationTimestamp.After(since) {
		since = n.CreationTimestamp.Time
	}
	return c.anyJumped() || d.real.Sub(since) >= soak-2*time.Second
}

// goesOn: just before a reboot is asked for the policy is looked at again.
func (c *checks) goesOn(actor string, n *corev1.Node) {
	p := c.w.controllerNamed(actor)
	d := &p.decided
	c.count("S6")
	rules := rulesOf(&d.set, n)
	why := c.noTarget(d, annotation(n, marker.KeyTargetVersion))
	if cycles(n) {
		why = ""
	}
	if pause := d.pauses(n); pause != nil && pause.InFlight == policy.Return {
		why = "in a pause that gives back"
	}
	if shut := closed(rules, d.at); shut != "" && rules.WhenClosed == policy.Return && c.windowHolds(d, n, shut) {
		why = shut
	}
	if d.none {
		why = "without a policy"
	}
	c.hooksAnswered("S6", actor, "asks %s to reboot", rules.Hooks.AfterDrain, n)
	if why != "" {
		c.w.violate("S6", "%s asks %s to reboot into %s %s", actor, n.Name, annotation(n, marker.KeyTargetVersion), why)
	}
}

// goes notes a machine that reboots into a version.
func (c *checks) goes(m *machine, version string) {
	if c.went[version] == nil {
		c.went[version] = map[string]bool{}
	}
	c.went[version][m.name] = true
}

// forgetting are the kinds that make a failure forgotten, or a version go on all the same, or one more machine of it.
var forgetting = []Kind{PersonWritesPolicy, PersonBreaksPolicy, PersonDeletesPolicy, PersonAcknowledges, PersonRetries, PersonUnlabels, PersonEditsMarks,
	NodeDeleted, NodeRenamed, PolicyChanged, Withdrawn, "F24"}

// touchedBy: of a version that comes up nowhere, no more machines were rebooted into it than may fail, and those that
// were disrupted already when the last of these failed.
func (c *checks) touchedBy(version string) {
	w := c.w
	if slices.ContainsFunc(forgetting, func(k Kind) bool { return w.struck[k] > 0 }) {
		return
	}
	c.count("S6")
	set := w.stands()
	if touched, bound := len(c.went[version]), most(set.MaxFailed, len(w.machines))-1+c.held; touched > bound {
		w.violate("S6", "%d machines were rebooted into %s, which is bad, and no more than %d should have been", touched, version, bound)
	}
}
