package plain_test

import (
	"encoding/json"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// A time span is written without its empty parts, and read as it was.
func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: `"24h"`, 90 * time.Minute: `"1h30m"`, 30 * time.Minute: `"30m"`, 90 * time.Second: `"1m30s"`, 10 * time.Second: `"10s"`, time.Hour + time.Second: `"1h0m1s"`, 0: `"0s"`,
	} {
		text, err := json.Marshal(plain.Duration(d))
		assert.NilError(t, err)
		assert.Equal(t, string(text), want)
		var back plain.Duration
		assert.NilError(t, json.Unmarshal(text, &back))
		assert.Equal(t, back, plain.Duration(d))
	}
	var back plain.Duration
	assert.ErrorContains(t, json.Unmarshal([]byte(`"soon"`), &back), "soon")
}
