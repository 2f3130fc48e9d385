package authorizer

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"gotest.tools/v3/assert"
)

// The proxy's metrics are there from the beginning, under names of Prometheus' conventions.
func TestMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(r)
	m.expires.WithLabelValues("serving").Set(1)
	got, err := r.Gather()
	assert.NilError(t, err)
	assert.Equal(t, len(got), 6)
	problems, err := promlint.NewWithMetricFamilies(got).Lint()
	assert.NilError(t, err)
	assert.Equal(t, len(problems), 0, "%v", problems)
}
