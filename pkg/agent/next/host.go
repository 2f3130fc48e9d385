package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// HostState is the state of the host's update as the host names it: one of the four of the Update API
// (core-kit sources/api/thar-be-updates, UpdateState), or HostUninitialized.
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
	// CommandLock makes the setting version-lock a value. Unlike the others it is over with its answer, and leaves no
	// record.
	CommandLock Command = "lock"
)

// Host is what one look at a host found, all of it read within one observation.
type Host struct {
	// BootID is the kernel's boot ID; it is never empty.
	BootID string
	// Version is the running version: plain semver, no leading v.
	Version string
	// Variant and Arch name the image, for display.
	Variant, Arch string
	// Locked: a command is running (423). What follows is then unknown and zero.
	Locked bool
	// State is as the host names it.
	State HostState
	// Chosen is the version that the host would prepare, empty when none is chosen. It only counts with ChosenKnown: when
	// Last is a successful refresh and State is not HostIdle. A failed refresh leaves an old choice behind
	// (docs/host-api.md#what-each-command-runs).
	Chosen      string
	ChosenKnown bool
	// SawNothing: Last is a successful refresh after which the host lists no release at all, not even the one that it
	// runs. The first refresh of a boot that didn't look is recorded so (docs/host-api.md: F34).
	SawNothing bool
	// Staged is the version that the host recorded for its inactive set; empty when there is none.
	// The record can be wrong; Last.Started is what was really written.
	Staged string
	// Offered is what the host lists, of its last look in this boot that found anything; empty if there was none.
	Offered marker.Offers
	// VersionLock and WaveSeed are settings, as they stand; empty if the host doesn't say them.
	VersionLock, WaveSeed string
	// ForeignBoot: the running set is not the next to boot although State is not HostReady, so another set was activated
	// outside the Update API.
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
	// OfRepository: the command failed while it loaded the repository, which every command does first. That says nothing
	// about the version, and passes by itself.
	OfRepository bool
}

// Refusal is why a host didn't start a command.
type Refusal string

const (
	// RefusedLocked: another command is running (423); ask again later.
	RefusedLocked Refusal = "locked"
	// RefusedState: the host's state doesn't allow the command (409); look again before asking again.
	RefusedState Refusal = "state"
	// RefusedMissing: what the command needs is gone (404 with a text); refresh first.
	RefusedMissing Refusal = "missing"
	// RefusedUnsupported: this host can't update in place; don't ask again.
	RefusedUnsupported Refusal = "unsupported"
	// RefusedFailed: any other refusal.
	RefusedFailed Refusal = "failed"
)

// Asked is the last command that an agent's process sent to the host. It only refines what is derived from the marks
// and the host: losing it, with the process, costs time and no safety.
type Asked struct {
	// Command is empty when this process has asked for nothing yet.
	Command Command
	// ID is the intent for which it was asked; empty for a refresh of the agent's own accord.
	ID string
	// At is the agent's clock when the request was sent.
	At time.Time
	// Before is Last.Timestamp as it was just before.
	Before string
	// Unchanged counts the looks since At that found the host unlocked and Last unchanged.
	Unchanged int
	// Refused is the host's answer, when it refused the command for good.
	Refused string
}
