package model

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// state is the whole system, in numbers of what it is made of.
type state struct {
	columns [MaxNodes]uint32
	work    [MaxControllers]uint32
	slots   holders
	// cache is the slot list as each controller saw it last.
	cache [MaxControllers]holders
	// known is what each controller knows of each node, a byte each.
	known [MaxNodes]uint16
	// slotted are bits for each controller: cacheKnown, cacheCurrent.
	slotted uint8
	// faults is how many there were, victims those that may still meet one: a bit for each node, then one for
	// the controllers and one for the clock. Every run with so many faults has its victims, so it is in
	// the search whose victims were chosen at the beginning.
	faults, victims uint8
}

const (
	controllersFail uint8 = 1 << MaxNodes << iota
	clockJumps
	allVictims = clockJumps<<1 - 1
)

// may reports whether a victim may still meet a fault.
func (m *Model) may(s *state, victim uint8) bool {
	return s.victims&victim != 0
}

// fail counts a fault.
func (m *Model) fail(s *state) {
	if s.faults++; s.faults >= m.config.Faults {
		s.victims = 0
	}
}

// A byte of known.
const (
	// lags: its watch may still show what was there before the last write.
	lags uint8 = 1 << iota
	// stands: the Node that its work was planned from is the one that stands.
	stands
	// drainRuns: an eviction pass of it is under way; drainEmpty: its last one found nothing left. Both
	// count only while the node drains: an eviction after that takes away what no check asks for.
	drainRuns
	drainEmpty
	// planJumped: the node's deadlines have passed since its work was planned.
	planJumped

	drainMask = drainRuns | drainEmpty
)

const (
	cacheKnown uint8 = 1 << iota
	cacheCurrent
)

func (s *state) knows(node, j int) uint8 { return uint8(s.known[node] >> (8 * j)) }
func (s *state) setKnows(node, j int, v uint8) {
	s.known[node] = s.known[node]&^(255<<(8*j)) | uint16(v)<<(8*j)
}
func (s *state) slot(j int) uint8       { return s.slotted >> (4 * j) & 15 }
func (s *state) setSlot(j int, v uint8) { s.slotted = s.slotted&^(15<<(4*j)) | v<<(4*j) }

// wrote notes that a Node was written to; by is the controller that knows it already, or -1.
func (m *Model) wrote(s *state, node, by int, ended bool) {
	same := m.columns[s.columns[node]].sameView
	for j := range m.config.Controllers {
		k := s.knows(node, j) &^ (lags | stands | planJumped)
		if j != by && !same {
			k |= lags
		}
		if ended {
			k &^= drainMask
		}
		s.setKnows(node, j, k)
	}
}

// tidy leaves out of a state what makes no difference any more.
func (m *Model) tidy(s *state) {
	for j := range m.config.Controllers {
		for s.work[j] != 0 {
			w := &m.works[s.work[j]]
			if w.task.Kind != plan.TaskWrite || s.knows(w.node, j)&stands != 0 || m.config.Defect == DefectBlindWrites {
				break
			}
			// The write's precondition fails, whenever it comes.
			s.work[j] = w.no
		}
		if f := s.slot(j); f&cacheKnown == 0 {
			s.cache[j] = 0
		}
	}
	for i := range m.config.Nodes {
		lagging := m.columns[s.columns[i]].behind && m.columns[s.columns[i]].agentBehind
		behind, drains := m.columns[s.columns[i]].behind, m.columns[s.columns[i]].drains
		for j := range m.config.Controllers {
			k := s.knows(i, j)
			if s.work[j] == 0 || m.works[s.work[j]].writes>>i&1 == 0 {
				k &^= stands | planJumped
			}
			if !behind {
				k &^= lags
			}
			if !drains {
				k &^= drainMask
			}
			lagging = lagging || k&lags != 0
			s.setKnows(i, j, k)
		}
		if !lagging {
			s.columns[i] = m.settle(s.columns[i])
		}
	}
	if m.config.Controllers == 2 && s.swapped().less(s) {
		*s = s.swapped()
	}
}

// swapped exchanges the two controllers, which are alike.
func (s *state) swapped() state {
	t := *s
	t.work[0], t.work[1] = s.work[1], s.work[0]
	t.cache[0], t.cache[1] = s.cache[1], s.cache[0]
	t.slotted = s.slotted>>4 | s.slotted<<4
	for i, k := range s.known {
		t.known[i] = k>>8 | k<<8
	}
	return t
}

func (s state) less(o *state) bool {
	switch {
	case s.work[0] != o.work[0]:
		return s.work[0] < o.work[0]
	case s.cache[0] != o.cache[0]:
		return s.cache[0] < o.cache[0]
	case s.slotted != o.slotted:
		return s.slotted < o.slotted
	}
	for i := range s.known {
		if s.known[i] != o.known[i] {
			return s.known[i] < o.known[i]
		}
	}
	return false
}
