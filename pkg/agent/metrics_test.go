package agent_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
)

// Every series is there from the beginning, under names of Prometheus' conventions.
func TestMetrics(t *testing.T) {
	m := agent.NewMetrics()
	r := prometheus.NewPedanticRegistry()
	m.Register(r)
	got, err := r.Gather()
	assert.NilError(t, err)
	series := map[string]int{}
	for _, f := range got {
		series[f.GetName()] = len(f.GetMetric())
	}
	assert.DeepEqual(t, series, map[string]int{
		"bottlerocket_update_agent_host_requests_total":            21,
		"bottlerocket_update_agent_node_errors_total":              3,
		"bottlerocket_update_agent_last_report_timestamp_seconds":  1,
		"bottlerocket_update_agent_last_refresh_timestamp_seconds": 1,
	})
	problems, err := promlint.NewWithMetricFamilies(got).Lint()
	assert.NilError(t, err)
	assert.Equal(t, len(problems), 0, "%v", problems)
}
