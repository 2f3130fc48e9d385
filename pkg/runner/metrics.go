package runner

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Metrics are the runner's.
type Metrics struct {
	steps      *prometheus.CounterVec
	failures   prometheus.Counter
	unresolved prometheus.Gauge
	admission  prometheus.Gauge
}

// NewMetrics registers the runner's metrics; r may be nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	name := func(n string) string { return prometheus.BuildFQName(telemetry.Namespace, "runner", n) }
	m := &Metrics{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("steps_total"),
			Help: "Steps that were carried out, by kind."}, []string{"step"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: name("failed_turns_total"),
			Help: "Turns of nodes that could not be finished and are repeated."}),
		unresolved: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("unresolved_plans"),
			Help: "Plans of the policy that can't be run: a template, or what it mounts, is missing, for example."}),
		admission: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("admission_policy_missing"),
			Help: "1 if no admission policy restricts the runner's account; 0 if one does, or if that is not known yet."}),
	}
	for _, k := range next.Kinds() {
		if k != next.Rest {
			m.steps.WithLabelValues(string(k))
		}
	}
	if r != nil {
		r.MustRegister(m.steps, m.failures, m.unresolved, m.admission)
	}
	return m
}
