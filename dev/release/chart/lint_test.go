package chart

import (
	"testing"

	"gotest.tools/v3/assert"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

// `helm lint` finds nothing but that there is no icon.
func TestLint(t *testing.T) {
	dir, err := Dir()
	assert.NilError(t, err)
	for _, values := range []map[string]any{nil, switches} {
		for _, m := range lint.RunAll(dir, values, Namespace).Messages {
			assert.Check(t, m.Severity < support.WarningSev, "%s: %v", m.Path, m.Err)
		}
	}
}
