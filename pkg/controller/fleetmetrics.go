package controller

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// maxZones is how many zones, and other values of labels in the policy's topology, a process names in its metrics.
const maxZones = 100

// maxLabel is how long a label's value may be, in bytes.
const maxLabel = 256

// seen is what a pass saw and decided.
type seen struct {
	at       time.Time
	snapshot fleet.Snapshot
	settings policy.Settings
	plan     plan.Plan
	policy   policyRead
	// longest is since when, of each phase, the node has been in it that has been there for longest.
	longest map[intent.Phase]time.Time
	// clock is asked by a scrape for what changes by the clock alone: at rest a pass is long ago.
	clock func() time.Time
}

// policyRead is which policy was read, and when.
type policyRead struct {
	resourceVersion string
	at              time.Time
}

// fleetMetrics are the gauges of what the last pass saw. They are computed when they are scraped: a pass does no work
// for them, and no series outlives its nodes. A version is what kubelets report, and a target comes from agents: both
// are bounded.
type fleetMetrics struct {
	nodes, waiting, oldest      *prometheus.Desc
	versions, targets, stopped  *prometheus.Desc
	unavailable, limit          *prometheus.Desc
	budgetUsed, budgetLimit     *prometheus.Desc
	windowOpen, windowChanges   *prometheus.Desc
	problem, warnings           *prometheus.Desc
	policyRead, policyVersion   *prometheus.Desc
	admission, alertsUnknown    *prometheus.Desc
	lastPass, lastProgress      *prometheus.Desc
	brupopState, brupopVersions *prometheus.Desc

	version, zone *telemetry.Bounded

	mu   sync.Mutex
	last *seen
}

func newFleetMetrics(versions *telemetry.Bounded, brupop bool) *fleetMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(metricName(name), help, labels, nil)
	}
	m := &fleetMetrics{
		version: versions, zone: telemetry.NewBounded(maxZones),
		nodes: desc("nodes", "Managed nodes by phase, by group (empty: in none) and by zone.", "phase", "group", "zone"),
		waiting: desc("nodes_waiting", "Managed nodes that wait, by reason, also where there are 0. A node that is up to date waits for nothing.",
			"reason"),
		oldest:        desc("phase_oldest_timestamp_seconds", "Since when the node has been in a phase that has been in it for longest; no series where there is none.", "phase"),
		versions:      desc("nodes_version", "Managed nodes by the version that their kubelets report.", "version"),
		targets:       desc("nodes_target", "Managed nodes that are to go to another version than they run, by that version.", "version"),
		stopped:       desc("version_stopped", "1 for each version that failed on too many nodes, so that nothing starts for it any more.", "version"),
		unavailable:   desc("nodes_unavailable", "Nodes that are out of service because of the operator: cordoned, or in their soak."),
		limit:         desc("nodes_unavailable_limit", "How many nodes may be out of service."),
		budgetUsed:    desc("budget_used", "How many nodes, or values of a label, use a limit of the policy up.", "budget"),
		budgetLimit:   desc("budget_limit", "What a limit of the policy comes to.", "budget"),
		windowOpen:    desc("window_open", "1 while nodes of the group (empty: in none) may be taken out of service by the policy's windows and freezes, else 0.", "group"),
		windowChanges: desc("window_changes_timestamp_seconds", "When that changes next; no series if it doesn't.", "group"),
		problem:       desc("policy_problem", "1 while the policy in its ConfigMap has a mistake and is not in force, else 0."),
		warnings:      desc("policy_warnings", "How many things the policy allows that were probably not meant. The plan names them."),
		policyRead:    desc("policy_read_timestamp_seconds", "When this process last read another policy, or that there is none."),
		policyVersion: desc("policy_resource_version", "The resourceVersion of the ConfigMap as this process last read it; 0 if there is none."),
		admission:     desc("admission_policy_missing", "1 if no admission policy limits the controller's account; 0 if one does, or that is not known yet."),
		alertsUnknown: desc("alerts_unknown", "1 while nothing starts because the policy's alerts could not be asked for, else 0."),
		lastPass:      desc("last_pass_timestamp_seconds", "When the last pass over the fleet ended."),
		lastProgress:  desc("last_progress_timestamp_seconds", "When any managed node last went on: it was asked for something, was taken out of service, or its attempt ended."),
	}
	if brupop {
		m.brupopState = prometheus.NewDesc("brupop_hosts_state", "Managed nodes by the state that Brupop would call theirs.", []string{"state"}, nil)
		m.brupopVersions = prometheus.NewDesc("brupop_hosts_version", "Managed nodes by the version that their kubelets report.", []string{"bottlerocket_version"}, nil)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *fleetMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.nodes, m.waiting, m.oldest, m.versions, m.targets, m.stopped, m.unavailable, m.limit, m.budgetUsed, m.budgetLimit,
		m.windowOpen, m.windowChanges, m.problem, m.warnings, m.policyRead, m.policyVersion, m.admission, m.alertsUnknown, m.lastPass, m.lastProgress,
		m.brupopState, m.brupopVersions} {
		if d != nil {
			ch <- d
		}
	}
}

// show takes in what a pass saw; nil: this process doesn't lead, and what it knew as a leader isn't shown.
func (m *fleetMetrics) show(s *seen) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = s
}

