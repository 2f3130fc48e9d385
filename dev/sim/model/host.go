package model

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// The versions that there are: every host begins with the older one and is offered the newer one.
const (
	oldVersion = "1.0.0"
	newVersion = "1.1.0"
)

type momentOf = func(time.Time) time.Time

// activates tells if the host has an update activated, or is about to.
func (h *host) activates() bool {
	return h.state == intent.HostReady || h.running == intent.CommandActivate
}

// observe is one look at the host.
func (h *host) observe() intent.Host {
	o := intent.Host{BootID: h.boot, Version: h.version}
	if h.running != "" {
		o.Locked = true
		return o
	}
	o.State, o.Staged, o.Last = h.state, h.staged, h.last
	o.ChosenKnown = h.last.Command == intent.CommandRefresh && h.last.Success && h.state != intent.HostIdle
	if o.ChosenKnown {
		o.Chosen = h.chosen
	}
	return o
}

// start is the host's answer to a command; a refresh is over at once.
func (h *host) start(c intent.Command, id string) (intent.Heard, intent.Refused) {
	if c == intent.CommandReboot {
		if !h.leaving {
			h.leaving, h.leavingFor = true, id
		}
		return intent.HeardYes, ""
	}
	if h.running != "" {
		return intent.HeardRefused, intent.RefusedLocked
	}
	if h.state == intent.HostUninitialized {
		h.state = intent.HostIdle
	}
	allowed := true
	switch c {
	case intent.CommandPrepare:
		allowed = h.state == intent.HostAvailable || h.state == intent.HostStaged
		if allowed && h.chosen == "" {
			return intent.HeardRefused, intent.RefusedMissing
		}
	case intent.CommandActivate:
		allowed = h.state == intent.HostStaged
	case intent.CommandDeactivate:
		allowed = h.state == intent.HostReady
	}
	if !allowed {
		return intent.HeardRefused, intent.RefusedState
	}
	h.running = c
	if c == intent.CommandRefresh {
		h.finish(true)
	}
	return intent.HeardYes, ""
}

// finish ends the command that runs.
func (h *host) finish(well bool) {
	c := h.running
	h.running = ""
	h.last = intent.LastCommand{Command: c, Success: well, Timestamp: fresh}
	if !well {
		h.last.Problem = "it failed"
		return
	}
	switch c {
	case intent.CommandRefresh:
		h.chosen = ""
		if h.version != newVersion {
			h.chosen = newVersion
		}
		if h.state != intent.HostStaged && h.state != intent.HostReady {
			h.state = intent.HostIdle
			if h.chosen != "" {
				h.state = intent.HostAvailable
			}
		}
	case intent.CommandPrepare:
		h.state, h.staged, h.last.Started = intent.HostStaged, h.chosen, h.chosen
	case intent.CommandActivate:
		h.state = intent.HostReady
	case intent.CommandDeactivate:
		h.state = intent.HostStaged
	}
}

// down is what is left of a host that went down, boot what comes up.
func (h *host) down() {
	*h = host{boot: h.boot, version: h.version, state: h.state, staged: h.staged}
	if h.state != intent.HostReady {
		h.state, h.staged = "", ""
	}
}

func (h *host) comeUp(rolledBack bool) {
	version := h.version
	if h.state == intent.HostReady && !rolledBack {
		version = h.staged
	}
	*h = host{up: true, boot: fresh, version: version}
}

// seen are the versions of the model: nothing depends on when they were seen first.
var seen = map[string]time.Time{oldVersion: {}, newVersion: {}}
