package authorizer

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Metrics are the proxy's.
type Metrics struct {
	requests  *prometheus.CounterVec
	refused   *prometheus.CounterVec
	reviews   *prometheus.CounterVec
	watches   prometheus.Gauge
	expires   *prometheus.GaugeVec
	admission prometheus.Gauge
}

// What a review said of a token, as a metric label.
const (
	reviewGood   = "good"
	reviewBad    = "bad"
	reviewFailed = "failed"
)

// NewMetrics registers the proxy's metrics; r may be nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	name := func(n string) string { return prometheus.BuildFQName(telemetry.Namespace, "proxy", n) }
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("requests_total"),
			Help: "Requests of identified agents on their own node, by verb."}, []string{"verb"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("refused_total"),
			Help: "Requests that were refused, by reason."}, []string{"reason"}),
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("token_reviews_total"),
			Help: "Tokens that the API server was asked about, by result: good, bad, or failed where there was no answer."}, []string{"result"}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("watches"),
			Help: "Open watches of agents."}),
		expires: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name("certificate_expiry_timestamp_seconds"),
			Help: "When the certificate in use ends."}, []string{"certificate"}),
		admission: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("admission_policy_missing"),
			Help: "1 if no admission policy restricts the proxy's account; 0 if one does, or if that is not known yet."}),
	}
	for _, reason := range rule.Reasons() {
		m.refused.WithLabelValues(string(reason))
	}
	for _, result := range []string{reviewGood, reviewBad, reviewFailed} {
		m.reviews.WithLabelValues(result)
	}
	for _, v := range []verb{verbGet, verbList, verbWatch, verbPatch} {
		m.requests.WithLabelValues(string(v))
	}
	if r != nil {
		r.MustRegister(m.requests, m.refused, m.reviews, m.watches, m.expires, m.admission)
	}
	return m
}

// reviewed counts a review of a token.
func (m *Metrics) reviewed(v review, err error) {
	result := reviewGood
	switch {
	case err != nil:
		result = reviewFailed
	case v.refusal != nil:
		result = reviewBad
	}
	m.reviews.WithLabelValues(result).Inc()
}
