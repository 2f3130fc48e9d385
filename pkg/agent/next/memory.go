package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// tries is how often a command is sent to a host that refuses it, or may not have received it.
	tries = 3
	// spent is more looks than Decide waits for a command to leave a record.
	spent = 1 << 20
	// refreshAgain is when a refresh that failed is tried again, doubled with each failure.
	refreshAgain = 2 * time.Minute
	// leaveOut is how long optional facts are left out after they were refused. An upgrade replaces proxies and admission
	// policies in minutes, and trying again costs one refused write.
	leaveOut = 10 * time.Minute
	// refreshDoublings is more of them than any interval needs.
	refreshDoublings = 10
)

// Memory is what an agent's process knows besides the node and the host. Losing it, with the process, costs time and no
// safety. It is a plain value: copies are independent, and two can be compared.
type Memory struct {
	started  time.Time
	bootID   string
	asked    Asked
	affirmed string

	// uncertain: the host may not have received the command in asked.
	uncertain bool
	// attempt counts how often in a row the same command failed to begin.
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
	locking     Locking
	leaveOut    time.Time
}

// NewMemory returns the memory of a process that starts now.
func NewMemory(now time.Time, refreshEvery time.Duration) Memory {
	return Memory{started: now, refreshEvery: refreshEvery}
}

// View joins what the process remembers with what it sees.
func (m *Memory) View(now time.Time, wanted marker.Intent, last marker.Report, h Host) View {
	return View{
		Now: now, Intent: wanted, Report: last, Host: h,
		Asked: m.asked, Started: m.started, Affirmed: m.affirmed,
		RefreshTried: m.refreshTried, RefreshEvery: m.nextRefresh(),
		LockedSince: m.lockedSince, Unsupported: m.unsupported, LeaveOut: m.leaveOut,
	}
}

// LeaveOut notes that the optional facts were refused: they are left out for a while, and written again then.
func (m *Memory) LeaveOut(now time.Time) { m.leaveOut = now.Add(leaveOut) }

// Observed notes one look at the host.
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
		m.uncertain = false
	default:
		m.asked.Unchanged++
		if m.uncertain && m.asked.Unchanged >= tries {
			// The host didn't receive it.
			m.uncertain = false
			if m.failedAgain(m.asked.ID, m.asked.Command) {
				m.asked.Unchanged = spent
			} else {
				m.asked = Asked{}
			}
		}
	}
}

// Affirm notes that this process wrote `busy` for the intent, and that it was accepted.
func (m *Memory) Affirm(id string) { m.affirmed = id }

// IsAffirmed reports whether Affirm noted the intent last.
func (m *Memory) IsAffirmed(id string) bool { return m.affirmed == id }

// Delivery is whether the host began a command that was sent to it.
type Delivery string

const (
	// Delivered: the host began it.
	Delivered Delivery = "delivered"
	// NotDelivered: the host certainly did not receive it.
	NotDelivered Delivery = "not delivered"
	// DeliveryUnknown: the host may have received it.
	DeliveryUnknown Delivery = "unknown"
	// DeliveryRefused: the host refused it.
	DeliveryRefused Delivery = "refused"
)

// Result is the host's answer to a command.
type Result struct {
	Delivery Delivery
	// Why and Body are those of a refusal.
	Why  Refusal
	Body string
}

// Sending notes that c is about to be sent. A reboot counts as asked for from here on: whatever the answer to it, the
// host may go down if it received it.
func (m *Memory) Sending(v View, now time.Time, c Command) {
	if c == CommandReboot {
		m.asked, m.uncertain = askedOf(v, now, c), false
	}
}

func askedOf(v View, now time.Time, c Command) Asked {
	return Asked{Command: c, ID: v.Intent.ID, At: now, Before: v.Host.Last.Timestamp}
}

// Sent notes the result of c, which was sent at now; after a refresh, refreshEvery is the interval until the next.
func (m *Memory) Sent(v View, now time.Time, c Command, r Result, refreshEvery time.Duration) {
	switch {
	case c == CommandLock:
		m.sentLock(v, r)
		return
	case c == CommandReboot:
		// A reboot counts as asked for already, unless the host certainly did not receive it: then it is sent again.
		if r.Delivery == NotDelivered {
			m.asked = v.Asked
		}
		return
	case r.Delivery == DeliveryRefused && r.Why == RefusedLocked:
		// Another command holds the lock, so this one never began.
		return
	}
	if c == CommandRefresh {
		if r.Delivery == NotDelivered || r.Delivery == DeliveryRefused && r.Why != RefusedUnsupported {
			// The host didn't begin it, so nothing was learned.
			refreshEvery = min(refreshEvery, refreshAgain)
		}
		m.triedRefresh(now, refreshEvery)
	}
	asked := askedOf(v, now, c)
	switch r.Delivery {
	case Delivered:
		// A host that begins a command can be updated, whatever it said before.
		m.asked, m.uncertain, m.unsupported = asked, false, ""
	case NotDelivered:
	case DeliveryUnknown:
		m.asked, m.uncertain = asked, true
	case DeliveryRefused:
		asked.Refused = r.Body
		if r.Why == RefusedUnsupported {
			m.unsupported = r.Body
			if m.unsupported == "" {
				m.unsupported = "it has no Update API, as Bottlerocket before 0.4.1"
			}
		}
		if r.Why == RefusedUnsupported || m.failedAgain(asked.ID, c) {
			// It ends as a command that left no record.
			asked.Unchanged = spent
			m.asked, m.uncertain = asked, false
		}
	}
}

// failedAgain counts a failure to begin c for the intent, and reports whether it was the last try.
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

// Terms replace the times and identifiers in a memory: intents, boots, and the timestamps of the host's records.
type Terms struct {
	Moment              func(time.Time) time.Time
	ID, Boot, Timestamp func(string) string
}

// In returns m in other terms, with counts limited to the highest that makes a difference. Two memories that are equal
// in the same terms lead to the same steps, so that an exhaustive search needs only one of them.
func (m Memory) In(t Terms) Memory {
	m.started, m.refreshTried, m.lockedSince = t.Moment(m.started), t.Moment(m.refreshTried), t.Moment(m.lockedSince)
	m.leaveOut = t.Moment(m.leaveOut)
	m.bootID = t.Boot(m.bootID)
	m.asked.At, m.asked.ID, m.asked.Before = t.Moment(m.asked.At), t.ID(m.asked.ID), t.Timestamp(m.asked.Before)
	m.asked.Unchanged = min(m.asked.Unchanged, max(tries, unchangedLooks))
	m.affirmed, m.attempt.id = t.ID(m.affirmed), t.ID(m.attempt.id)
	m.attempt.count = min(m.attempt.count, tries)
	m.refreshFailures = min(m.refreshFailures, refreshDoublings)
	m.locking.ID, m.locking.Since, m.locking.Before = t.ID(m.locking.ID), t.Moment(m.locking.Since), t.Timestamp(m.locking.Before)
	m.locking.Tries = min(m.locking.Tries, tries)
	return m
}
