package model

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
)

// The versions that there are: every host begins with the older one and is offered the newer one.
const (
	oldVersion = "1.0.0"
	newVersion = "1.1.0"
)

type momentOf = func(time.Time) time.Time

// activates reports whether the host has an update activated, or is about to.
func (h *host) activates() bool {
	return h.state == next.HostReady || h.running == next.CommandActivate
}

// observe is one look at the host.
func (h *host) observe() next.Host {
	o := next.Host{BootID: h.boot, Version: h.version}
	if h.running != "" {
		o.Locked = true
		return o
	}
	o.State, o.Staged, o.Last = h.state, h.staged, h.last
	o.ChosenKnown = h.last.Command == next.CommandRefresh && h.last.Success && h.state != next.HostIdle
	if o.ChosenKnown {
		o.Chosen = h.chosen
	}
	return o
}

func refused(why next.Refusal) next.Result {
	return next.Result{Delivery: next.DeliveryRefused, Why: why, Body: string(why)}
}

// start is the host's answer to a command; a refresh is over at once.
func (h *host) start(c next.Command, id string) next.Result {
	if c == next.CommandReboot {
		if !h.leaving {
			h.leaving, h.leavingFor = true, id
		}
		return next.Result{Delivery: next.Delivered}
	}
	if h.running != "" {
		return refused(next.RefusedLocked)
	}
	if h.state == next.HostUninitialized {
		h.state = next.HostIdle
	}
	allowed := true
	switch c {
	case next.CommandPrepare:
		allowed = h.state == next.HostAvailable || h.state == next.HostStaged
		if allowed && h.chosen == "" {
			return refused(next.RefusedMissing)
		}
	case next.CommandActivate:
		allowed = h.state == next.HostStaged
	case next.CommandDeactivate:
		allowed = h.state == next.HostReady
	case next.CommandRefresh, next.CommandReboot, next.CommandLock:
	}
	if !allowed {
		return refused(next.RefusedState)
	}
	h.running = c
	if c == next.CommandRefresh {
		h.finish(true)
	}
	return next.Result{Delivery: next.Delivered}
}

// finish ends the command that runs.
func (h *host) finish(well bool) {
	c := h.running
	h.running = ""
	h.last = next.LastCommand{Command: c, Success: well, Timestamp: fresh}
	if !well {
		h.last.Problem = "it failed"
		return
	}
	switch c {
	case next.CommandRefresh:
		h.chosen = ""
		if h.version != newVersion {
			h.chosen = newVersion
		}
		if h.state != next.HostStaged && h.state != next.HostReady {
			h.state = next.HostIdle
			if h.chosen != "" {
				h.state = next.HostAvailable
			}
		}
	case next.CommandPrepare:
		h.state, h.staged, h.last.Started = next.HostStaged, h.chosen, h.chosen
	case next.CommandActivate:
		h.state = next.HostReady
	case next.CommandDeactivate:
		h.state = next.HostStaged
	case next.CommandReboot, next.CommandLock:
		// It isn't done before the host goes down, and a lock is no command of the host's.
	}
}

// down is what is left of a host that went down, boot what comes up.
func (h *host) down() {
	*h = host{boot: h.boot, version: h.version, state: h.state, staged: h.staged}
	if h.state != next.HostReady {
		h.state, h.staged = "", ""
	}
}

func (h *host) comeUp(rolledBack bool) {
	version := h.version
	if h.state == next.HostReady && !rolledBack {
		version = h.staged
	}
	*h = host{up: true, boot: fresh, version: version}
}

// seen are the versions of the model: nothing depends on when they were seen first.
var seen = map[string]time.Time{oldVersion: {}, newVersion: {}}
