package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// series returns the values of a gauge or counter, by their labels' values, as name=value in the labels' order.
func series(t *testing.T, g prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	assert.NilError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			labels := ""
			for _, l := range s.GetLabel() {
				labels += l.GetName() + "=" + l.GetValue() + " "
			}
			out[labels] = s.GetGauge().GetValue() + s.GetCounter().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
	}
	return out
}

const ours = "bottlerocket_update_controller_"

var noon = time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC)

// measured is a fleet with something in every gauge.
func measured() seen {
	v := func(n int) string { return fmt.Sprintf("1.%d.0", n) }
	set := policy.DefaultSettings()
	set.Groups = []policy.Group{{Name: "canary", Rules: set.Rules, Selector: policy.Selector{{Key: "stage", Operator: policy.Exists}}}}
	n := func(name string, change func(*fleet.Node)) fleet.Node {
		n := fleet.Node{Name: name, UID: name, Interface: fleet.InterfaceUpdateAPI, Ready: true, BootID: "b", OSVersion: v(1), AgentReady: true, PassedOver: true, Zone: "z"}
		n.Marks.Intent = marker.Intent{ID: "i", Action: marker.ActionStabilize, Time: noon.Add(-time.Hour), Until: noon.Add(time.Hour)}
		n.Marks.Report = marker.Report{ActiveID: "i", State: marker.StateReady, Current: v(1), BootID: "b", Protocol: marker.Protocol}
		change(&n)
		return n
	}
	s := fleet.Snapshot{Now: noon, Slots: map[string]string{}, Nodes: []fleet.Node{
		n("a", func(n *fleet.Node) { n.Labels = map[string]string{"stage": "1"} }),
		n("b", func(n *fleet.Node) {
			n.Marks.Report.Available = v(2)
			n.Marks.Intent.Action, n.Marks.Intent.Target = marker.ActionPrepareUpdate, v(2)
			n.Marks.Intent.Time = noon.Add(-time.Minute)
			n.Marks.Report.ActiveID = "h"
		}),
		n("c", func(n *fleet.Node) { n.Ready, n.Marks.Report.Available = false, v(2) }),
	}}
	return seen{at: noon, snapshot: s, settings: set, plan: planner.Plan(s, set), policy: policyRead{"77", noon.Add(-time.Hour)},
		longest: map[intent.Phase]time.Time{intent.PhaseStaging: noon.Add(-time.Minute)}, clock: func() time.Time { return noon }}
}

// The gauges say what the plan says of the fleet, under the names of Prometheus' conventions, and under Brupop's.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, true)
	m.lead(true)
	s := measured()
	m.pass(s, time.Second)
	for name, want := range map[string]map[string]float64{
		"nodes_version":                    {"version=1.1.0 ": 3},
		"nodes_target":                     {"version=1.2.0 ": 2},
		"phase_oldest_timestamp_seconds":   {"phase=Staging ": float64(noon.Add(-time.Minute).Unix())},
		"policy_resource_version":          {"": 77},
		"policy_read_timestamp_seconds":    {"": float64(noon.Add(-time.Hour).Unix())},
		"last_pass_timestamp_seconds":      {"": float64(noon.Unix())},
		"last_progress_timestamp_seconds":  {"": float64(noon.Add(-time.Minute).Unix())},
		"budget_used":                      {"budget=staging ": 1, "budget=the fleet ": 1, "budget=group canary ": 0},
		"budget_limit":                     {"budget=staging ": 10, "budget=the fleet ": 1, "budget=group canary ": 1},
		"window_open":                      {"group= ": 1, "group=canary ": 1},
		"window_changes_timestamp_seconds": {},
		"leading":                          {"": 1},
	} {
		assert.DeepEqual(t, series(t, registry, ours+name), want)
	}
	nodes := series(t, registry, ours+"nodes")
	assert.Equal(t, nodes["group=canary phase=UpToDate zone=z "], 1.0)
	assert.Equal(t, nodes["group= phase=Staging zone=z "], 1.0)
	assert.Equal(t, nodes["group= phase=Lost zone= "], 0.0)
	assert.DeepEqual(t, series(t, registry, "brupop_hosts_state"), map[string]float64{"state=Idle ": 2, "state=StagedAndPerformedUpdate ": 1,
		"state=RebootedIntoUpdate ": 0, "state=MonitoringUpdate ": 0, "state=ErrorReset ": 0})
	assert.DeepEqual(t, series(t, registry, "brupop_hosts_version"), map[string]float64{"bottlerocket_version=1.1.0 ": 3})

	families, err := registry.Gather()
	assert.NilError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	assert.NilError(t, err)
	assert.Equal(t, len(problems), 0, "%v", problems)

	// A window that is closed says when it opens, and a freeze when it ends.
	s.settings.Calendar.Freezes = append(s.settings.Calendar.Freezes, freeze(noon.Add(-time.Hour), noon.Add(time.Hour)))
	m.pass(s, time.Second)
	assert.Equal(t, series(t, registry, ours+"window_open")["group= "], 0.0)
	assert.DeepEqual(t, series(t, registry, ours+"window_changes_timestamp_seconds"), map[string]float64{"group= ": float64(noon.Add(time.Hour).Unix())})

	// It opens by the clock alone, whether or not a pass is made then.
	s.clock = func() time.Time { return noon.Add(2 * time.Hour) }
	m.pass(s, time.Second)
	assert.Equal(t, series(t, registry, ours+"window_open")["group= "], 1.0)
	assert.DeepEqual(t, series(t, registry, ours+"window_changes_timestamp_seconds"), map[string]float64{})

	m.lead(false)
	assert.Equal(t, len(series(t, registry, ours+"nodes")), 0, "what it knew as a leader isn't shown by a follower")
	without := prometheus.NewRegistry()
	NewMetrics(without, false).pass(s, time.Second)
	assert.Equal(t, len(series(t, without, "brupop_hosts_state")), 0)
}

