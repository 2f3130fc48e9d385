package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// maxVersions is how many versions a process names in its metrics; see telemetry.Bounded.
const maxVersions = 50

// Metrics are the controller's: what this process has done, and, while it leads, the fleet as its last pass saw it.
type Metrics struct {
	steps      *prometheus.CounterVec
	failures   *prometheus.CounterVec
	evictions  *prometheus.CounterVec
	notices    *prometheus.CounterVec
	phases     *prometheus.HistogramVec
	passes     prometheus.Histogram
	passErrors prometheus.Counter
	leading    prometheus.Gauge

	fleet    *fleetMetrics
	versions *telemetry.Bounded
}

// Results of evictions, as a metric label.
const (
	evictionAccepted = "accepted"
	evictionRefused  = "refused"
	evictionUnknown  = "unknown"
)

// noticeDropped is the result, beside those of notice.Result, of what was tried for too long.
const noticeDropped = "dropped"

// NewMetrics registers the controller's metrics; r may be nil. brupop adds those that the Rust operator had, under its
// names.
func NewMetrics(r prometheus.Registerer, brupop bool) *Metrics {
	versions := telemetry.NewBounded(maxVersions)
	m := &Metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricName("steps_total"),
			Help: "Steps that the controller carried out, by act and reason."}, []string{"act", "reason"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricName("failures_total"),
			Help: "Attempts that failed, by reason and the version that they were for."}, []string{"reason", "version"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricName("evictions_total"),
			Help: "Evictions that were requested, by result: accepted, refused, or unknown where there was no answer."}, []string{"result"}),
		notices: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricName("notifications_total"),
			Help: "Things that messages told, by the result of each try: sent, refused, unknown where there was no answer, or dropped."}, []string{"result"}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricName("phase_duration_seconds"),
			Help:    "How long nodes were in a phase that they have left since, by phase.",
			Buckets: []float64{10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800},
			// The native histogram has these two as its limits, and at most 100 buckets for each phase.
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, []string{"phase"}),
		passes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricName("pass_duration_seconds"),
			Help: "How long a pass over the fleet took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}),
		passErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: metricName("pass_errors_total"),
			Help: "Passes that could not be finished and were repeated."}),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricName("leading"),
			Help: "1 while this process is the leader."}),
		versions: versions,
		fleet:    newFleetMetrics(versions, brupop),
	}
	for _, result := range []string{evictionAccepted, evictionRefused, evictionUnknown} {
		m.evictions.WithLabelValues(result)
	}
	// What is counted for the first time is an increase only where the series was there before.
	for _, p := range intent.Phases() {
		m.phases.WithLabelValues(string(p))
	}
	for _, result := range []string{string(notice.Sent), string(notice.Refused), string(notice.Unknown), noticeDropped} {
		m.notices.WithLabelValues(result)
	}
	if r != nil {
		r.MustRegister(m.steps, m.failures, m.evictions, m.notices, m.phases, m.passes, m.passErrors, m.leading, m.fleet)
	}
	return m
}

func metricName(n string) string { return prometheus.BuildFQName(telemetry.Namespace, "controller", n) }

// pass takes in a pass over the fleet.
func (m *Metrics) pass(s seen, took time.Duration) {
	m.passes.Observe(took.Seconds())
	m.fleet.show(&s)
}

// step counts a step that was carried out, and the failure that it ends an attempt with.
func (m *Metrics) step(s plan.Step) {
	m.steps.WithLabelValues(string(s.Act), string(s.Reason)).Inc()
	if version, failed := s.Failed(); failed {
		m.failures.WithLabelValues(string(s.Reason), m.versions.Value(version)).Inc()
	}
}

// left takes in that a node has left a phase.
func (m *Metrics) left(p intent.Phase, after time.Duration) {
	m.phases.WithLabelValues(string(p)).Observe(max(0, after.Seconds()))
}

func (m *Metrics) evicted(r drain.Result) {
	m.evictions.WithLabelValues(evictionAccepted).Add(float64(r.Evicted))
	m.evictions.WithLabelValues(evictionRefused).Add(float64(r.Refused))
	m.evictions.WithLabelValues(evictionUnknown).Add(float64(r.Gone - r.Evicted))
}

// told counts things that a message told, or was to tell.
func (m *Metrics) told(r notice.Result, things int) {
	m.notices.WithLabelValues(string(r)).Add(float64(things))
}

func (m *Metrics) dropped(things int) { m.notices.WithLabelValues(noticeDropped).Add(float64(things)) }

// lead says if this process leads; what it knew as a leader isn't shown by a follower.
func (m *Metrics) lead(is bool) {
	if is {
		m.leading.Set(1)
		return
	}
	m.leading.Set(0)
	m.fleet.show(nil)
}
