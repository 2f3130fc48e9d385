package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// locking are the kinds of scenarios in which policies pin hosts to a version.
var locking = []Kind{PersonLocks}

// notPublished is a version that no host is ever offered.
const notPublished = "1.49.0"

// lock draws, for a part of the seeds, policies that pin hosts to a version, and what others do to the same setting. The
// last policy pins none, so in the end every host has what it had, or what users have set since.
func (s *Scenario) lock(r *rand.Rand) {
	nodes := s.Nodes - s.PlanNodes
	if nodes <= 0 || r.IntN(4) > 0 {
		return
	}
	for len(s.Policies) < 2 {
		// Where controllers label nodes, all policies say so.
		var rules Rules
		if s.autoLabels() {
			rules.put("autoLabel", "true")
		}
		s.Policies = append(s.Policies, rules)
	}

	for labels := s.autoLabels(); len(s.Policies) < 2; {
		s.Policies = append(s.Policies, nil)
		if labels {
			s.Policies[len(s.Policies)-1].put("autoLabel", "true")
		}
	}
	for i := range s.Policies[:len(s.Policies)-1] {
		if i == 0 || r.IntN(3) > 0 {
			s.Policies[i].put("versions", "{pin: %s%s}", pick(r, firstVersion, "1.51.0", "1.51.0", "1.52.0", notPublished),
				pick(r, "", ", downgrade: true", ", downgrade: true", ", overrideLocks: true", ", downgrade: true, overrideLocks: true"))
		}
	}
	draw := func(k Kind) Fault {
		f := Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: k, On: r.IntN(nodes), N: r.IntN(16),
			For: time.Duration(r.Int64N(int64(1<<r.IntN(9)) * int64(time.Second))).Truncate(time.Millisecond)}
		if r.IntN(2) == 0 {
			f.When = moments[r.IntN(len(moments))]
		}
		return f
	}
	if r.IntN(2) == 0 {
		// Versions to go up to and down to are there from the first, and time for both.
		s.Faults = append(s.Faults, Fault{At: time.Second, Kind: NewRelease}, Fault{At: 2 * time.Second, Kind: NewRelease})
		s.Trouble += 10 * time.Minute
	}
	for range 2 + r.IntN(4) {
		s.Faults = append(s.Faults, draw(PersonWritesPolicy))
	}
	also := []Kind{PersonLocks, PersonLocks, NewRelease, NewRelease, Withdrawn, "F26", "F12", "F32", PersonUnlabels, PersonUnlabels, PersonPauses, PersonDeletesPolicy,
		CrashAgent, FreezeAgent, AgentPodReplaced, hindrances[r.IntN(len(hindrances))], doings[r.IntN(len(doings))]}
	for range r.IntN(10) {
		s.Faults = append(s.Faults, draw(also[r.IntN(len(also))]))
	}
}

// pins reports whether any policy pins hosts.
func (s Scenario) pins() bool {
	return slices.ContainsFunc(slices.Concat(s.Policies...), func(rule string) bool { return strings.HasPrefix(rule, "versions: {pin:") })
}

// renders is how long the i-th machine's host takes to heed a setting, where policies pin hosts.
func (s Scenario) renders(i int) time.Duration {
	if !s.pins() {
		return 0
	}
	return time.Duration(i%4) * 3 * time.Second
}

// follow has the DaemonSet keep the agent on a node that is labelled, or whose host is locked.
func (w *world) follow(before, after runtime.Object) {
	was, _ := before.(*corev1.Node)
	is, _ := after.(*corev1.Node)
	if was == nil || is == nil || was.Labels[string(marker.KeyLocked)] == is.Labels[string(marker.KeyLocked)] {
		return
	}
	m := w.cluster.machineOf(is.Name)
	if m == nil || m.labelled {
		return
	}
	w.after(w.between(100*time.Millisecond, 5*time.Second), m.agent.follow)
}

// follow makes the agent's pod, or ends it, as the node's labels want it.
func (a *agentProcess) follow() {
	switch p := a.m.w.server.Pod(namespace, a.pod); {
	case p == nil && a.wanted():
		a.podScheduled()
	case p != nil && !a.wanted():
		a.podRemoved()
	}
}

// wanted reports whether the DaemonSet wants a pod on the machine's node.
func (a *agentProcess) wanted() bool {
	n := a.m.node()
	return n != nil && (n.Labels[string(marker.KeyInterfaceVersion)] != "" || n.Labels[string(marker.KeyLocked)] == "true")
}

// locks is a user, or another program, that locks the host by the same setting.
func (h hit) locks() {
	m := h.m
	if m.isPlanned || h.w.calm {
		return
	}
	lock := []string{marker.LockLatest, "v" + firstVersion, "1.51.0", "v1.52.0"}[h.N%4]
	h.strike()
	h.w.note(people, "lock the host of %s to %s", m.name, lock)
	m.setLock(lock)
}

// setLock sets the host's version-lock past the operator.
func (m *machine) setLock(lock string) {
	s := m.host.Snapshot().Settings
	if n := m.node(); n != nil {
		if l, _ := marker.DecodeLock(n.Annotations); l != nil && slices.Contains(l.Asked, lock) {
			// Nothing tells it from what the operator has set before, and a late commit of that may come at any time.
			return
		}
	}
	if s.VersionLock == lock {
		// Nothing tells it from what stands there.
		return
	}
	s.VersionLock = lock
	if err := m.host.SetSettings(s); err != nil {
		panic(err)
	}
	if l, _ := marker.DecodeLock(annotationsOf(m.node())); l != nil && l.Ours(lock) {
		// Only an agent that has not touched the host for this wish yet tells it from what the operator has asked for.
		m.ourLock, m.sharedLock = true, lock
		return
	}
	m.theirLock, m.ourLock, m.sharedLock = lock, false, ""
}

