package window_test

import (
	"testing"
	"time"
	_ "time/tzdata" // So that the tests run on a machine without time zones too.

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	assert.NilError(t, err)
	return z
}

func in(t testing.TB, schedule string, d time.Duration, name string) window.Window {
	t.Helper()
	return window.Window{Schedule: cron(t, schedule), Duration: d, Zone: zone(t, name)}
}
