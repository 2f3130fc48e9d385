package agent

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

const (
	// tries is how often a command is put to a host that says no, or that leaves open if it heard it.
	tries = 3
	// spent is more looks than intent.Next waits for a command to leave a record.
	spent = 1 << 20
	// refreshAgain is when a refresh that failed is tried again, doubled with each failure.
	refreshAgain = 2 * time.Minute
)

// memory is what an agent knows beside the node and the host. It dies with the process.
type memory struct {
	started  time.Time
	bootID   string
	asked    intent.Asked
	affirmed string

	// doubt: nobody knows if the host heard the command in asked.
	doubt bool
	// attempt counts how often in a row the same command came to nothing.
	attempt struct {
		id      string
		command intent.Command
		count   int
	}

	refreshTried    time.Time
	refreshEvery    time.Duration
	refreshFailed   bool
	refreshFailures int

	lockedSince time.Time
	unsupported string
}

// observed takes in one look at the host.
func (m *memory) observed(now time.Time, h intent.Host) {
	if m.bootID != "" && m.bootID != h.BootID {
		*m = memory{started: m.started, refreshEvery: m.refreshEvery}
	}
	m.bootID = h.BootID
	if h.Locked {
		if m.lockedSince.IsZero() {
			m.lockedSince = now
		}
		return
	}
	m.lockedSince = time.Time{}
	if h.Last.Command == intent.CommandRefresh {
		m.refreshFailed = !h.Last.Success
	}
	switch {
	case m.asked.Command == "" || m.asked.Command == intent.CommandReboot:
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
				m.asked = intent.Asked{}
			}
		}
	}
}

// failedAgain counts an attempt that came to nothing; true if it was the last.
func (m *memory) failedAgain(id string, c intent.Command) bool {
	if m.attempt.id != id || m.attempt.command != c {
		m.attempt.id, m.attempt.command, m.attempt.count = id, c, 0
	}
	m.attempt.count++
	return m.attempt.count >= tries
}

// triedRefresh notes that a refresh was asked for.
func (m *memory) triedRefresh(now time.Time, every time.Duration) {
	m.refreshTried, m.refreshEvery = now, every
	m.refreshFailures++
	if !m.refreshFailed {
		m.refreshFailures = 0
	}
}

// nextRefresh is how long after the last try the next refresh is due.
func (m *memory) nextRefresh() time.Duration {
	if !m.refreshFailed {
		return m.refreshEvery
	}
	return min(m.refreshEvery, refreshAgain<<min(m.refreshFailures, 10))
}
