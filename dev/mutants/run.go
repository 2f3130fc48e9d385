package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"
)

// Draw returns the mutations in an order that the seed alone decides.
func Draw(all []Mutation, seed uint64) []Mutation {
	drawn := slices.Clone(all)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// Tally is how many mutants there were.
type Tally struct{ Noticed, Survived, NotCompiled int }

// Share is how many of a hundred that compiled were noticed.
func (t Tally) Share() float64 {
	return 100 * float64(t.Noticed) / float64(max(1, t.Noticed+t.Survived))
}

// Run tries the first n of the mutations that compile, and tells what becomes of each.
func (m Module) Run(ctx context.Context, drawn []Mutation, n int, tell func(m Mutation, survived bool)) (t Tally, err error) {
	for len(drawn) > 0 && t.Noticed+t.Survived < n {
		// One in six or so doesn't compile.
		batch := drawn[:min(len(drawn), (n-t.Noticed-t.Survived)*5/4+1)]
		drawn = drawn[len(batch):]
		if err := m.tryAll(ctx, batch, n, &t, tell); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (m Module) tryAll(ctx context.Context, batch []Mutation, n int, t *Tally, tell func(m Mutation, survived bool)) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return errors.Wrap(err, "making a folder")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := runner{Module: m, dir: dir, deadlines: map[string]time.Duration{}}
	if err := r.build(ctx, batch); err != nil {
		return err
	}
	for i, mutation := range batch {
		if t.Noticed+t.Survived == n {
			break
		}
		compiled, noticed, err := r.try(ctx, i+1, mutation)
		switch {
		case ctx.Err() != nil:
			return errors.WithStack(ctx.Err())
		case err != nil:
			return err
		case !compiled:
			t.NotCompiled++
			continue
		case noticed:
			t.Noticed++
		default:
			t.Survived++
		}
		tell(mutation, !noticed)
	}
	return nil
}

type runner struct {
	Module
	dir string
	// switched are the mutants that can be switched on in the tests' programs, by their numbers.
	switched map[int]Mutation
	// deadlines of the tests of a package, which are known once they passed without a mutation.
	deadlines map[string]time.Duration
}

// misplaced is where the compiler says that something is wrong: in which of the overlay's files, and in which line.
var misplaced = regexp.MustCompile(`switched(\d+)\.go:(\d+):`)

// build has the files made that the tests' programs are compiled of, with all mutants in them that compile.
func (r *runner) build(ctx context.Context, batch []Mutation) error {
	r.switched = map[int]Mutation{}
	for i, m := range batch {
		if m.function != nil && m.parses() {
			r.switched[i+1] = m
		}
	}
	for {
		files, copies := switched(r.switched)
		if err := r.overlay("switched", files); err != nil {
			return err
		}
		words := []string{"build", "-p", "1", "-gcflags=./...=-e", "-overlay", r.path("switched.json")}
		for _, p := range r.Packages {
			words = append(words, "./"+p)
		}
		cmd := exec.CommandContext(ctx, "go", words...)
		cmd.Dir = r.Root
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		left, names := len(r.switched), slices.Sorted(maps.Keys(files))
		for _, m := range misplaced.FindAllStringSubmatch(string(out), -1) {
			file, _ := strconv.Atoi(m[1])
			line, _ := strconv.Atoi(m[2])
			for _, c := range copies[names[file]] {
				if c.from <= line && line < c.to {
					delete(r.switched, c.number)
				}
			}
		}
		if len(r.switched) == left {
			return errors.Wrapf(err, "compiling: %s", out)
		}
	}
}

func (r *runner) try(ctx context.Context, number int, m Mutation) (compiled, noticed bool, err error) {
	folder, overlay := path.Dir(m.File), "switched"
	if _, is := r.switched[number]; !is {
		if m.function != nil {
			return false, false, nil
		}
		overlay = "alone"
		if err := r.overlay(overlay, map[string]string{m.File: m.Source()}); err != nil {
			return false, false, err
		}
	}
	// Most are noticed by their own package's tests.
	for _, tests := range append([]string{folder}, r.Tests[folder]...) {
		if err := r.measure(ctx, tests); err != nil {
			return false, false, err
		}
		program, err := r.compile(ctx, overlay, tests)
		if err != nil {
			return false, false, nil
		}
		if r.test(ctx, program, tests, number, r.deadlines[tests]) != nil {
			return true, true, nil
		}
	}
	return true, false, nil
}

// measure runs the tests of a package as it is: tests that fail anyway would notice everything.
func (r *runner) measure(ctx context.Context, folder string) error {
	if r.deadlines[folder] > 0 {
		return nil
	}
	program, err := r.compile(ctx, "switched", folder)
	began := time.Now()
	if err == nil {
		err = r.test(ctx, program, folder, 0, 10*time.Minute)
	}
	r.deadlines[folder] = 5*time.Since(began) + r.Slack
	return errors.WithMessagef(err, "%s without a mutation", folder)
}

func (r *runner) path(name string) string { return filepath.Join(r.dir, name) }

// overlay has files, by their paths in the module, stand in for those that are there.
func (r *runner) overlay(name string, files map[string]string) error {
	replace := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		to := r.path(fmt.Sprintf("%s%d.go", name, len(replace)))
		if err := os.WriteFile(to, []byte(files[file]), 0o600); err != nil {
			return errors.Wrap(err, "writing overlay")
		}
		replace[filepath.Join(r.Root, filepath.FromSlash(file))] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return errors.Wrap(err, "encoding overlay")
	}
	return errors.Wrap(os.WriteFile(r.path(name+".json"), text, 0o600), "writing overlay")
}

// compile makes the program of a package's tests; it is empty if there are none. That of switched mutants is made once.
func (r *runner) compile(ctx context.Context, overlay, folder string) (string, error) {
	program := r.path(overlay + ".tests")
	if overlay == "switched" {
		program = r.path(filepath.Base(folder) + strconv.Itoa(slices.Index(r.Packages, folder)) + ".tests")
	}
	if r.deadlines[folder] == 0 || overlay != "switched" {
		_ = os.Remove(program)
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-p", "1", "-vet=off", "-gcflags=./...=-e", "-ldflags=-s -w",
			"-overlay", r.path(overlay+".json"), "-o", program, "./"+folder)
		cmd.Dir = r.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Wrapf(err, "compiling: %s", out)
		}
	}
	if _, err := os.Stat(program); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return program, nil
}

// memory is what a mutant may map, in KiB.
const memory = 4 << 20

func (r *runner) test(ctx context.Context, program, folder string, number int, deadline time.Duration) error {
	if program == "" {
		return nil
	}
	// A mutant that hangs may ignore the deadline that it is told.
	ctx, cancel := context.WithTimeout(ctx, deadline+r.Slack)
	defer cancel()
	bounded := fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$@"`, memory)
	cmd := exec.CommandContext(ctx, "sh", "-c", bounded, "sh", program,
		"-test.short", "-test.failfast", "-test.skip", r.Skip, fmt.Sprint("-test.timeout=", deadline))
	cmd.Dir = filepath.Join(r.Root, filepath.FromSlash(folder))
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	out, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "testing: %s", out)
}
