package telemetry_test

import (
	"fmt"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Of 10,000 made-up values the first few are shown, and the others are one.
func TestBounded(t *testing.T) {
	b := telemetry.NewBounded(3)
	shown := map[string]bool{}
	for i := range 10000 {
		shown[b.Value(fmt.Sprint(i))] = true
	}
	assert.DeepEqual(t, shown, map[string]bool{"0": true, "1": true, "2": true, telemetry.Other: true})
	assert.Equal(t, b.Value("1"), "1")
}
