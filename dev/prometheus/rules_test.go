package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
)

// monitoring is the folder with rules and dashboards.
const monitoring = "../../monitoring"

// promtool accepts the rules, and each alert fires when it should and not in the nearest innocent case.
func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run builds no promtool")
	}
	bin, err := prometheus.Programs(t.Context(), os.Stderr)
	assert.NilError(t, err)
	tests, err := filepath.Glob(monitoring + "/rules*_test.yaml")
	assert.NilError(t, err)
	assert.Assert(t, len(tests) > 0)
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", monitoring + "/rules.yaml"},
		append([]string{"test", "rules"}, tests...),
	} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "promtool"), args...).CombinedOutput()
		assert.NilError(t, err, "%s", out)
	}
}
