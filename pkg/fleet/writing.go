package fleet

import "time"

// WriteTrouble is what this process has had with its writes to one node lately: the API server refused them, or took
// longer than a pass waits for one, or they met one conflict after another.
type WriteTrouble struct {
	// Message is a sentence on the last of them.
	Message string
	// Since is since when none has succeeded; zero if the last one did.
	Since time.Time
	// Until is before when the node is not written to again.
	Until time.Time
	// Calm is when the trouble is over if no other comes. Before that the node is given no slot, and no pass waits for a
	// write to it.
	Calm time.Time
	// Asking: a write is under way that no pass waits for.
	Asking bool
}
