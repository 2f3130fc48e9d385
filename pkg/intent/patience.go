package intent

import "time"

// How long an agent waits before it answers `error`. The controller's deadlines must be longer.
const (
	// BusyPatience is how long an agent waits for a host that another command has locked.
	BusyPatience = 25 * time.Minute
	// RebootPatience is how long after its last reboot request an agent still expects the host to go
	// down: inhibitors may hold a shutdown for 300 s (docs/host-api.md#reboot).
	RebootPatience = 10 * time.Minute
)
