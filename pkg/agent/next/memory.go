package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// tries is how often a command is put to a host that says no, or that leaves open if it heard it.
	tries = 3
	// spent is more looks than Next waits for a command to leave a record.
	spent = 1 << 20
	// refreshAgain is when a refresh that failed is tried again, doubled with each failure.
	refreshAgain = 2 * time.Minute
	// refreshDoublings is more of them than any interval needs.
	refreshDoublings = 10
)

// Memory is what an agent's process knows beside the node and the host. It dies with the process, which
// costs time and no safety. It is a plain value: a copy goes its own way, and two can be compared.
type Memory struct {
	started  time.Time
	bootID   string
	asked    Asked
	affirmed string

	// doubt: nobody knows if the host heard the command in asked.
	doubt bool
	// attempt counts how often in a row the same command came to nothing.
	attempt struct {
		id      string
		command Command
		count   int
	}

	refreshTried    time.Time
	refreshEvery    time.Duration
	refreshFailed   bool
	refreshFailures int

	lockedSince time.Time
	unsupported string
}

// NewMemory is that of a process that started now.
func NewMemory(now time.Time, refreshEvery time.Duration) Memory {
	return Memory{started: now, refreshEvery: refreshEvery}
}

// View joins what the process knows with what it sees.
func (m *Memory) View(now time.Time, wanted marker.Intent, last marker.Report, h Host) View {
	return View{
		Now: now, Intent: wanted, Report: last, Host: h,
		Asked: m.asked, Started: m.started, Affirmed: m.affirmed,
		RefreshTried: m.refreshTried, RefreshEvery: m.nextRefresh(),
		LockedSince: m.lockedSince, Unsupported: m.unsupported,
	}
}

// Observed takes in one look at the host.
func (m *Memory) Observed(now time.Time, h Host) {
	if m.bootID != "" && m.bootID != h.BootID {
		*m = Memory{started: m.started, refreshEvery: m.refreshEvery}
	}
	m.bootID = h.BootID
	if h.Locked {
		if m.lockedSince.IsZero() {
			m.lockedSince = now
		}
		return
	}
	m.lockedSince = time.Time{}
	if h.Last.Command == CommandRefresh {
		m.refreshFailed = !h.Last.Success || h.SawNothing
	}
	switch {
	case m.asked.Command == "" || m.asked.Command == CommandReboot:
	case h.Last.Timestamp != m.asked.Before:
		m.doubt = false
	default:
		m.asked.Unchanged++
		if m.doubt && m.asked.Unchanged >= tries {
			// The host didn't hear it.
			m.doubt = false
			if m.failedAgain(m.asked.ID, m.asked.Command) {
				m.asked.Unchanged = spent
			} else {
				m.asked = Asked{}
			}
		}
	}
}

// Affirm takes in that `busy` for the intent was accepted from this process.
func (m *Memory) Affirm(id string) { m.affirmed = id }

// IsAffirmed tells if it was.
func (m *Memory) IsAffirmed(id string) bool { return m.affirmed == id }

// Heard says what became of a command that was sent to the host.
type Heard string

const (
	// HeardYes: the host began it.
	HeardYes Heard = "yes"
	// HeardNo: the host certainly did not hear it.
	HeardNo Heard = "no"
	// HeardMaybe: it is open if the host heard it.
	HeardMaybe Heard = "maybe"
	// HeardRefused: the host said no.
	HeardRefused Heard = "refused"
)

// Asking must be called just before c is sent, now: whatever the answer to a reboot that the host heard, it may go
// down, so it counts as asked already.
func (m *Memory) Asking(v View, now time.Time, c Command) {
	if c == CommandReboot {
		m.asked, m.doubt = askedOf(v, now, c), false
	}
}

func askedOf(v View, now time.Time, c Command) Asked {
	return Asked{Command: c, ID: v.Intent.ID, At: now, Before: v.Host.Last.Timestamp}
}

// Answered takes in what became of c, which was sent at now. Why and body are those of a refusal; refreshEvery is the interval
// from now on, should c be a refresh.
func (m *Memory) Answered(v View, now time.Time, c Command, heard Heard, why Refused, body string, refreshEvery time.Duration) {
	switch {
	case c == CommandReboot:
		// It counts already, whatever the answer says, unless it can't have been heard: then it is asked for again.
		if heard == HeardNo {
			m.asked = v.Asked
		}
		return
	case heard == HeardRefused && why == RefusedLocked:
		// What met another command's lock was never begun.
		return
	}
	if c == CommandRefresh {
		if heard == HeardNo || heard == HeardRefused && why != RefusedUnsupported {
			// The host didn't begin it, so nothing was learned.
			refreshEvery = min(refreshEvery, refreshAgain)
		}
		m.triedRefresh(now, refreshEvery)
	}
	asked := askedOf(v, now, c)
	switch heard {
	case HeardYes:
		// A host that begins a command can be updated, whatever it said before.
		m.asked, m.doubt, m.unsupported = asked, false, ""
	case HeardNo:
	case HeardMaybe:
		m.asked, m.doubt = asked, true
	case HeardRefused:
		asked.Refused = body
		if why == RefusedUnsupported {
			m.unsupported = body
			if m.unsupported == "" {
				m.unsupported = "it has no Update API, as Bottlerocket before 0.4.1"
			}
		}
		if why == RefusedUnsupported || m.failedAgain(asked.ID, c) {
			// It ends as a command that left no record.
			asked.Unchanged = spent
			m.asked, m.doubt = asked, false
		}
	}
}

// failedAgain counts an attempt that came to nothing; true if it was the last.
func (m *Memory) failedAgain(id string, c Command) bool {
	if m.attempt.id != id || m.attempt.command != c {
		m.attempt.id, m.attempt.command, m.attempt.count = id, c, 0
	}
	m.attempt.count++
	return m.attempt.count >= tries
}

// triedRefresh notes that a refresh was asked for.
func (m *Memory) triedRefresh(now time.Time, every time.Duration) {
	m.refreshTried, m.refreshEvery = now, every
	m.refreshFailures++
	if !m.refreshFailed {
		m.refreshFailures = 0
	}
}

// nextRefresh is how long after the last try the next refresh is due.
func (m *Memory) nextRefresh() time.Duration {
	if !m.refreshFailed {
		return m.refreshEvery
	}
	return min(m.refreshEvery, refreshAgain<<min(m.refreshFailures, refreshDoublings))
}

// Terms are other words for the same: moments for moments, and names for intents, boots and the host's records.
type Terms struct {
	Moment              func(time.Time) time.Time
	ID, Boot, Timestamp func(string) string
}

// In returns m in other terms, with counts cut where a higher one makes no difference any more. Two
// memories that are equal in such terms lead to the same steps.
func (m Memory) In(t Terms) Memory {
	m.started, m.refreshTried, m.lockedSince = t.Moment(m.started), t.Moment(m.refreshTried), t.Moment(m.lockedSince)
	m.bootID = t.Boot(m.bootID)
	m.asked.At, m.asked.ID, m.asked.Before = t.Moment(m.asked.At), t.ID(m.asked.ID), t.Timestamp(m.asked.Before)
	m.asked.Unchanged = min(m.asked.Unchanged, max(tries, unchangedLooks))
	m.affirmed, m.attempt.id = t.ID(m.affirmed), t.ID(m.attempt.id)
	m.attempt.count = min(m.attempt.count, tries)
	m.refreshFailures = min(m.refreshFailures, refreshDoublings)
	return m
}