// wishesLock holds that a controller asks for a lock only with what the host had before (S5), while the node waits and
// isn't paused, and for a lower version only by the policy's leave (S6). A lock that is taken back needs none of these.
func (c *checks) wishesLock(actor string, before, after *corev1.Node) {
	w := c.w
	l, _ := marker.DecodeLock(after.Annotations)
	had, _ := marker.DecodeLock(before.Annotations)
	if l == nil || c.tampered[string(after.UID)] || annotation(after, marker.KeyIntentID) == annotation(before, marker.KeyIntentID) {
		return
	}
	c.count("S5")
	if stood := annotation(before, marker.KeyVersionLock); had == nil && l.Before != stood {
		w.violate("S5", "%s notes that %s had the lock %s, and its agent says %s", actor, after.Name, l.Before, stood)
	}
	if l.GiveBack || had != nil && !had.GiveBack && had.Want == l.Want {
		return
	}
	c.count("S6")
	d, current := &w.controllerNamed(actor).decided, annotation(before, marker.KeyCurrentVersion)
	switch {
	case has(after, marker.KeyDisruption), marker.Action(annotation(before, marker.KeyActionWanted)) != marker.ActionStabilize:
		w.violate("S6", "%s locks %s to %s in mid update", actor, after.Name, l.Want)
	case has(before, marker.KeyPaused):
		w.violate("S6", "%s locks %s to %s, which is paused", actor, after.Name, l.Want)
	case !d.set.Versions.Downgrade && marker.CompareVersions(l.Want, current) < 0:
		w.violate("S6", "%s locks %s to %s, although it runs %s", actor, after.Name, l.Want, current)
	case had == nil && l.Before != marker.LockLatest && !d.set.Versions.OverrideLocks:
		w.violate("S5", "%s locks %s to %s over the lock of others to %s", actor, after.Name, l.Want, l.Before)
	}
}

func annotationsOf(n *corev1.Node) map[string]string {
	if n == nil {
		return nil
	}
	return n.Annotations
}

// changedLock holds that the operator changes a lock only with a record of what stood there before, to what is asked for
// now or was before, and while the node waits (S5, S6). A value that others have set goes only where the policy says so,
// by which it is what is put back.
func (c *checks) changedLock(m *machine, was, is string) {
	w, n := c.w, m.node()
	w.note(m.name, "is locked to %s, and was to %s", is, was)
	if was == is || n == nil || c.tampered[string(n.UID)] {
		return
	}
	c.count(LockChanged)
	c.count("S5")
	c.count("S6")
	l, problems := marker.DecodeLock(n.Annotations)
	switch {
	case l == nil || len(problems) > 0:
		w.violate("S5", "the agent of %s changes version-lock from %s to %s, and no record of it stands", n.Name, was, is)
		return
	case !l.Ours(is) && is != l.Before:
		w.violate("S5", "the agent of %s changes version-lock to %s, and %+v stands", n.Name, is, *l)
	case !m.ourLock && was != l.Before:
		w.violate("S5", "the agent of %s changes version-lock %s, which others have set, and %+v stands", n.Name, was, *l)
	case annotation(n, marker.KeyActionWanted) != string(marker.ActionStabilize) || has(n, marker.KeyDisruption):
		w.violate("S6", "the agent of %s changes version-lock in mid update", n.Name)
	case has(n, marker.KeyPaused) && !l.GiveBack && c.pausedBefore(n):
		w.violate("S6", "the agent of %s locks a paused host to %s", n.Name, is)
	}
	m.ourLock, m.sharedLock = is != m.theirLock, ""
}

// givesBack reports whether a node is asked to put its host's lock back, which a pause doesn't prevent.
func givesBack(n *corev1.Node) bool {
	l, _ := marker.DecodeLock(n.Annotations)
	return l != nil && l.GiveBack && annotation(n, marker.KeyActionWanted) == string(marker.ActionStabilize)
}

// pausedBefore reports whether the node was paused before its agent began what it is asked for.
func (c *checks) pausedBefore(n *corev1.Node) bool {
	k := c.of(n)
	return !k.begun[annotation(n, marker.KeyIntentID)]
}

// unlock is a user who takes a lock of their own off a host, once no record of the operator's stands any more: what is
// there then is what they have set (S5).
func (w *world) unlock(m *machine, n *corev1.Node) {
	if m.isPlanned || m.gone || n == nil || lockUnsettled(n) != "" {
		return
	}
	w.checks.count("S5")
	lock := m.host.Snapshot().Settings.VersionLock
	if lock != m.theirLock && lock != m.sharedLock && !w.checks.tampered[string(n.UID)] {
		w.violate("S5", "the host of %s is left locked to %s, and had %s", n.Name, lock, m.theirLock)
	}
	if lock != marker.LockLatest {
		w.note(people, "unlock the host of %s", m.name)
		m.setLock(marker.LockLatest)
	}
}

// lockUnsettled says what is left of locks; empty: nothing.
func lockUnsettled(n *corev1.Node) string {
	if has(n, marker.KeyLock) || n.Labels[string(marker.KeyLocked)] != "" {
		return fmt.Sprintf("%s has a record of a lock", n.Name)
	}
	return ""
}
