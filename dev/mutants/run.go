package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
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
func (m Module) Run(ctx context.Context, drawn []Mutation, n int, tell func(m Mutation, survived bool)) (Tally, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return Tally{}, errors.Wrap(err, "making a folder")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := runner{m, dir, map[string]time.Duration{}}
	var t Tally
	for _, mutation := range drawn {
		if t.Noticed+t.Survived == n {
			break
		}
		compiled, noticed, err := r.try(ctx, mutation)
		switch {
		case ctx.Err() != nil:
			return t, errors.WithStack(ctx.Err())
		case err != nil:
			return t, err
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
	return t, nil
}

type runner struct {
	Module
	dir string
	// deadlines of the tests of a package, which are known once they passed without a mutation.
	deadlines map[string]time.Duration
}

func (r runner) try(ctx context.Context, m Mutation) (compiled, noticed bool, err error) {
	folder := path.Dir(m.File)
	// Most are noticed by their own package's tests.
	tested := append([]string{folder}, r.Tests[folder]...)
	for _, folder := range tested {
		if err := r.measure(ctx, folder); err != nil {
			return false, false, err
		}
	}
	overlay, err := r.overlay(m)
	if err != nil {
		return false, false, err
	}
	for _, folder := range tested {
		if r.compile(ctx, folder, "-overlay", overlay) != nil {
			return false, false, nil
		}
		if r.test(ctx, folder, r.deadlines[folder]) != nil {
			return true, true, nil
		}
	}
	return true, false, nil
}

// measure runs the tests of a package as it is: tests that fail anyway would notice everything.
func (r runner) measure(ctx context.Context, folder string) error {
	if r.deadlines[folder] > 0 {
		return nil
	}
	err := r.compile(ctx, folder)
	began := time.Now()
	if err == nil {
		err = r.test(ctx, folder, 10*time.Minute)
	}
	r.deadlines[folder] = 5*time.Since(began) + r.Slack
	return errors.WithMessagef(err, "%s without a mutation", folder)
}

func (r runner) overlay(m Mutation) (string, error) {
	path := filepath.Join(r.Root, filepath.FromSlash(m.File))
	mutated, overlay := filepath.Join(r.dir, "mutated.go"), filepath.Join(r.dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	if err != nil {
		return "", errors.Wrap(err, "encoding overlay")
	}
	if err := os.WriteFile(mutated, []byte(m.Source()), 0o600); err != nil {
		return "", errors.Wrap(err, "writing overlay")
	}
	return overlay, errors.Wrap(os.WriteFile(overlay, text, 0o600), "writing overlay")
}

func (r runner) program() string { return filepath.Join(r.dir, "tests") }

func (r runner) compile(ctx context.Context, folder string, flags ...string) error {
	// Of a package without tests nothing is made.
	_ = os.Remove(r.program())
	words := append([]string{"test", "-c", "-p", "1", "-vet=off", "-ldflags=-s -w", "-o", r.program()}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(words, "./"+folder)...)
	cmd.Dir = r.Root
	out, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "compiling: %s", out)
}

// memory is what a mutant may map, in KiB.
const memory = 4 << 20

func (r runner) test(ctx context.Context, folder string, deadline time.Duration) error {
	if _, err := os.Stat(r.program()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// A mutant that hangs may ignore the deadline that it is told.
	ctx, cancel := context.WithTimeout(ctx, deadline+r.Slack)
	defer cancel()
	bounded := fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$@"`, memory)
	cmd := exec.CommandContext(ctx, "sh", "-c", bounded, "sh", r.program(),
		"-test.short", "-test.failfast", "-test.skip", r.Skip, fmt.Sprint("-test.timeout=", deadline))
	cmd.Dir = filepath.Join(r.Root, filepath.FromSlash(folder))
	out, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "testing: %s", out)
}
