package telemetry

import "sync"

// Other is the label value that stands for all that a Bounded has no room for.
const Other = "other"

// Bounded keeps the values of a metric's label few, in all that a process ever shows: what agents and hosts say may be
// anything, and each new value would be a series of its own for as long as Prometheus keeps its data.
type Bounded struct {
	max int

	mu    sync.Mutex
	known map[string]bool
}

// NewBounded returns one with room for so many values.
func NewBounded(most int) *Bounded { return &Bounded{max: most, known: map[string]bool{}} }

// Value returns the value itself if it is one of the first that were asked for, and Other after those.
func (b *Bounded) Value(v string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[v] {
		return v
	}
	if len(b.known) >= b.max {
		return Other
	}
	b.known[v] = true
	return v
}
