package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Metrics are the controller's.
type Metrics struct {
	steps   *prometheus.CounterVec
	passes  prometheus.Histogram
	errors  prometheus.Counter
	leading prometheus.Gauge

	phases, reasons, versions  *prometheus.Desc
	disrupted, limit           *prometheus.Desc
	problem, warnings, stopped *prometheus.Desc
	admission                  *prometheus.Desc

	mu   sync.Mutex
	last *plan.Plan
}

// NewMetrics registers the controller's metrics; r may be nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	name := func(n string) string { return prometheus.BuildFQName(telemetry.Namespace, "controller", n) }
	m := &Metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("steps_total"),
			Help: "Steps that the controller carried out, by act and reason."}, []string{"act", "reason"}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: name("pass_duration_seconds"),
			Help: "How long a pass over the fleet took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{Name: name("pass_errors_total"),
			Help: "Passes that could not be finished and were repeated."}),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("leading"),
			Help: "1 while this process is the leader."}),
		phases: prometheus.NewDesc(name("nodes"), "Managed nodes by phase.", []string{"phase"}, nil),
		reasons: prometheus.NewDesc(name("nodes_waiting"), "Managed nodes that wait, by reason, also where there are 0. A node that is up to date waits for nothing.",
			[]string{"reason"}, nil),
		versions: prometheus.NewDesc(name("nodes_version"), "Managed nodes by the version that they run.",
			[]string{"version"}, nil),
		disrupted: prometheus.NewDesc(name("nodes_unavailable"), "Nodes that are out of service because of the operator: cordoned, or in their soak.", nil, nil),
		limit:     prometheus.NewDesc(name("nodes_unavailable_limit"), "How many nodes may be out of service.", nil, nil),
		problem:   prometheus.NewDesc(name("policy_problem"), "1 while the policy in its ConfigMap has a mistake and is not in force, else 0.", nil, nil),
		warnings:  prometheus.NewDesc(name("policy_warnings"), "How many things the policy allows that were probably not meant. The plan names them.", nil, nil),
		admission: prometheus.NewDesc(name("admission_policy_missing"), "1 if no admission policy limits the controller's account; 0 if one does, or that is not known yet.", nil, nil),
		stopped:   prometheus.NewDesc(name("version_stopped"), "1 for each version that failed on too many nodes, so that nothing starts for it any more.", []string{"version"}, nil),
	}
	if r != nil {
		r.MustRegister(m.steps, m.passes, m.errors, m.leading, m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.phases, m.reasons, m.versions, m.disrupted, m.limit, m.problem, m.warnings, m.admission, m.stopped} {
		ch <- d
	}
}

// Collect implements prometheus.Collector: the gauges are made from the last plan, so that no series
// outlives its nodes.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	last := m.last
	m.mu.Unlock()
	if last == nil {
		return
	}
	phases, reasons, versions := last.Phases(), map[plan.Reason]int{}, map[string]int{}
	for _, n := range last.Nodes {
		if n.Act == "" {
			reasons[n.Reason]++
		}
		if n.Version != "" {
			versions[n.Version]++
		}
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for _, p := range intent.Phases() {
		gauge(m.phases, phases[p], string(p))
	}
	for _, r := range plan.Reasons() {
		if r.Waits() {
			gauge(m.reasons, reasons[r], string(r))
		}
	}
	for v, n := range versions {
		gauge(m.versions, n, v)
	}
	gauge(m.disrupted, last.Disrupted)
	gauge(m.limit, last.Limit)
	problem := 0
	if last.PolicyProblem != "" {
		problem = 1
	}
	gauge(m.problem, problem)
	gauge(m.warnings, len(last.Warnings))
	missing := 0
	if last.AdmissionProblem != "" {
		missing = 1
	}
	gauge(m.admission, missing)
	for _, v := range last.Stopped {
		gauge(m.stopped, 1, v.Version)
	}
}

func (m *Metrics) pass(out plan.Plan, took time.Duration) {
	m.passes.Observe(took.Seconds())
	m.mu.Lock()
	m.last = &out
	m.mu.Unlock()
}

func (m *Metrics) step(s plan.Step) {
	m.steps.WithLabelValues(string(s.Act), string(s.Reason)).Inc()
}

// lead says if this process leads; what it knew as a leader isn't shown by a follower.
func (m *Metrics) lead(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is {
		m.leading.Set(1)
		return
	}
	m.leading.Set(0)
	m.last = nil
}