// Collect implements prometheus.Collector.
func (m *fleetMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	last := m.last
	m.mu.Unlock()
	if last == nil {
		return
	}
	// Two names may be the same once they can be shown, such as those of two groups. The second series would make the
	// whole scrape fail.
	shown := map[string]bool{}
	c := collection{m, last, func(d *prometheus.Desc, v float64, labels ...string) {
		for i := range labels {
			labels[i] = plain.Line(labels[i], maxLabel)
		}
		if key := d.String() + strings.Join(labels, "\n"); !shown[key] {
			shown[key] = true
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
		}
	}}
	c.members()
	c.rules()
	c.health()
}

// collection is one scrape.
type collection struct {
	*fleetMetrics
	*seen
	gauge func(d *prometheus.Desc, v float64, labels ...string)
}

// place is what the gauge of nodes has series for.
type place struct {
	phase       intent.Phase
	group, zone string
}

// members shows the nodes.
func (c collection) members() {
	byUID := make(map[string]*fleet.Node, len(c.snapshot.Nodes))
	for i := range c.snapshot.Nodes {
		byUID[c.snapshot.Nodes[i].UID] = &c.snapshot.Nodes[i]
	}
	places, states := map[place]int{}, map[string]int{}
	// A phase that no node is in is 0 and not gone.
	for _, p := range intent.Phases() {
		places[place{phase: p}] = 0
	}
	versions, targets, reasons := map[string]int{}, map[string]int{}, map[plan.Reason]int{}
	var progress time.Time
	for i := range c.plan.Nodes {
		d := &c.plan.Nodes[i]
		n := byUID[d.UID]
		places[place{d.Phase, c.settings.GroupOf(n.Labels), c.zone.Value(n.Zone)}]++
		states[brupopState(d)]++
		if d.Act == "" {
			reasons[d.Reason]++
		}
		if n.OSVersion != "" {
			versions[c.version.Value(n.OSVersion)]++
		}
		if target := d.Goes(&n.Marks); target != "" {
			targets[c.version.Value(target)]++
		}
		for _, at := range []time.Time{n.Marks.Intent.Time, plan.LastEnd(&n.Marks)} {
			if at.After(progress) && !at.After(c.at) {
				progress = at
			}
		}
	}
	for p, count := range places {
		c.gauge(c.nodes, float64(count), string(p.phase), p.group, p.zone)
	}
	for _, r := range plan.Reasons() {
		if r.Waits() {
			c.gauge(c.waiting, float64(reasons[r]), string(r))
		}
	}
	for p, at := range c.longest {
		c.gauge(c.oldest, seconds(at), string(p))
	}
	each := func(d *prometheus.Desc, counts map[string]int) {
		for value, count := range counts {
			c.gauge(d, float64(count), value)
		}
	}
	each(c.versions, versions)
	each(c.targets, targets)
	if c.brupopState != nil {
		for _, state := range brupopStates {
			c.gauge(c.brupopState, float64(states[state]), state)
		}
		each(c.brupopVersions, versions)
	}
	if !progress.IsZero() {
		c.gauge(c.lastProgress, seconds(progress))
	}
}

// rules shows the policy's limits and windows.
func (c collection) rules() {
	c.gauge(c.unavailable, float64(c.plan.Disrupted))
	c.gauge(c.limit, float64(c.plan.Limit))
	used, limits := map[string]int{}, map[string]int{}
	for _, u := range planner.Budgets(c.snapshot, c.settings) {
		of := c.zone.Value(u.Of)
		used[of] += u.Used
		limits[of] += u.Limit
	}
	for of := range limits {
		c.gauge(c.budgetUsed, float64(used[of]), of)
		c.gauge(c.budgetLimit, float64(limits[of]), of)
	}
	now := c.clock()
	calendar := func(group string, r *policy.Rules) {
		w := r.Calendar.At(now)
		c.gauge(c.windowOpen, number(w.Open), group)
		changes := w.Opens
		if w.Open {
			changes = w.Ends
		}
		if !changes.IsZero() {
			c.gauge(c.windowChanges, seconds(changes), group)
		}
	}
	calendar("", &c.settings.Rules)
	for i := range c.settings.Groups {
		calendar(c.settings.Groups[i].Name, &c.settings.Groups[i].Rules)
	}
	stopped := map[string]bool{}
	for _, v := range c.plan.Stopped {
		stopped[c.version.Value(v.Version)] = true
	}
	for v := range stopped {
		c.gauge(c.stopped, 1, v)
	}
}

// health shows what keeps the operator from its work.
func (c collection) health() {
	c.gauge(c.problem, number(c.plan.PolicyProblem != ""))
	c.gauge(c.warnings, float64(len(c.plan.Warnings)))
	c.gauge(c.admission, number(c.plan.AdmissionProblem != ""))
	// They are asked for only while something would start, so the last answer may be of long ago.
	waits := func(d plan.Decision) bool { return d.Reason == plan.ReasonAlertsUnknown }
	alerts := c.snapshot.Alerts
	c.gauge(c.alertsUnknown, number(alerts != nil && alerts.Failed != "" && slices.ContainsFunc(c.plan.Nodes, waits)))
	c.gauge(c.lastPass, seconds(c.at))
	c.gauge(c.policyRead, seconds(c.policy.at))
	// It is a number in every API server whose storage is etcd, and only to be compared.
	version, err := strconv.ParseUint(c.policy.resourceVersion, 10, 64)
	if err == nil || c.policy.resourceVersion == "" {
		c.gauge(c.policyVersion, float64(version))
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
