package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// generated compares a file of the repository with what it is made of, or writes it with -update.
func generated(t *testing.T, file, want string) {
	t.Helper()
	if golden.FlagUpdate() {
		assert.NilError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	got, err := os.ReadFile(file)
	assert.NilError(t, err)
	assert.Equal(t, string(got), want, "%s: run make manifest", file)
}

// Each file that users apply says what the chart says with its defaults, word for word; and the chart's schema and README
// say what its values say.
func TestGenerated(t *testing.T) {
	dir, err := Dir()
	assert.NilError(t, err)
	schema, err := Schema()
	assert.NilError(t, err)
	generated(t, filepath.Join(dir, "values.schema.json"), schema)

	readme := filepath.Join(dir, "README.md")
	content, err := os.ReadFile(readme)
	assert.NilError(t, err)
	const begin, end = "<!-- values begin -->\n", "<!-- values end -->\n"
	before, rest, ok := strings.Cut(string(content), begin)
	assert.Assert(t, ok)
	_, after, ok := strings.Cut(rest, end)
	assert.Assert(t, ok)
	table, err := Table()
	assert.NilError(t, err)
	generated(t, readme, before+begin+table+end+after)

	root, err := controlplane.Root()
	assert.NilError(t, err)
	c, err := Load()
	assert.NilError(t, err)
	for _, f := range Forms() {
		want, err := f.Text(c)
		assert.NilError(t, err)
		generated(t, filepath.Join(root, f.File), want)
	}
}
