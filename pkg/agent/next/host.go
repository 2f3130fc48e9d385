package next

import "time"

// HostState is the host's own word on its update, closed over the four states of the Update API
// (core-kit sources/api/thar-be-updates, UpdateState) and HostUninitialized.
type HostState string

const (
	// HostUninitialized: the host has kept no status since it booted; only a refresh makes one.
	HostUninitialized HostState = ""
	// HostIdle: nothing is chosen.
	HostIdle HostState = "Idle"
	// HostAvailable: an update is chosen and can be prepared.
	HostAvailable HostState = "Available"
	// HostStaged: the inactive partition set was written in this boot.
	HostStaged HostState = "Staged"
	// HostReady: the other partition set boots next.
	HostReady HostState = "Ready"
)

// Command is what an agent may ask of its host.
type Command string

const (
	CommandRefresh    Command = "refresh"
	CommandPrepare    Command = "prepare"
	CommandActivate   Command = "activate"
	CommandDeactivate Command = "deactivate"
	CommandReboot     Command = "reboot"
)

// Host is what one look at a host found, all of it read within one observation.
type Host struct {
	// BootID is the kernel's; it is never empty.
	BootID string
	// Version is the running version: plain semver, no leading v.
	Version string
	// Variant and Arch name the image, for people.
	Variant, Arch string
	// Locked: a command is running (423). State, Chosen, Staged and Last are then unknown and zero.
	Locked bool
	// State is the host's own word.
	State HostState
	// Chosen is the version that the host would prepare; empty when none is chosen. It is only
	// meaningful when Last is a successful refresh and State is not HostIdle, which ChosenKnown says:
	// a failed refresh leaves an old choice behind (docs/host-api.md#what-each-command-runs).
	Chosen      string
	ChosenKnown bool
	// SawNothing: Last is a successful refresh after which the host names no release at all, not even the one that it
	// runs. The first refresh of a boot that didn't look is recorded so (docs/host-api.md: F34).
	SawNothing bool
	// Staged is the version that the host recorded for its inactive set; empty when there is none.
	// The record can be wrong; Last.Started tells what was really written.
	Staged string
	// ForeignBoot: the running set is not the next to boot although State is not HostReady, so
	// something outside the Update API activated another set.
	ForeignBoot bool
	// Last is the last finished command; its zero value means none was finished since the boot.
	Last LastCommand
}

// LastCommand is the host's record of its last finished command.
type LastCommand struct {
	// Command is empty when the host has no record.
	Command Command
	// Success is true only for a recorded success.
	Success bool
	// Timestamp is the host's own, compared for change and never for order (clocks step at boot).
	Timestamp string
	// Started is the version in "Starting update to V" of a prepare's output; empty if it isn't there.
	Started string
	// Problem is what a failed command printed, in one line of at most 200 bytes: its beginning and its end.
	Problem string
	// OfRepository: what failed was to load the repository, which every command does first. It says nothing about the
	// version, and passes by itself.
	OfRepository bool
}

// Refused says why a host didn't start a command.
type Refused string

const (
	// RefusedLocked: another command is running (423); nothing was started, ask again later.
	RefusedLocked Refused = "locked"
	// RefusedState: the host's state doesn't allow the command (409); look again before asking again.
	RefusedState Refused = "state"
	// RefusedMissing: what the command needs is gone (404 with a text): refresh first.
	RefusedMissing Refused = "missing"
	// RefusedUnsupported: this host can't update in place; asking again is no use.
	RefusedUnsupported Refused = "unsupported"
	// RefusedFailed: any other answer that says no.
	RefusedFailed Refused = "failed"
)

// Asked is an agent's volatile memory of the last command that it put to the host. It only refines
// what is derived from the marks and the host: losing it, with the process, costs time and no safety.
type Asked struct {
	// Command is empty when this process has asked for nothing yet.
	Command Command
	// ID is the intent for which it was asked; empty for a refresh of the agent's own accord.
	ID string
	// At is the agent's clock when the request was sent.
	At time.Time
	// Before is Last.Timestamp as seen just before.
	Before string
	// Unchanged counts the looks since At that found the host unlocked and Last unchanged.
	Unchanged int
	// Refused is what the host said, when it refused the command for good.
	Refused string
}
