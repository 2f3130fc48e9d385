package fleet

import "time"

// WriteTrouble is what happened lately to this process's writes to one node: the API server refused them, or took
// longer than a pass waits, or they met one conflict after another.
type WriteTrouble struct {
	// Message is a sentence on the last failure.
	Message string
	// Since is since when no write has succeeded; zero if the last one did.
	Since time.Time
	// Until is when the node may be written to again.
	Until time.Time
	// ClearAt is when the trouble is over if no other write fails. Until then the node gets no slot, and no pass waits
	// for a write to it.
	ClearAt time.Time
	// InFlight: a write is under way that no pass waits for.
	InFlight bool
}
