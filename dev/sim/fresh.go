package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// freshening are the kinds of scenarios with new nodes.
var freshening = []Kind{MachineJoins, PersonTaints, PersonUntaints}

// The taint of new nodes, as users write it, and one of another program that a node begins with.
const (
	freshKey   = "bottlerocket.aws/fresh"
	startupKey = "example.com/startup"
)

// freshDeadline is how long a node may keep its taint where no policy says anything else.
const freshDeadline = 4 * time.Minute

// freshen draws, for a part of the seeds, machines that join while the others are updated, what policies say of new nodes,
// and what users do to their taint.
func (s *Scenario) freshen(r *rand.Rand) {
	nodes := s.Nodes - s.PlanNodes
	if nodes < 3 || r.IntN(4) > 0 {
		return
	}
	s.Fresh = 1 + r.IntN(nodes-2)
	// Those that are there already must have a version to prove.
	began := s.Trouble / 2
	s.Trouble += time.Duration(2+r.IntN(10)) * time.Minute
	at := func() time.Duration {
		return (began + time.Duration(r.Int64N(int64(s.Trouble-began)))).Truncate(time.Millisecond)
	}
	for i := range s.Policies {
		if r.IntN(4) > 0 {
			s.Policies[i].put("freshNodes", "{maxUnavailable: %d, deadline: %ds}", pick(r, 0, 1, 1, 1, 2, 2), pick(r, 30, 60, 120, 180, 240, 300))
		}
	}
	together := at()
	for i := range s.Fresh {
		f := Fault{At: at(), Kind: MachineJoins, On: nodes - 1 - i}
		if r.IntN(2) == 0 {
			f.At = together
		}
		s.Faults = append(s.Faults, f)
		// And what comes while it has the taint.
		soon := func(k Kind) {
			s.Faults = append(s.Faults, Fault{At: f.At + time.Duration(r.Int64N(int64(3*time.Minute))).Truncate(time.Millisecond), Kind: k, On: f.On, N: r.IntN(16),
				For: time.Duration(r.Int64N(int64(1<<r.IntN(7)) * int64(time.Second))).Truncate(time.Millisecond)})
		}
		switch r.IntN(4) {
		case 0:
			soon(meanwhile[r.IntN(len(meanwhile))])
		case 1:
			for range 1 + r.IntN(5) {
				soon(PersonTaints)
			}
		}
	}
	draw := func(k Kind) {
		f := Fault{At: at(), Kind: k, On: nodes - 1 - r.IntN(s.Fresh), N: r.IntN(16),
			For: time.Duration(r.Int64N(int64(1<<r.IntN(8)) * int64(time.Second))).Truncate(time.Millisecond)}
		switch r.IntN(4) {
		case 0:
			f.On = r.IntN(nodes)
		case 1:
			f.When = moments[r.IntN(len(moments))]
		}
		s.Faults = append(s.Faults, f)
	}
	also := []Kind{PersonTaints, PersonTaints, PersonTaints, PersonUntaints, NewRelease, NewRelease, NodeDeleted, NodeDeleted, NodeRenamed, PersonUnlabels,
		PersonUnlabels, PersonPauses, CrashController, FreezeController, hindrances[r.IntN(len(hindrances))], doings[r.IntN(len(doings))]}
	if len(s.Policies) > 1 {
		also = append(also, PersonWritesPolicy, PersonWritesPolicy)
	}
	for range 1 + r.IntN(8) {
		draw(also[r.IntN(len(also))])
	}
}

// meanwhile is what happens to a machine that has just joined.
var meanwhile = []Kind{PersonUntaints, PersonUntaints, PersonUnlabels, PersonUnlabels, PersonPauses, PersonCordons, PersonLocks, NewRelease, NewRelease, BadRelease,
	CrashController, FreezeController, FreezeController, WatchLag, LostAnswer, CrashAgent, PowerCut, NodeFlaps, SlowBoot, WritesRefused, WritesSlow, AutoscalerTakes,
	Withdrawn, "F14", "F17", "F18"}

// joins reports whether the i-th machine comes late, and tainted whether its Node is registered with the taint: those that
// come late, and some of the others.
func (s Scenario) joins(i int) bool {
	last := s.Nodes - s.PlanNodes
	return i > 0 && i < last && i >= last-s.Fresh
}

