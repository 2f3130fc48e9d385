package planted_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/sim/planted"
)

// budget is how many seeds the simulation gets for one bug.
const budget = 2000

var broken = regexp.MustCompile(`(?m)^seed (\d+) breaks ([SL]\d?):`)

// TestEveryBugIsFound builds the search with each planted bug in turn and wants it to find that one of
// the promises which the bug breaks is broken.
func TestEveryBugIsFound(t *testing.T) {
	bugs, err := planted.Load("testdata")
	assert.NilError(t, err)
	assert.Assert(t, len(bugs) >= 15)
	root, err := filepath.Abs("../../..")
	assert.NilError(t, err)
	for _, b := range bugs {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			dir := t.TempDir()
			overlay, err := b.Overlay(root, dir)
			assert.NilError(t, err)
			program := filepath.Join(dir, "sim")
			build(t, root, overlay, program)
			out := search(t, program)
			found := broken.FindAllStringSubmatch(out, -1)
			assert.Assert(t, len(found) > 0, "%s\n%d seeds found nothing: %s", b.Why, budget, out)
			for _, f := range found {
				if slices.Contains(b.Breaks, f[2]) {
					t.Logf("%s: seed %s breaks %s, %s", b.Why, f[1], f[2], time.Since(began).Round(100*time.Millisecond))
					return
				}
			}
			t.Errorf("%s\nwhat was found is something else than %s:\n%s", b.Why, strings.Join(b.Breaks, ", "), out)
		})
	}
}

func build(t *testing.T, root, overlay, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./dev/sim")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	assert.NilError(t, err, "%s", out)
}

// search runs a program that is wrong, so it may do anything but go on for ever.
func search(t *testing.T, program string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-seeds", fmt.Sprint(budget), "-workers", "1", "-shrink=false", "-partial", "-lines", "1")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// TestBugThatDoesNotApply: a change of the source that takes a bug's ground away is noticed.
func TestBugThatDoesNotApply(t *testing.T) {
	root := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nvar b = 1\n"), 0o600))
	b := planted.Bug{Name: "b", Hunks: []planted.Hunk{{File: "a.go", Old: "var c", New: ""}}}
	_, err := b.Overlay(root, t.TempDir())
	assert.ErrorContains(t, err, "bug b no longer applies: its text is 0 times in a.go")
	b.Hunks[0].Old = "var b"
	_, err = b.Overlay(root, t.TempDir())
	assert.NilError(t, err)
	b.Hunks[0].File = "c.go"
	_, err = b.Overlay(root, t.TempDir())
	assert.ErrorContains(t, err, "c.go")
}
