package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// surround draws what happens around nodes that are disrupted, for a part of the seeds.
func (s *Scenario) surround(r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	for range 1 + r.IntN(4) {
		f := Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: surrounding[r.IntN(len(surrounding))], On: r.IntN(s.Nodes),
			For: time.Duration(r.Int64N(int64(4 * time.Minute))).Truncate(time.Millisecond), N: r.IntN(16)}
		if r.IntN(2) == 0 {
			f.When = moments[r.IntN(len(moments))]
		}
		s.Faults = append(s.Faults, f)
	}
	// Between the answer of a node that has staged and its cordon the leader takes a slot: what comes then comes late.
	switch at := time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond); r.IntN(4) {
	case 0:
		s.Faults = append(s.Faults, Fault{At: at, Kind: PersonPauses, On: r.IntN(s.Nodes), For: 5 * time.Minute, When: AtAnswer})
	case 1:
		s.Faults = append(s.Faults, Fault{At: at, Kind: FreezeController, For: time.Duration(25+r.IntN(40)) * time.Second, When: AtAnswer})
	}
}

// takenAway is an autoscaler that says that it takes a node away, and does, or thinks better of it.
func (w *world) takenAway(m *machine, f Fault) {
	taint := []string{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"}[f.N%2]
	n := m.node()
	if n == nil || takenAway(n) {
		return
	}
	w.strike(f.Kind)
	w.edit(m, func(n *corev1.Node) {
		n.Spec.Taints = append(slices.Clone(n.Spec.Taints), corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule})
	})
	uid := n.UID
	w.restore(f.For, func() {
		switch n := m.node(); {
		case n == nil || n.UID != uid:
		case f.N%4 < 2 && !w.calm:
			w.deleteNode(m, f)
		default:
			w.untaint(m, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule}, w.edit)
		}
	})
}