// A reason that no node waits by any more is 0 and not gone, and a node that is up to date waits for nothing.
func TestNodesWaiting(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, true)
	waiting := func(reasons ...plan.Reason) map[string]float64 {
		s := seen{at: noon, settings: policy.DefaultSettings(), clock: func() time.Time { return noon }}
		for i, r := range reasons {
			uid := fmt.Sprint(i)
			s.snapshot.Nodes = append(s.snapshot.Nodes, fleet.Node{UID: uid})
			s.plan.Nodes = append(s.plan.Nodes, plan.Decision{UID: uid, Reason: r})
		}
		m.pass(s, time.Second)
		return series(t, registry, ours+"nodes_waiting")
	}
	before := waiting(plan.ReasonUpToDate, plan.ReasonBudgetBlocks)
	after := waiting(plan.ReasonUpToDate, plan.ReasonUpToDate)
	assert.Equal(t, before["reason=BudgetBlocks "], 1.0)
	assert.Equal(t, len(after), len(before))
	for reason, n := range after {
		assert.Equal(t, n, 0.0, reason)
	}
	for _, reason := range []plan.Reason{plan.ReasonUpToDate, plan.ReasonUpdated, plan.ReasonManaged} {
		_, there := after["reason="+string(reason)+" "]
		assert.Assert(t, !there, reason)
	}
}

// That the policy's alerts could not be asked for counts while something would start, and not for ever after.
func TestAlertsUnknown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, true)
	s := measured()
	s.snapshot.Alerts = &fleet.Alerts{Failed: "connection refused"}
	m.pass(s, time.Second)
	assert.DeepEqual(t, series(t, registry, ours+"alerts_unknown"), map[string]float64{"": 0})
	s.plan.Nodes[2].Reason = plan.ReasonAlertsUnknown
	m.pass(s, time.Second)
	assert.DeepEqual(t, series(t, registry, ours+"alerts_unknown"), map[string]float64{"": 1})
}

// Agents that make up 10,000 versions, and hosts that do, make no more series than a process has room for; what failed
// for such versions counts as another one.
func TestMadeUpVersions(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, true)
	for i := range 10000 {
		s := measured()
		made := fmt.Sprintf("9.9.%d", i)
		s.snapshot.Nodes[0].OSVersion, s.snapshot.Nodes[1].Marks.Report.Current = made, made
		s.snapshot.Nodes[2].Marks.Report.Available = made
		s.plan.Stopped = []plan.StoppedVersion{{Version: made}}
		if i%100 == 0 {
			s.plan = planner.Plan(s.snapshot, s.settings)
			m.pass(s, time.Second)
			_, err := registry.Gather()
			assert.NilError(t, err)
		}
		failed := marker.Marks{History: []marker.Attempt{{Version: made, Outcome: marker.OutcomeFailed}}}
		m.step(plan.Step{Act: intent.ActAbandon, Reason: plan.ReasonStagingFailed, Change: &plan.Change{Marks: failed, EndsAttempt: true}})
	}
	shown := map[string]bool{}
	for _, name := range []string{ours + "nodes_version", ours + "nodes_target", ours + "version_stopped", ours + "failures_total", "brupop_hosts_version"} {
		for labels := range series(t, registry, name) {
			shown[name+labels] = true
		}
	}
	assert.Assert(t, len(shown) <= 2*(maxVersions+1), "%d", len(shown))
	assert.Assert(t, series(t, registry, ours+"failures_total")["reason=StagingFailed version=other "] > 9000)
}

// What was done is counted: evictions by their results, and how long a node was in the phase that it has left, where
// its beginning is known.
func TestCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, true)
	m.evicted(drain.Result{Evicted: 3, Gone: 4, Refused: 2})
	assert.DeepEqual(t, series(t, registry, ours+"evictions_total"), map[string]float64{"result=accepted ": 3, "result=unknown ": 1, "result=refused ": 2})

	term := &Term{c: TermConfig{Metrics: m}, passed: map[string]passedOver{}}
	n := fleet.Node{UID: "a"}
	see := func(p intent.Phase, at time.Time) {
		term.passed["a"] = passedOver{in: term.inPhase(&n, p, at)}
	}
	see(intent.PhaseWaiting, noon)
	n.Marks.Intent.Time = noon.Add(-time.Minute)
	see(intent.PhaseStaging, noon.Add(time.Minute))
	see(intent.PhaseStaging, noon.Add(2*time.Minute))
	assert.Assert(t, term.longest()[intent.PhaseStaging].Equal(noon.Add(-time.Minute)), "it holds across leaders")
	see(intent.PhaseStaged, noon.Add(3*time.Minute))
	see(intent.PhaseDraining, noon.Add(4*time.Minute))
	ended := map[string]float64{}
	for _, p := range intent.Phases() {
		ended["phase="+string(p)+" "] = 0
	}
	ended["phase=Staging "], ended["phase=Staged "] = 1, 1
	assert.DeepEqual(t, series(t, registry, ours+"phase_duration_seconds"), ended)
}

func freeze(from, to time.Time) window.Freeze { return window.Freeze{From: from, To: to} }

// Names that are the same once they can be shown don't make a scrape fail.
func TestNamesThatLookAlike(t *testing.T) {
	s := measured()
	second := s.settings.Groups[0]
	s.settings.Groups[0].Name, second.Name = "a b", "a  b"
	s.settings.Groups = append(s.settings.Groups, second)
	registry := prometheus.NewRegistry()
	NewMetrics(registry, true).pass(s, time.Second)
	_, err := registry.Gather()
	assert.NilError(t, err)
}
