package controller

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// said records the Events.
type said struct{ events []string }

// Event is for Events.
func (s *said) Event(node, _ string, warning bool, reason, _ string) {
	s.events = append(s.events, fmt.Sprintf("%s %s %t", node, reason, warning))
}

// Once is for Events.
func (s *said) Once(_, node, uid string, warning bool, reason, message string) {
	s.Event(node, uid, warning, reason, message)
}

// Notice is for Events.
func (s *said) Notice(warning bool, reason, _ string) {
	s.events = append(s.events, fmt.Sprintf("policy %s %t", reason, warning))
}

// A wait for a budget, which is over in most cases before a user looks, is told of once, and is a warning only when it
// lasts; what can't pass by itself is one at once.
func TestPatientTelling(t *testing.T) {
	events := &said{}
	term := &Term{c: TermConfig{Events: events}}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	waits := func(after time.Duration, reason plan.Reason, act intent.Act) {
		at = at.Add(after)
		term.announceWaits(plan.Plan{Nodes: []plan.Decision{{Node: "a", UID: "a", Reason: reason, Act: act}}}, at)
	}
	waits(0, plan.ReasonEvictionBlocked, "")
	waits(4*time.Minute, plan.ReasonEvictionBlocked, intent.ActDrain)
	assert.DeepEqual(t, events.events, []string{"a EvictionBlocked false"})
	waits(time.Minute, plan.ReasonEvictionBlocked, intent.ActDrain)
	waits(time.Hour, plan.ReasonEvictionBlocked, "")
	assert.DeepEqual(t, events.events, []string{"a EvictionBlocked false", "a EvictionBlocked true"})
	waits(time.Minute, plan.ReasonDraining, "")
	waits(time.Minute, plan.ReasonHostError, "")
	waits(time.Hour, plan.ReasonHostError, "")
	assert.DeepEqual(t, events.events[2:], []string{"a HostError true"})
	// A note tells of it itself.
	waits(time.Minute, plan.ReasonBudgetBlocks, intent.ActNote)
	waits(4*time.Minute, plan.ReasonBudgetBlocks, "")
	assert.Equal(t, len(events.events), 3)
	waits(time.Minute, plan.ReasonBudgetBlocks, "")
	assert.DeepEqual(t, events.events[3:], []string{"a BudgetBlocks true"})
}

// What a Node shows of a step is told once, and not for ever.
func TestStepsOnNodesAreTold(t *testing.T) {
	events := &said{}
	term := &Term{c: TermConfig{Events: events}, shown: map[string]time.Time{}}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	ended := func(ago time.Duration, reason plan.Reason) fleet.Node {
		n := fleet.Node{Name: "a", UID: "a"}
		n.Marks.History = []marker.Attempt{{Version: "1.2.0", Outcome: marker.OutcomeFailed, Reason: string(reason), Ended: at.Add(-ago)}}
		return n
	}
	see := func(n fleet.Node) { term.announceSteps(fleet.Snapshot{Now: at, Nodes: []fleet.Node{n}}) }
	see(ended(11*time.Minute, plan.ReasonRolledBack))
	assert.Equal(t, len(events.events), 0, "long ago")
	lately := ended(9*time.Minute, plan.ReasonRolledBack)
	see(lately)
	see(lately)
	assert.DeepEqual(t, events.events, []string{"a RolledBack true"})
	step := plan.Step{Node: "a", UID: "a", Act: intent.ActAbandon, Reason: plan.ReasonPaused, Change: &plan.Change{Marks: ended(0, plan.ReasonPaused).Marks}}
	term.announceStep(step)
	// A watch that lags still shows what was told before.
	see(lately)
	see(ended(0, plan.ReasonPaused))
	assert.DeepEqual(t, events.events, []string{"a RolledBack true", "a Paused false"})
	at = at.Add(time.Hour)
	see(ended(time.Hour, plan.ReasonPaused))
	assert.Equal(t, len(term.shown), 0, "what is remembered doesn't grow")
}

// A warning that counts something else now is no second Event; one of something else is, and so is one that came back.
func TestWarningIsToldOnce(t *testing.T) {
	events, set := &said{}, policy.DefaultSettings()
	set.Groups = []policy.Group{{Name: "canary", Selector: policy.Selector{{Key: "stage", Operator: policy.Exists}}, Rules: set.Rules}}
	term := &Term{c: TermConfig{Events: events}}
	pass := func(warnings int, names ...string) string {
		var s fleet.Snapshot
		for _, name := range names {
			s.Nodes = append(s.Nodes, fleet.Node{Name: name, UID: name, Interface: fleet.InterfaceUpdateAPI})
		}
		out := planner.Plan(s, set)
		term.announcePolicy(s, out)
		assert.Equal(t, len(events.events), warnings, "%q", out.Troubles())
		return fmt.Sprint(out.Troubles())
	}
	assert.Assert(t, pass(2, "a", "b") != pass(2, "a", "b", "c"), "it counts")
	pass(2)
	pass(3, "a")
}

// An admission policy that doesn't hold the controller's account is told, once, and stands in the plan until it does; what
// could not be found out is asked again.
func TestMissingAdmissionPolicyIsTold(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	events, asked := &said{}, 0
	var stands bool
	err := errors.New("no such node")
	term := &Term{changed: make(chan struct{}, 1), admission: works[access.Enforcement]{}, c: TermConfig{Events: events, Log: log, Spawn: func(f func()) { f() }, Now: func() time.Time { return at },
		Restricted: func(_ context.Context, node string) (bool, error) {
			assert.Equal(t, node, "a")
			asked++
			return stands, err
		}}}
	after := func(d time.Duration) string {
		at = at.Add(d)
		term.askForAdmission(t.Context(), "a", at)
		var s fleet.Snapshot
		if term.admission[wholeFleet].found.Missing {
			s.AdmissionProblem = notRestricted
		}
		out := planner.Plan(s, policy.DefaultSettings())
		term.announcePolicy(s, out)
		return out.String()
	}
	const warning = "warning: no admission policy holds the controller's account"
	after(0)
	after(30 * time.Second)
	assert.Equal(t, asked, 1)
	err = nil
	assert.Assert(t, !strings.Contains(after(30*time.Second), warning), "the policy may have been applied a moment ago")
	assert.Assert(t, term.askForAdmission(t.Context(), "a", at).Equal(at.Add(10*time.Second)))
	assert.Assert(t, strings.Contains(after(10*time.Second), warning))
	after(time.Minute)
	assert.Equal(t, asked, 3)
	assert.DeepEqual(t, events.events, []string{"policy AdmissionPolicyMissing true"})
	assert.Assert(t, term.askForAdmission(t.Context(), "a", at).Equal(at.Add(4*time.Minute)), "it is asked for again though nothing else happens")
	stands = true
	assert.Assert(t, !strings.Contains(after(4*time.Minute), warning))
	after(59 * time.Minute)
	assert.Equal(t, asked, 4)
	stands = false
	after(time.Minute)
	after(10 * time.Second)
	assert.DeepEqual(t, events.events, []string{"policy AdmissionPolicyMissing true", "policy AdmissionPolicyMissing true"})
	term.c.Spawn = func(func()) {}
	for range 2 {
		assert.Assert(t, term.askForAdmission(t.Context(), "a", at.Add(time.Hour)).IsZero(), "the end of the test asks for a pass")
	}
}
