package planner_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// corpus is what a fuzzer of plans begins with.
func corpus(seed uint64) []byte {
	random, data := rand.New(rand.NewPCG(seed, 1)), make([]byte, 160)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// TestPlansOfTheCorpus holds what is planned for the fleets and policies of the corpus, and what is said of it, each by
// itself: a change of the planner that should change no plan changes none of them. Accept another with -update.
func TestPlansOfTheCorpus(t *testing.T) {
	var lines bytes.Buffer
	acts, words := sha256.New(), sha256.New()
	for seed := range uint64(4000) {
		c := &choices{corpus(seed)}
		set := c.settings()
		s := c.fleet()
		out := planner.Plan(s, set)
		for _, step := range out.Steps {
			fmt.Fprintf(words, "%s\n", step.Message)
			if step.Change != nil {
				if w := step.Change.Marks.Waiting; w != nil {
					fmt.Fprintf(words, "%s\n", w.Message)
					mute := *w
					mute.Message = ""
					step.Change.Marks.Waiting = &mute
				}
				if f := step.Change.Marks.Failure; f != nil {
					fmt.Fprintf(words, "%s\n", f.Message)
					f.Message = ""
				}
			}
			step.Message = ""
			text, err := json.Marshal([]any{step, step.Change, step.Check, step.TakesSlot, step.FreesSlot, step.Eviction, step.Force, step.Most})
			assert.NilError(t, err)
			fmt.Fprintf(acts, "%s\n", text)
		}
		for _, n := range out.Nodes {
			fmt.Fprintf(acts, "%s %s %s %s %s %s %s\n", n.Node, n.Phase, n.Version, n.Target, n.Act, n.Reason, n.NotBefore)
			fmt.Fprintf(words, "%s\n", n.Message)
		}
		fmt.Fprintln(acts, out.Disrupted, out.LostUncounted, out.Limit, out.ByOthers, out.RecordPolicy, out.Saw, out.Named, out.AskAlerts, out.Wake, len(out.Stopped), len(out.Warnings))
		fmt.Fprintln(words, out.Stopped, out.Warnings, out.Counts(), out.Troubles())
		for _, u := range planner.Budgets(s, set) {
			fmt.Fprintln(acts, u.Rule, u.Limit, u.Used, u.Disrupted, u.ByOthers)
			fmt.Fprintln(words, u.Of)
		}
		if seed%100 == 99 {
			fmt.Fprintf(&lines, "%d to %d: acts %x words %x\n", seed-99, seed, acts.Sum(nil)[:12], words.Sum(nil)[:12])
			acts.Reset()
			words.Reset()
		}
	}
	golden.Assert(t, lines.String(), "plans.golden")
}

// TestNothingChangesBeforeWake: until a plan wants to be made again, the clock alone changes nothing of it (L1).
func TestNothingChangesBeforeWake(t *testing.T) {
	for seed := range uint64(1500) {
		c := &choices{corpus(seed)}
		set := c.settings()
		if c.of(3) == 1 {
			// That a window becomes too short is read at the next plan: it is one more reason not to start.
			set.Calendar, set.FitWindow, set.WhenClosed = nightly(t, "15 */2 * * *", time.Hour), false, []policy.Ending{policy.Return, policy.Finish}[c.of(2)]
		}
		s := c.fleet()
		s.Nodes, s.FirstSeen[v3] = s.Nodes[:min(len(s.Nodes), 1+int(seed%3))], now
		for i := range s.Nodes {
			soon := now.Add(time.Duration(1+c.of(40)) * time.Minute)
			twists := []change{
				func(*fleet.Node) {}, refused(time.Minute), refused(20 * time.Minute), asking, writtenAgain, agentLost(time.Minute), awaySince(170 * time.Minute),
				drain(fleet.Drain{Remaining: 1, Blocked: "x", Next: soon}), drain(fleet.Drain{Failed: "x", Next: soon}),
				looked(fleet.Checked{For: fleet.CheckVolumes, Problem: "v", Next: soon}), looked(fleet.Checked{For: fleet.CheckPods, Problem: "p", Next: soon}),
				looked(fleet.Checked{For: fleet.CheckWorkloads, Problem: "w", Next: soon}), looked(fleet.Checked{For: fleet.CheckBaseline, Failed: "w", Next: soon}),
				func(n *fleet.Node) { n.Evicted, n.EvictedUntil = 10000, soon }, func(n *fleet.Node) { n.TakenOut = now.Add(-time.Minute) },
			}
			for range 2 {
				twists[c.of(len(twists))](&s.Nodes[i])
			}
		}
		for range 10 {
			out := carryOut(&s, set)
			for later := s; ; {
				later.Now = later.Now.Add(later.Now.Sub(s.Now) + time.Second)
				if !out.Wake.IsZero() && !later.Now.Before(out.Wake) {
					later.Now = out.Wake.Add(-1)
				}
				if last := planner.Plan(later, set); !slices.EqualFunc(out.Nodes, last.Nodes, saysTheSame) {
					t.Errorf("seed %d, by %s:\n%s\nand %s later:\n%s", seed, out.Wake, out, later.Now.Sub(s.Now), last)
				}
				if later.Now.Equal(out.Wake.Add(-1)) || later.Now.Sub(s.Now) > 100*time.Hour {
					break
				}
			}
			if s.Now = out.Wake; s.Now.IsZero() {
				break
			}
		}
	}
}

// saysTheSame reports whether two decisions are the same, but for what a step would say that can't be written now.
func saysTheSame(a, b plan.Decision) bool {
	says := func(d plan.Decision) string {
		message, _, _ := strings.Cut(d.Message.String(), "; what waits")
		return verdict(d) + message
	}
	return says(a) == says(b)
}
