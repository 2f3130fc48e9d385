package controller

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A reason that no node waits by any more is 0 and not gone, and a node that is up to date waits for nothing.
func TestNodesWaiting(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	waiting := func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		assert.NilError(t, err)
		out := map[string]float64{}
		for _, f := range families {
			if f.GetName() == "bottlerocket_update_controller_nodes_waiting" {
				for _, s := range f.GetMetric() {
					out[s.GetLabel()[0].GetValue()] = s.GetGauge().GetValue()
				}
			}
		}
		return out
	}
	m.pass(plan.Plan{Nodes: []plan.Decision{{Reason: plan.ReasonUpToDate}, {Reason: plan.ReasonBudgetBlocks}}}, time.Second)
	before := waiting()
	m.pass(plan.Plan{Nodes: []plan.Decision{{Reason: plan.ReasonUpToDate}, {Reason: plan.ReasonUpToDate}}}, time.Second)
	after := waiting()
	assert.Equal(t, before[string(plan.ReasonBudgetBlocks)], 1.0)
	assert.Equal(t, len(after), len(before))
	for reason, n := range after {
		assert.Equal(t, n, 0.0, reason)
	}
	for _, reason := range []plan.Reason{plan.ReasonUpToDate, plan.ReasonUpdated, plan.ReasonManaged} {
		_, there := after[string(reason)]
		assert.Assert(t, !there, reason)
	}
}
