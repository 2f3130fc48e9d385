package planner_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
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
