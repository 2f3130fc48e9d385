package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// cycling are the kinds of scenarios in which users ask for cycles.
var cycling = []Kind{PersonAsksCycle, PersonTakesCycleBack, ForeignUpdate}

// cycle draws, for a part of the seeds, users who ask for cycles, and what goes wrong then.
func (s *Scenario) cycle(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	draw := func(k Kind) Fault {
		return Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: k, On: r.IntN(s.Nodes), N: r.IntN(16),
			For: time.Duration(r.Int64N(int64(1<<r.IntN(7)) * int64(time.Second))).Truncate(time.Millisecond)}
	}
	for range 1 + r.IntN(2*s.Nodes) {
		asks := draw(PersonAsksCycle)
		if r.IntN(4) == 0 {
			asks.When = moments[r.IntN(len(moments))]
		}
		s.Faults = append(s.Faults, asks)
	}
	// And what happens at a moment of the node's way, by it or by another's.
	also := []Kind{PersonTakesCycleBack, PersonTakesCycleBack, ForeignUpdate, hindrances[r.IntN(len(hindrances))], doings[r.IntN(len(doings))]}
	for range r.IntN(5) {
		f := draw(also[r.IntN(len(also))])
		f.When = moments[r.IntN(len(moments))]
		s.Faults = append(s.Faults, f)
	}
}

// askCycle is a user who asks for a cycle of the node, now and then by the id of the last one.
func (h hit) askCycle() {
	w, m := h.w, h.m
	n := m.node()
	if n == nil {
		return
	}
	k := w.checks.of(n)
	id := annotation(n, marker.KeyCycle)
	if done := history(n); id == "" && h.N%4 == 0 && len(done) > 0 && done[len(done)-1].Cycle != "" {
		id = done[len(done)-1].Cycle
		k.again[id] = true
	} else {
		w.asked++
		id = fmt.Sprintf("c%d", w.asked)
	}
	h.strike()
	w.note(people, "asks for a cycle of %s by %s", n.Name, id)
	w.edit(m, func(n *corev1.Node) { n.Annotations[string(marker.KeyCycle)] = id })
}

func (h hit) takeCycleBack() {
	if n := h.m.node(); n != nil && has(n, marker.KeyCycle) {
		h.strike()
		h.w.note(people, "takes the request for %s back", n.Name)
		h.w.edit(h.m, func(n *corev1.Node) { delete(n.Annotations, string(marker.KeyCycle)) })
	}
}

// foreignUpdate is another program that updates the host by the same API, and does not reboot it.
func (m *machine) foreignUpdate(within time.Duration) {
	if !m.up || within <= 0 || m.w.calm {
		return
	}
	// What is refused, by a lock for example, is tried again.
	switch m.host.Snapshot().State {
	case hostsim.Ready:
		return
	case hostsim.Available:
		_ = m.host.Foreign(hostsim.Prepare)
	case hostsim.Staged:
		_ = m.host.Foreign(hostsim.Activate)
	default:
		_ = m.host.Foreign(hostsim.Refresh)
	}
	const pause = 500 * time.Millisecond
	m.w.after(pause, m.inBoot(func() { m.foreignUpdate(within - pause) }))
}