func (s Scenario) tainted(i int) bool { return s.Fresh > 0 && (s.joins(i) || i%3 == 1) }

// freshNodes is what the flags say of new nodes.
func (s Scenario) freshNodes(def policy.FreshNodes) policy.FreshNodes {
	if s.Fresh > 0 {
		def.Deadline = freshDeadline
	}
	return def
}

// join is a machine that comes up for the first time, from its old image.
func (h hit) join() {
	m := h.m
	if m.up || m.boots > 0 || m.gone {
		return
	}
	h.strike()
	h.w.note(m.name, "joins")
	m.boot()
}

// startupTaints are those that the machine's Node is registered with. The other program takes its own off after a while.
func (m *machine) startupTaints() []corev1.Taint {
	w := m.w
	if !w.scenario.tainted(slices.Index(w.machines, m)) {
		return nil
	}
	fresh := corev1.Taint{Key: freshKey, Effect: corev1.TaintEffectNoSchedule}
	if w.chance(3) {
		fresh.Value = "true"
	}
	taints := []corev1.Taint{fresh}
	if w.chance(2) {
		taints = append(taints, otherTaint)
		if w.chance(2) {
			slices.Reverse(taints)
		}
		w.after(w.between(10*time.Second, 3*time.Minute), func() { w.untaint(m, otherTaint, w.cluster.edit) })
	}
	if w.chance(6) {
		// The key is ours, and with this effect it is another taint.
		taints = append(taints, corev1.Taint{Key: freshKey, Effect: corev1.TaintEffectPreferNoSchedule})
	}
	return taints
}

var otherTaint = corev1.Taint{Key: startupKey, Value: "network", Effect: corev1.TaintEffectNoSchedule}

// untaint takes a taint off a node, by its key and effect.
func (w *world) untaint(m *machine, t corev1.Taint, edit func(*machine, func(*corev1.Node)) bool) bool {
	same := func(other corev1.Taint) bool { return other.Key == t.Key && other.Effect == t.Effect }
	if n := m.node(); n == nil || !slices.ContainsFunc(n.Spec.Taints, same) {
		return false
	}
	return edit(m, func(n *corev1.Node) { n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), same) })
}

// taint is a user, or a provider, who puts a taint on a node, at the front or at the end: the one of new nodes again, or
// another.
func (h hit) taint() {
	t := corev1.Taint{Key: freshKey, Effect: corev1.TaintEffectNoSchedule}
	switch h.N % 8 {
	case 5:
		t.Effect = corev1.TaintEffectPreferNoSchedule
	case 6, 7:
		t = otherTaint
	}
	n := h.m.node()
	if n == nil || slices.ContainsFunc(n.Spec.Taints, func(other corev1.Taint) bool { return other.Key == t.Key && other.Effect == t.Effect }) {
		return
	}
	h.strike()
	h.w.note(people, "taint %s with %s:%s", n.Name, t.Key, t.Effect)
	h.w.edit(h.m, func(n *corev1.Node) {
		at := len(n.Spec.Taints)
		if h.N%2 == 0 {
			at = 0
		}
		n.Spec.Taints = slices.Insert(slices.Clone(n.Spec.Taints), at, t)
	})
	if t.Key == startupKey {
		h.w.restore(h.For, func() { h.w.untaint(h.m, t, h.w.edit) })
	}
}

// untaint is a user who takes the taint of new nodes off by hand.
func (h hit) untaint() {
	if h.w.untaint(h.m, corev1.Taint{Key: freshKey, Effect: corev1.TaintEffectNoSchedule}, h.w.edit) {
		h.strike()
		h.w.note(people, "take the taint of %s off", h.m.nodeName)
	}
}

// isTainted reports whether the taint of new nodes is on a node, and keepsAway whether any is that keeps pods away.
func isTainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == freshKey && t.Effect == corev1.TaintEffectNoSchedule })
}

func keepsAway(n *corev1.Node) bool {
	return isTainted(n) || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == startupKey })
}

// startsWith reports whether a taint is one of those that nodes begin with.
func startsWith(t corev1.Taint) bool { return t.Key == freshKey || t.Key == startupKey }
