package planner_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// While an alert stands, or that is unknown, nothing starts; and Prometheus is asked only when something would, and not
// again before a minute is over.
func TestAlerts(t *testing.T) {
	const url = "http://prometheus"
	said := func(ago time.Duration, names ...string) *fleet.Alerts {
		a := &fleet.Alerts{At: now.Add(-ago), URL: url}
		for _, n := range names {
			a.Active = append(a.Active, fleet.Alert{Name: n})
		}
		return a
	}
	pending := said(time.Second, "NodeDown")
	pending.Active[0].Pending = true
	failed := said(time.Second)
	failed.Failed = "no route to host"
	elsewhere := said(time.Second)
	elsewhere.URL = "http://another"
	for _, tc := range []struct {
		name   string
		alerts *fleet.Alerts
		change func(*policy.Alerts)
		staged string
		idle   string
		asks   bool
		again  time.Duration
	}{
		{"not asked yet", nil, nil, "Staged wait AlertsUnknown", "Waiting wait AlertsUnknown", true, 0},
		{"none stand", said(time.Second), nil, "Staged Cordon Cordoned", "Waiting Stage UpdateAvailable", false, 0},
		{"none stood a while ago", said(time.Minute), nil, "Staged wait AlertsUnknown", "Waiting wait AlertsUnknown", true, 0},
		{"another was asked", elsewhere, nil, "Staged wait AlertsUnknown", "Waiting wait AlertsUnknown", true, 0},
		{"asked by a clock that was ahead", said(-time.Hour), nil, "Staged wait AlertsUnknown", "Waiting wait AlertsUnknown", true, 0},
		{"another was asked for", said(time.Second), func(a *policy.Alerts) { a.Query = "up == 0" }, "Staged wait AlertsUnknown", "Waiting wait AlertsUnknown", true, 0},
		{"one stands", said(time.Second, "NodeDown"), nil, "Staged wait AlertsFiring", "Waiting wait AlertsFiring", false, 59 * time.Second},
		{"it is pending", pending, nil, "Staged wait AlertsFiring", "Waiting wait AlertsFiring", false, 59 * time.Second},
		{"it is pending, which is nothing", pending, func(a *policy.Alerts) { a.FiringOnly = true }, "Staged Cordon Cordoned", "Waiting Stage UpdateAvailable", false, 0},
		{"it is ignored", said(time.Second, "Watchdog"), nil, "Staged Cordon Cordoned", "Waiting Stage UpdateAvailable", false, 0},
		{"one of two is ignored", said(time.Second, "NodeDown", "Watchdog"), nil, "Staged wait AlertsFiring", "Waiting wait AlertsFiring", false, 59 * time.Second},
		{"no answer", failed, nil, "Staged wait AlertsUnknown", "Waiting wait AlertsUnknown", false, 59 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := policy.DefaultSettings()
			set.Alerts = policy.Alerts{URL: url, Ignore: []*regexp.Regexp{regexp.MustCompile("^Watchdog$")}}
			if tc.change != nil {
				tc.change(&set.Alerts)
			}
			s := fleetOf([]fleet.Node{node("a", prepared), node("b", offered(v2))})
			s.Alerts = tc.alerts
			out := planner.Plan(s, set)
			staged, _ := find(t, out, "a")
			idle, _ := find(t, out, "b")
			assert.Equal(t, verdict(staged), tc.staged)
			assert.Equal(t, verdict(idle), tc.idle)
			assert.Equal(t, out.AskAlerts, tc.asks)
			if tc.asks {
				assert.Equal(t, len(out.Steps), 0, "nothing is written while it is asked")
			}
			if tc.again > 0 {
				assert.Equal(t, staged.NotBefore, now.Add(tc.again))
				assert.Equal(t, out.Wake, now.Add(tc.again))
			}
			found(time.Second, fleet.ObstacleBudget, time.Minute)(&s.Nodes[0])
			idleAsks := planner.Plan(fleet.Snapshot{Now: now, Nodes: s.Nodes[:1], Slots: s.Slots, Alerts: tc.alerts}, set).AskAlerts
			assert.Assert(t, !idleAsks, "asked for a node that can't be drained")
			s.Nodes[0].Marks.Paused = true
			assert.Equal(t, planner.Plan(s, set).AskAlerts, tc.asks, "asked for one that would be staged")
			s.Nodes[1].Marks.Paused = true
			assert.Assert(t, !planner.Plan(s, set).AskAlerts, "asked although nothing would start")
		})
	}
}

// What is out of service goes on whatever stands.
func TestAlertsStopNothingUnderWay(t *testing.T) {
	set := policy.DefaultSettings()
	set.Alerts.URL = "http://prometheus"
	s := fleetOf([]fleet.Node{node("a", draining, drain(fleet.Drain{})), node("b", verifying(2*time.Minute))})
	out := planner.Plan(s, set)
	draining, _ := find(t, out, "a")
	soaked, _ := find(t, out, "b")
	assert.Equal(t, verdict(draining), "Draining Reboot RebootRequested")
	assert.Equal(t, verdict(soaked), "Verifying Finish Updated")
	assert.Assert(t, !out.AskAlerts)
}

// Three alerts are named, and that there are others.
func TestAlertsAreNamed(t *testing.T) {
	set := policy.DefaultSettings()
	set.Alerts.URL = "http://prometheus"
	s := fleetOf([]fleet.Node{node("a", offered(v2))})
	s.Alerts = &fleet.Alerts{At: now, URL: set.Alerts.URL}
	for names, want := range map[string]string{"A B C": "A, B, C", "A A B": "A, B", "A B C D": "A, B, C and others"} {
		s.Alerts.Active = nil
		for _, name := range strings.Fields(names) {
			s.Alerts.Active = append(s.Alerts.Active, fleet.Alert{Name: name})
		}
		got, _ := find(t, planner.Plan(s, set), "a")
		assert.Equal(t, got.Message.Waiting(got.Reason, now).Message, "1.2.0 is available; alerts are firing: "+want+" (at 2026-09-20 10:00:00 UTC)")
	}
}
