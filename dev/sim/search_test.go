package sim_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

var (
	seeds = flag.Uint64("seeds", 500, "how many seeds TestSearch runs; a short run takes a tenth")
	first = flag.Uint64("seed", 1, "the first of them")
)

// TestSearch runs the budget of `make test`: no seed may break a promise, and in a long run every kind of fault must
// have struck, and every promise must have been looked at. `make sim` runs more.
func TestSearch(t *testing.T) {
	began := time.Now()
	var failed []sim.Result
	f := sim.Search(*first, fewer(*seeds), runtime.GOMAXPROCS(0), func(r sim.Result) bool {
		if r.Violation != "" {
			failed = append(failed, r)
		}
		return len(failed) < 3
	})
	for _, r := range failed {
		t.Errorf("seed %d breaks %s; see it with: go run ./dev/sim/cmd -seeds 1 -seed %d -partial", r.Scenario.Seed, r.Violation, r.Scenario.Seed)
	}
	if len(failed) > 0 {
		s, _ := sim.Shrink(failed[0].Scenario, failed[0].Violation)
		r := sim.Run(s)
		var b bytes.Buffer
		assert.NilError(t, s.Write(&b))
		r.Trace(&b, 80)
		t.Log(b.String())
	}
	t.Logf("%s; %s", f.String(), time.Since(began).Round(time.Second))
	if !testing.Short() {
		assert.Equal(t, strings.Join(f.Never(), " "), "", "never struck, or never looked at")
	}
}

// fewer is how many of so many seeds this run takes.
func fewer(seeds uint64) uint64 {
	if testing.Short() {
		return seeds / 10
	}
	return seeds
}

// TestSameScenarioSameRun: a failing seed can be replayed, on another machine too.
func TestSameScenarioSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		var a, b bytes.Buffer
		sim.Run(sim.Generate(seed)).Trace(&a, 0)
		sim.Run(sim.Generate(seed)).Trace(&b, 0)
		assert.Equal(t, a.String(), b.String(), "seed %d", seed)
	}
}

// TestScenarios replays what searches have found: each file begins with a comment on what went wrong. The golden file has
// the digest of what happens now, messages apart; go run ./dev/sim/cmd -replay FILE shows it.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.scenario")
	assert.NilError(t, err)
	assert.Assert(t, len(files) > 0)
	var digests strings.Builder
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".scenario"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			assert.NilError(t, err)
			assert.Assert(t, strings.HasPrefix(string(text), "# "), "a scenario begins with what it is about")
			s, err := sim.Read(bytes.NewReader(text))
			assert.NilError(t, err)
			r := sim.Run(s)
			assert.Equal(t, r.Violation, "")
			for _, f := range s.Faults {
				assert.Assert(t, r.Struck[f.Kind] > 0, "%s did not strike", f)
			}
			d := sim.DigestOf(s)
			fmt.Fprintf(&digests, "%x %s\n", d.Acts[:12], filepath.Base(path))
		})
	}
	golden.Assert(t, digests.String(), "scenarios.golden")
}

// TestScenarioText: what is written can be read, and what can't be is refused with its line.
func TestScenarioText(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		s := sim.Generate(seed)
		var b bytes.Buffer
		assert.NilError(t, s.Write(&b))
		again, err := sim.Read(&b)
		assert.NilError(t, err)
		assert.DeepEqual(t, again, s)
	}
	for text, want := range map[string]string{
		"nodes":                        "line 1: nodes: a name and a value are needed",
		"nodes three":                  "line 1: nodes three",
		"colour red":                   "no such name",
		"seed 1\nfault 1s":             "line 2: fault 1s: a time and a kind are needed",
		"fault soon crash-agent":       "reading the time",
		"fault 1s earthquake":          "no such kind",
		"fault 1s crash-agent on=x":    `reading "on=x"`,
		"fault 1s crash-agent where=1": "no such refinement",
		"policy":                       "a policy's number is needed",
		"policy 1 maxUnavailable: 1":   "come in their order",
		"policy 0\npolicy 1\npolicy 0": "line 3: policy 0: policies are numbered",
		"seed 1\nnodes 3":              "must be given and positive",
	} {
		_, err := sim.Read(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%s", text)
	}
}

// What scenarios say of policies is a policy: one with a mistake would change nothing, and nothing would be searched.
func TestGeneratedPolicies(t *testing.T) {
	for seed := range uint64(400) {
		for i, p := range sim.Generate(seed).Policies {
			_, err := file.Decode([]byte(p.Text()), policy.DefaultSettings(), time.LoadLocation)
			assert.NilError(t, err, "seed %d, policy %d:\n%s", seed, i, p.Text())
		}
	}
}
