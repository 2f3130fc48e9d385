package wave_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/wave"
)

// The values are those of docs/host-api.md, and of the simulated host, which looks at the waves by itself.
func TestOpens(t *testing.T) {
	for _, tc := range []struct {
		seed  uint32
		hours float64
	}{
		{0, 0}, {1, 1.15}, {10, 2.5}, {20, 4}, {21, 9.12}, {50, 16.2}, {102, 24}, {307, 48}, {500, 94.9}, {511, 95.9}, {512, 96}, {819, 96}, {820, 120},
		{1228, 120}, {1229, 144}, {1500, 144}, {1843, 144}, {1844, 144}, {2047, 144}, {2048, 144}, {math.MaxUint32, 144},
	} {
		t.Run(fmt.Sprint(tc.seed), func(t *testing.T) {
			got := wave.Opens(tc.seed)
			off := (got - time.Duration(tc.hours*float64(time.Hour))).Abs()
			assert.Assert(t, off < 3*time.Minute, "%s", got)
		})
	}
}

// What is said of hosts depends on this: none sees a release before one with a lower seed.
func TestOpensInTheOrderOfSeeds(t *testing.T) {
	before := time.Duration(0)
	assert.Equal(t, wave.Opens(0), before)
	for seed := range uint32(2049) {
		at := wave.Opens(seed)
		assert.Assert(t, at >= before, "%d", seed)
		before = at
	}
}
