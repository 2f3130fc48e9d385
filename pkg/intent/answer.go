package intent

import "time"

// How patient an agent is before it answers `error`. The controller's deadlines must be longer.
const (
	// BusyPatience is how long an agent waits for a host that another command has locked.
	BusyPatience = 25 * time.Minute
	// RebootPatience is how long after its last reboot request an agent still expects the host to go
	// down: inhibitors may hold a shutdown for 300 s (docs/host-api.md#reboot).
	RebootPatience = 10 * time.Minute
)

// What an agent's message begins with.
const (
	// Unsupported: the host can't be updated in place.
	Unsupported = "in-place updates are not supported by this host: "
	// AnotherUpdater: the host has an update that the Node tells nothing of.
	AnotherUpdater = "another updater: "
	// HasActivated: a reset undoes that update.
	HasActivated = AnotherUpdater + "the host has activated "
	// ActivatingAgain: the host could not load its repository, and is asked again.
	ActivatingAgain = "activating again: "
)
