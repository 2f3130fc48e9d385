package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// observe is the metric label of a look at the host; the others are the commands.
const observe = "observe"

// Metrics are those of an agent.
type Metrics struct {
	intent     *prometheus.GaugeVec
	hostErrors *prometheus.CounterVec
	nodeErrors *prometheus.CounterVec
	lastReport prometheus.Gauge
}

// Why a request to the proxy failed, as a metric label.
const (
	nodeConflict = "conflict"
	nodeRefused  = "refused"
	nodeFailed   = "failed"
)

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	const subsystem = "agent"
	m := &Metrics{
		intent: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "intent",
			Help: "Always 1; the labels are the action of the node's intent and the agent's answer to it.",
		}, []string{"action", "state"}),
		hostErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "host_errors_total",
			Help: "Requests to the host's API that were refused or failed.",
		}, []string{"request"}),
		nodeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "node_errors_total",
			Help: "Requests to the proxy for this node that met a conflict, were refused or failed.",
		}, []string{"cause"}),
		lastReport: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "last_report_timestamp_seconds",
			Help: "When this process last wrote a report; 0 if it hasn't yet.",
		}),
	}
	for _, r := range []string{observe, string(next.CommandRefresh), string(next.CommandPrepare),
		string(next.CommandActivate), string(next.CommandDeactivate), string(next.CommandReboot)} {
		m.hostErrors.WithLabelValues(r)
	}
	for _, c := range []string{nodeConflict, nodeRefused, nodeFailed} {
		m.nodeErrors.WithLabelValues(c)
	}
	return m
}

// Register registers m.
func (m *Metrics) Register(r prometheus.Registerer) {
	r.MustRegister(m.intent, m.hostErrors, m.nodeErrors, m.lastReport)
}

func (m *Metrics) asked(i marker.Intent, r marker.Report) {
	m.intent.Reset()
	m.intent.WithLabelValues(string(i.Action), string(r.Answer(i.ID))).Set(1)
}

func (m *Metrics) reported(at time.Time) { m.lastReport.Set(float64(at.Unix())) }
