package planted_test

import (
	"context"
	"flag"
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

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/planted"
)

// broken finds the promise in what either search says.
var broken = regexp.MustCompile(`(?m)(?:^seed \d+ breaks |^ +model_test.go:\d+: )([SL]\d*): .*`)

var which = flag.String("bugs", "", `which bugs must be found: "all", "touched" or names with commas`)

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	assert.NilError(t, err)
	return root
}

func load(t *testing.T) []planted.Bug {
	t.Helper()
	bugs, err := planted.Load("testdata")
	assert.NilError(t, err)
	return bugs
}

// chosen are the bugs that the flag asks for, of those that an attack finds, or of those that a search does.
func chosen(t *testing.T, attack bool) []planted.Bug {
	t.Helper()
	if *which == "" {
		t.Skip("it takes minutes: see -bugs")
	}
	all := load(t)
	bugs, err := planted.Choose(all, *which, root(t))
	assert.NilError(t, err)
	bugs = slices.DeleteFunc(slices.Clone(bugs), func(b planted.Bug) bool { return (b.Attack != "") != attack })
	fmt.Printf("%d of %d bugs are planted for %s\n", len(bugs), len(all), map[bool]string{true: "attacks", false: "searches"}[attack])
	return bugs
}

// TestEveryBugApplies holds that each bug is a change of today's source.
func TestEveryBugApplies(t *testing.T) {
	bugs := load(t)
	assert.Assert(t, len(bugs) >= 150)
	for _, b := range bugs {
		_, err := b.Overlay(root(t), t.TempDir())
		assert.Check(t, err)
	}
}

// TestEveryBugIsFound builds a search with each planted bug in turn and wants it to find that one of the
// promises which the bug breaks is broken.
func TestEveryBugIsFound(t *testing.T) {
	root := root(t)
	for _, b := range chosen(t, false) {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			dir := t.TempDir()
			overlay, err := b.Overlay(root, dir)
			assert.NilError(t, err)
			program := filepath.Join(dir, "search")
			var out string
			if b.Seeds == 0 {
				run(t, root, "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./dev/sim/model")
				out = search(t, program, "-test.run", "^TestSmallFleets$", "-all")
			} else {
				run(t, root, "go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./dev/sim/cmd")
				seeds := func(first uint64, n int) string {
					return search(t, program, "-seed", fmt.Sprint(first), "-seeds", fmt.Sprint(n), "-workers", "1", "-enough", "1", "-shrink=false", "-partial", "-lines", "1")
				}
				if b.At > 0 {
					out = seeds(b.At, 1)
				}
				if !finds(b, out) {
					out = seeds(1, b.Seeds)
					record(t, b, out)
				}
			}
			built := time.Since(began)
			found := broken.FindAllStringSubmatch(out, -1)
			assert.Assert(t, len(found) > 0, "%s\nnothing was found: %s", b.Why, out)
			for _, f := range found {
				if slices.Contains(b.Breaks, f[1]) {
					t.Logf("%s %s (%s)", b.Why, strings.TrimSpace(f[0]), built.Round(100*time.Millisecond))
					return
				}
			}
			t.Errorf("%s\nwhat was found is something else than %s:\n%s", b.Why, strings.Join(b.Breaks, ", "), out)
		})
	}
}

// finds reports whether a search says that a promise is broken which the bug breaks.
func finds(b planted.Bug, out string) bool {
	return slices.ContainsFunc(broken.FindAllStringSubmatch(out, -1), func(f []string) bool { return slices.Contains(b.Breaks, f[1]) })
}

var noteSeeds = flag.Bool("note-seeds", false, "write into the bugs which seeds found them")

var foundBy = regexp.MustCompile(`(?m)^seed (\d+) breaks `)

// record notes which seed finds the bug now.
func record(t *testing.T, b planted.Bug, out string) {
	t.Helper()
	seed := foundBy.FindStringSubmatch(out)
	if !*noteSeeds || seed == nil {
		return
	}
	path := filepath.Join("testdata", b.Name+".bug")
	text, err := os.ReadFile(path)
	assert.NilError(t, err)
	text = regexp.MustCompile(`(?m)^search sim .*$`).ReplaceAll(text, fmt.Appendf(nil, "search sim %d at %s", b.Seeds, seed[1]))
	assert.NilError(t, os.WriteFile(path, text, 0o644))
}

// TestEveryHoleIsFound lets the attacks run against a proxy, or a planner, that forgets a check, each in turn, and
// wants the attack that the check is against to succeed.
func TestEveryHoleIsFound(t *testing.T) {
	root := root(t)
	for _, b := range chosen(t, true) {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			overlay, err := b.Overlay(root, dir)
			assert.NilError(t, err)
			program := filepath.Join(dir, "attack")
			run(t, root, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, b.Package)
			out := search(t, program, "-test.run", "^"+b.Attack+"$")
			found := succeeded.FindAllString(out, -1)
			assert.Assert(t, len(found) > 0, "%s\nno attack found it: %s", b.Why, out)
			t.Logf("%s %s", b.Why, strings.Join(found, ", "))
		})
	}
}

// succeeded finds the attacks that did what they must not.
var succeeded = regexp.MustCompile(`(?m)^ *--- FAIL: (Test\S+)`)

func run(t *testing.T, dir string, words ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	assert.NilError(t, err, "%s", out)
}

// search runs a program that is wrong, so it may do anything but go on for ever.
func search(t *testing.T, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
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
