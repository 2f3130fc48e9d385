package check_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/budget"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/check"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// A pause says whether the fleet or which of its groups is paused, and why (S9).
func TestPaused(t *testing.T) {
	set := policy.DefaultSettings()
	g := policy.Group{Name: "canary", Rules: set.Rules}
	paused := func() string {
		return check.Paused(&set, &g, budget.Fleet(&set.Rules), budget.Group(&g)).Message.String()
	}
	assert.Equal(t, paused(), "")
	g.Pause = &policy.Pause{Reason: "a fair"}
	assert.Equal(t, paused(), "group canary is paused: a fair")
	set.Pause = &policy.Pause{InFlight: policy.Return}
	assert.Equal(t, paused(), "the fleet is paused: no reason given")
	g.Pause.InFlight = policy.Return
	assert.Equal(t, paused(), "group canary is paused: a fair", "the one that uncordons more")
}

// A calendar that never opens again says so: there is no moment to wait for (S9).
func TestWindowThatNeverOpens(t *testing.T) {
	now := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	rules := policy.DefaultSettings().Rules
	rules.Calendar.Windows, rules.StageOutside = []window.Window{{}}, false
	w := check.WindowAt(&rules, now, func() time.Duration { return 0 })
	for _, r := range []plan.Refusal{w.Disrupt, w.Stage} {
		assert.Equal(t, r.Message.String(), "the window is closed and does not open again within years")
		assert.Assert(t, r.Again.IsZero())
	}
}

// A node that everything refuses reads the refusals in the order of the checks: what holds for all comes before what holds
// for the group, for the version, for the moment, and for the node (S9).
func TestTheFirstRefusalIsRead(t *testing.T) {
	now := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	because := func(r plan.Reason) plan.Refusal { return plan.Refuse(r, plan.Messagef("because")) }
	set := policy.DefaultSettings()
	full := budget.Fleet(&set.Rules)
	busy := fleet.Node{Name: "b", UID: "b"}
	full.Add(&busy, true, budget.Claim{Disrupted: true})
	full.Settle(0)
	start := func() *check.Start {
		n := &fleet.Node{Name: "a", UID: "a", ControllerHere: true,
			WriteTrouble: &fleet.WriteTrouble{Message: "no", Until: now.Add(time.Minute), ClearAt: now.Add(time.Minute)},
			Forecast:     &fleet.Forecast{At: now, Next: now.Add(time.Minute), Obstacle: fleet.ObstacleBudget, Message: "no"}}
		n.Marks.Report = marker.Report{Current: "1.2.0"}
		window := &check.Window{Disrupt: because(plan.ReasonWindowClosed), Stage: because(plan.ReasonWindowClosed)}
		return &check.Start{
			View:      &lifecycle.View{Node: n, Now: now, Settings: &set, Rules: &set.Rules},
			Fleet:     &check.Fleet{Stopped: because(plan.ReasonTooManyLost), Alerts: because(plan.ReasonAlertsFiring), Schedulable: 1, Staging: 1, MaxStaging: 1},
			Group:     &check.Group{Paused: because(plan.ReasonPolicyPaused), Ungrouped: because(plan.ReasonUngrouped), Window: func() *check.Window { return window }},
			Version:   &check.Version{Name: "1.1.0", Denied: because(plan.ReasonVersionDenied), Young: because(plan.ReasonVersionTooNew)},
			GoesFirst: because(plan.ReasonAfterGroup), Scopes: []*budget.Scope{full}, OthersFirst: func() bool { return true },
		}
	}
	type cure struct {
		reason plan.Reason
		cure   func(*check.Start)
	}
	policies := []cure{
		{plan.ReasonTooManyLost, func(s *check.Start) { s.Fleet.Stopped = plan.Refusal{} }},
		{plan.ReasonPolicyPaused, func(s *check.Start) { s.Group.Paused = plan.Refusal{} }},
		{plan.ReasonUngrouped, func(s *check.Start) { s.Group.Ungrouped = plan.Refusal{} }},
		{plan.ReasonLowerVersionOffered, func(s *check.Start) { s.Version.Name = "1.3.0" }},
		{plan.ReasonVersionDenied, func(s *check.Start) { s.Version.Denied = plan.Refusal{} }},
		{plan.ReasonVersionTooNew, func(s *check.Start) { s.Version.Young = plan.Refusal{} }},
		{plan.ReasonAfterGroup, func(s *check.Start) { s.GoesFirst = plan.Refusal{} }},
		{plan.ReasonWindowClosed, func(s *check.Start) { *s.Group.Window() = check.Window{} }},
	}
	for _, tc := range []struct {
		name  string
		check func(*check.Start) plan.Refusal
		order []cure
	}{
		{"the policy on staging", check.Policy, policies},
		{"staging", check.Staging, append(policies[:len(policies):len(policies)], []cure{
			{plan.ReasonWriteFailing, func(s *check.Start) { s.WriteTrouble = nil }},
			{plan.ReasonStagingLimit, func(s *check.Start) { s.Fleet.Staging = 0 }},
			{plan.ReasonAlertsFiring, func(s *check.Start) { s.Fleet.Alerts = plan.Refusal{} }},
		}...)},
		{"disruption", check.Disruption, append(policies[:len(policies):len(policies)], []cure{
			{plan.ReasonWriteFailing, func(s *check.Start) { s.WriteTrouble = nil }},
			// What the last look found says more than that others are out.
			{plan.ReasonBudgetBlocks, func(s *check.Start) { s.Forecast.Obstacle = fleet.ObstacleNone }},
			{plan.ReasonUnavailableLimit, func(s *check.Start) { s.Scopes, s.Forecast.Obstacle = nil, fleet.ObstacleBudget }},
			{plan.ReasonOnlySchedulableNode, func(s *check.Start) { s.Fleet.Schedulable = 2 }},
			{plan.ReasonControllerLast, func(s *check.Start) { s.ControllerHere = false }},
			{plan.ReasonBudgetBlocks, func(s *check.Start) { s.Forecast = nil }},
			{plan.ReasonAlertsFiring, func(s *check.Start) { s.Fleet.Alerts = plan.Refusal{} }},
		}...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start()
			for _, c := range tc.order {
				assert.Equal(t, tc.check(s).Reason, c.reason)
				c.cure(s)
			}
			assert.Assert(t, !tc.check(s).Refuses())
		})
	}
}
