package model

// index finds the number of a state: a hash table of numbers with open addressing.
type index struct {
	table []uint32
	used  int
}

func newIndex() *index { return &index{table: filled(1 << 16)} }

func filled(n int) []uint32 {
	t := make([]uint32, n)
	for i := range t {
		t[i] = none
	}
	return t
}

func (s *state) hash() uint64 {
	const prime = 0x9E3779B97F4A7C15
	h := uint64(prime)
	mix := func(v uint64) {
		h ^= v
		h *= 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	mix(uint64(s.columns[0])<<32 | uint64(s.columns[1]))
	mix(uint64(s.columns[2])<<32 | uint64(s.work[0]))
	mix(uint64(s.work[1])<<32 | uint64(s.slots)<<16 | uint64(s.cache[0]))
	mix(uint64(s.cache[1])<<48 | uint64(s.known[0])<<32 | uint64(s.known[1])<<16 | uint64(s.known[2]))
	mix(uint64(s.slotted)<<16 | uint64(s.victims)<<8 | uint64(s.faults))
	return h
}

// add returns the number of s, which is the next one if s is new.
func (x *index) add(states *rows[state], s state) (uint32, bool) {
	if 4*x.used >= 3*len(x.table) {
		x.grow(states)
	}
	mask := uint64(len(x.table) - 1)
	for at := s.hash() & mask; ; at = (at + 1) & mask {
		switch n := x.table[at]; {
		case n == none:
			x.table[at] = uint32(states.n)
			x.used++
			return uint32(states.n), true
		case *states.at(int(n)) == s:
			return n, false
		}
	}
}

func (x *index) grow(states *rows[state]) {
	x.table = filled(2 * len(x.table))
	mask := uint64(len(x.table) - 1)
	for n := range states.n {
		at := states.at(n).hash() & mask
		for x.table[at] != none {
			at = (at + 1) & mask
		}
		x.table[at] = uint32(n)
	}
}
