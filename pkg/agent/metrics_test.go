package agent_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
)

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
		"bottlerocket_update_agent_host_errors_total":             6,
		"bottlerocket_update_agent_node_errors_total":             3,
		"bottlerocket_update_agent_last_report_timestamp_seconds": 1,
	})
}
