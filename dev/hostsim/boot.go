package hostsim

import (
	"slices"
	"time"
)

// Settle applies everything that the clock has passed. If the machine is to go down by now it calls
// Config.OnReboot, and tells so.
func (h *Host) Settle() bool {
	h.mu.Lock()
	due := h.goesDown(h.advance())
	if due {
		h.rebootAt = time.Time{}
	}
	h.mu.Unlock()
	if due && h.cfg.OnReboot != nil {
		h.cfg.OnReboot()
	}
	return due
}

// goesDown tells whether an accepted reboot is due.
func (h *Host) goesDown(now time.Time) bool {
	return !h.off && !h.rebootAt.IsZero() && !now.Before(h.rebootAt)
}

// rebootDue is goesDown for callers that have an answer to deliver first.
func (h *Host) rebootDue() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.goesDown(h.advance())
}

// PowerOff takes the machine down: what is in memory is gone, a running command with it, and requests
// get no answer until Boot.
func (h *Host) PowerOff() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.powerOff()
}

func (h *Host) powerOff() {
	h.advance()
	if h.off {
		return
	}
	h.off = true
	h.volatile = volatile{}
	// A hung updater doesn't outlive the machine.
	h.faults = slices.DeleteFunc(slices.Clone(h.faults), lockIsLost)
}

// Boot starts the machine, after a PowerOff if it is up: the boot loader picks a set and takes a try
// from it, there is a new boot ID, and the set is marked successful. If the set doesn't come up (F17)
// there is a second boot, with yet another boot ID, of the set that is left.
func (h *Host) Boot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.powerOff()
	now := h.cfg.Now()
	h.kernel()
	if h.bootFails(now) {
		h.kernel()
	}
	h.disk.running().Successful = true
	h.effective = h.settings
	h.off = false
}

func (h *Host) kernel() {
	h.disk.load()
	h.bootID = h.cfg.BootID()
	h.counters.Boots++
}

// bootFails is only asked of a set that never came up yet; the other one is known to work.
func (h *Host) bootFails(now time.Time) bool {
	set := h.disk.running()
	if set.Successful {
		return false
	}
	if !set.Good {
		return true
	}
	_, fails := h.strike(F17, now, func(f Fault) bool { return f.Version == "" || f.Version == set.Version })
	return fails
}

// The bodies of a refused reboot; what stands behind "stderr: " is an illustration.
const (
	bodyInhibited    = "Failed to reboot, exit code: 1, stderr: Operation inhibited by \"backup\" (PID 1234 \"backup\", user root), reason is \"running\".\n"
	bodyShutdownFail = "Unable to start shutdown: No such file or directory (os error 2)"
)

// reboot answers POST /actions/reboot.
func (h *Host) reboot(now time.Time) Answer {
	h.counters.RebootsAsked++
	if f, ok := h.strike(F14, now, nil); ok {
		if f.Variant == variantStart {
			return textAnswer(500, bodyShutdownFail)
		}
		return textAnswer(500, bodyInhibited)
	}
	if _, ok := h.strike(F16, now, nil); ok {
		return Answer{Status: 204}
	}
	a := Answer{Status: 204}
	at := now
	if f, ok := h.strike(F15, now, nil); ok {
		at = now.Add(time.Duration(f.Delay))
		switch f.Variant {
		case variantEOF:
			a = Answer{Cut: CutEOF}
		case variantReset:
			a = Answer{Cut: CutReset}
		}
	}
	if h.rebootAt.IsZero() || at.Before(h.rebootAt) {
		h.rebootAt = at
	}
	return a
}
