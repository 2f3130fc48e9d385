package controller

import (
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// said records what people are told.
type said struct{ events []string }

// Event is for Events.
func (s *said) Event(node, _ string, warning bool, reason, _ string) {
	s.events = append(s.events, fmt.Sprintf("%s %s %t", node, reason, warning))
}

// Notice is for Events.
func (s *said) Notice(bool, string, string) {}

// A wait for a budget, which is over in most cases before anybody looks, is told of once, and is a warning only when it
// lasts; what can't pass by itself is one at once.
func TestPatientTelling(t *testing.T) {
	events := &said{}
	term := &Term{c: TermConfig{Events: events}}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	waits := func(after time.Duration, reason policy.Reason, act intent.Act) {
		at = at.Add(after)
		term.tell(policy.Outcome{Nodes: []policy.Standing{{Node: "a", UID: "a", Reason: reason, Act: act}}}, at)
	}
	waits(0, policy.ReasonEvictionBlocked, "")
	waits(4*time.Minute, policy.ReasonEvictionBlocked, intent.ActDrain)
	assert.DeepEqual(t, events.events, []string{"a EvictionBlocked false"})
	waits(time.Minute, policy.ReasonEvictionBlocked, intent.ActDrain)
	waits(time.Hour, policy.ReasonEvictionBlocked, "")
	assert.DeepEqual(t, events.events, []string{"a EvictionBlocked false", "a EvictionBlocked true"})
	waits(time.Minute, policy.ReasonDraining, "")
	waits(time.Minute, policy.ReasonHostError, "")
	waits(time.Hour, policy.ReasonHostError, "")
	assert.DeepEqual(t, events.events[2:], []string{"a HostError true"})
	// A note tells of it itself.
	waits(time.Minute, policy.ReasonBudgetBlocks, intent.ActNote)
	waits(4*time.Minute, policy.ReasonBudgetBlocks, "")
	assert.Equal(t, len(events.events), 3)
	waits(time.Minute, policy.ReasonBudgetBlocks, "")
	assert.DeepEqual(t, events.events[3:], []string{"a BudgetBlocks true"})
}
