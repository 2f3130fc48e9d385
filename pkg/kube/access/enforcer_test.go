package access

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
)

// A policy counts as missing once two tests in a row did not find it, and no longer once one does; an error says nothing.
// Tests are seldom, however often they are asked for.
func TestEnforcer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inForce, failure := true, error(nil)
		tests, said := 0, 0
		registry, missing := prometheus.NewRegistry(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "missing"})
		registry.MustRegister(missing)
		e := Enforcer{Missing: missing, Log: logrus.New(), Now: time.Now,
			Say: func(logrus.FieldLogger) { said++ },
			Test: func(_ context.Context, node string) (bool, error) {
				assert.Equal(t, node, "node-1")
				tests++
				return inForce, failure
			}}
		for _, step := range []struct {
			after   time.Duration
			inForce bool
			failure error
			tests   int
			missing float64
			said    int
		}{
			{0, true, nil, 1, 0, 0},
			{59 * time.Minute, false, nil, 1, 0, 0},
			{time.Minute, false, nil, 2, 0, 0},
			{9 * time.Second, false, nil, 2, 0, 0},
			{time.Second, false, nil, 3, 1, 1},
			{5 * time.Minute, false, errors.New("away"), 4, 1, 1},
			{time.Minute, false, nil, 5, 1, 2},
			{5 * time.Minute, true, nil, 6, 0, 2},
		} {
			time.Sleep(step.after)
			inForce, failure = step.inForce, step.failure
			for range 3 {
				e.Ask(t.Context(), "node-1")
			}
			synctest.Wait()
			assert.Equal(t, tests, step.tests, "%+v", step)
			all, err := registry.Gather()
			assert.NilError(t, err)
			assert.Equal(t, all[0].GetMetric()[0].GetGauge().GetValue(), step.missing, "%+v", step)
			assert.Equal(t, said, step.said, "%+v", step)
		}
	})
	new(Enforcer).Ask(t.Context(), "node-1")
}
