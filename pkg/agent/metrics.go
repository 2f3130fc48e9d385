package agent

import (
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// observe is the metric label of a look at the host; the others are the commands.
const observe = "observe"

// Metrics are those of an agent.
type Metrics struct {
	intent       *prometheus.GaugeVec
	hostRequests *prometheus.CounterVec
	nodeErrors   *prometheus.CounterVec
	lastReport   prometheus.Gauge
	lastRefresh  prometheus.Gauge
}

// Why a request to the proxy failed, as a metric label.
const (
	nodeConflict = "conflict"
	nodeRefused  = "refused"
	nodeFailed   = "failed"
)

// What became of a request to the host, as a metric label.
const (
	hostAccepted = "accepted"
	hostRefused  = "refused"
	hostFailed   = "failed"
)

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	const subsystem = "agent"
	m := &Metrics{
		intent: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "intent",
			Help: "Always 1; the labels are the action of the node's intent and the agent's answer to it.",
		}, []string{"action", "state"}),
		hostRequests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "host_requests_total",
			Help: "Looks at the host and commands to it, by result: accepted, refused, or failed where there was no good answer.",
		}, []string{"request", "result"}),
		nodeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "node_errors_total",
			Help: "Requests to the proxy for this node that met a conflict, were refused or failed.",
		}, []string{"cause"}),
		lastReport: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "last_report_timestamp_seconds",
			Help: "When this process last wrote a report; 0 if it hasn't yet.",
		}),
		lastRefresh: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: telemetry.Namespace, Subsystem: subsystem, Name: "last_refresh_timestamp_seconds",
			Help: "When the host last saw by itself which updates there are, as this process knows; 0 if it doesn't.",
		}),
	}
	for _, r := range []string{observe, string(next.CommandRefresh), string(next.CommandPrepare),
		string(next.CommandActivate), string(next.CommandDeactivate), string(next.CommandReboot), string(next.CommandLock)} {
		for _, result := range []string{hostAccepted, hostRefused, hostFailed} {
			m.hostRequests.WithLabelValues(r, result)
		}
	}
	for _, c := range []string{nodeConflict, nodeRefused, nodeFailed} {
		m.nodeErrors.WithLabelValues(c)
	}
	return m
}

// Register registers m.
func (m *Metrics) Register(r prometheus.Registerer) {
	r.MustRegister(m.intent, m.hostRequests, m.nodeErrors, m.lastReport, m.lastRefresh)
}

func (m *Metrics) asked(i marker.Intent, r marker.Report) {
	m.intent.Reset()
	m.intent.WithLabelValues(string(i.Action), string(r.Answer(i.ID))).Set(1)
}

func (m *Metrics) reported(at time.Time) { m.lastReport.Set(float64(at.Unix())) }

// host counts a look at the host, or a command to it.
func (m *Metrics) host(request string, err error) {
	result := hostAccepted
	if refused := (*platform.RefusedError)(nil); errors.As(err, &refused) {
		result = hostRefused
	} else if err != nil {
		result = hostFailed
	}
	m.hostRequests.WithLabelValues(request, result).Inc()
}

// observed takes in what a look at the host found.
func (m *Metrics) observed(h next.Host) {
	if h.Last.Command != next.CommandRefresh || !h.Last.Success || h.SawNothing {
		return
	}
	// The host's clock is this one.
	if at, err := time.Parse(time.RFC3339, h.Last.Timestamp); err == nil {
		m.lastRefresh.Set(float64(at.Unix()))
	}
}
