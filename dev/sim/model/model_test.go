package model_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/model"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// What TestSearch searches: by itself the smallest fleet, which takes a second. A bound that is given may
// cut it.
var (
	nodes       = flag.Int("nodes", 1, "nodes of TestSearch, at most 3")
	controllers = flag.Int("controllers", 1, "controllers of TestSearch, at most 2")
	budget      = flag.Int("budget", 1, "how many nodes may be unavailable at once")
	faults      = flag.Int("faults", 1, "how many faults there may be")
	notes       = flag.Bool("notes", false, "writes that only tell users what is waited for are steps too")
	clock       = flag.Bool("clock", false, "the clock may jump for all nodes at once")
	full        = flag.Bool("full", false, "no reduction by the order of independent steps")
	states      = flag.Int("states", 0, "bound on the states; 0 is none")
	within      = flag.Duration("within", 0, "bound on the time; 0 is none")
	memory      = flag.Uint64("memory", 0, "bound on the memory, in MiB; 0 is none")
	all         = flag.Bool("all", false, "TestSmallFleets explores its largest fleet too, which takes over a minute")
)

func search(t *testing.T, c model.Config) model.Figures {
	t.Helper()
	f := model.New(c).Run()
	fmt.Println(f)
	for _, v := range f.Violations {
		t.Errorf("%s\n%s", v.What, v.Trace)
	}
	if f.Cut != "" && c.States == 0 && c.Within == 0 && c.Memory == 0 {
		t.Errorf("the search was cut at %s", f.Cut)
	}
	return f
}

func TestSearch(t *testing.T) {
	search(t, model.Config{Nodes: *nodes, Controllers: *controllers, Budget: *budget, Faults: uint8(*faults), Notes: *notes, Clock: *clock,
		Full: *full, States: *states, Within: *within, Memory: *memory << 20})
}

// The smaller ones come first, as they find most of what there is to be found, with a shorter trace. A short run
// explores the first alone.
func TestSmallFleets(t *testing.T) {
	fleets := []model.Config{
		{Nodes: 1, Controllers: 1, Budget: 1, Faults: 1, Notes: true, Clock: true},
		{Nodes: 1, Controllers: 2, Budget: 1, Faults: 1, Full: true},
		{Nodes: 1, Controllers: 1, Budget: 1, Faults: 2},
		{Nodes: 2, Controllers: 2, Budget: 1},
		{Nodes: 2, Controllers: 2, Budget: 2},
		{Nodes: 2, Controllers: 1, Budget: 1, Faults: 1, Full: true},
		{Nodes: 2, Controllers: 2, Budget: 1, Faults: 1},
	}
	switch {
	case testing.Short():
		fleets = fleets[:1]
	case !*all:
		fleets = fleets[:len(fleets)-1]
	}
	for _, c := range fleets {
		f := search(t, c)
		if t.Failed() {
			return
		}
		if *all && c == fleets[len(fleets)-1] {
			covered(t, f.Coverage)
		}
	}
}

// covered holds that the search came by everything that it is there for.
func covered(t *testing.T, c *model.Coverage) {
	t.Helper()
	for _, p := range intent.Phases() {
		// Nothing in the model writes what can't be read.
		assert.Check(t, p == intent.PhaseUnreadable || c.Phases[p] > 0, "phase %s", p)
	}
	acts := []intent.Act{intent.ActDrain, intent.ActRelease, intent.ActLeave}
	for _, tr := range intent.Transitions() {
		acts = append(acts, tr.Act)
	}
	for _, a := range acts {
		// Notes are steps in the smallest search alone, looks before the cordon change nothing, and the model's policy looks at nothing that a node carries.
		assert.Check(t, a == intent.ActNote || a == intent.ActLook || a == intent.ActCheck || c.Acts[a] > 0, "act %s", a)
	}
	for _, want := range []string{
		"the host comes up, rolled back", "prepare fails", "activate fails", "the host reboots unplanned", "the agent is restarted",
		"a dead agent's write is carried out", "the proxy carries the agent's write out, and the answer is lost",
		"the agent asks the host for prepare, which it does, and the answer is lost", "the agent asks the host for prepare, which does not receive it",
		"the agent asks the host for activate, which it does, and the answer is lost", "the agent asks the host for activate, which does not receive it",
		"the agent asks the host for reboot, which it does, and the answer is lost", "the agent asks the host for reboot, which does not receive it",
		"the agent asks the host for deactivate", "a pod comes late",
		"a human cordons", "a human uncordons", "a human pauses the node", "a human ends the pause", "a human wants a retry",
		"the label is removed", "the label is put back", "the Node is deleted", "the kubelet registers",
		"the node is found NotReady", "the kubelet reports NotReady", "the kubelet reports Ready",
		"the deadlines of a node pass", "a controller dies and begins again", "the answer to a controller's write is lost",
		"the answer to a change of slots is lost", "a plan from an old look", "a plan in a pause", "a conflict over the slots",
	} {
		assert.Check(t, c.Moves[want] > 0, "move %q", want)
	}
	for _, r := range []string{"IntentExpired", "NotCordoned", "Paused"} {
		assert.Check(t, c.Refusals[r] > 0, "refusal %s", r)
	}
}

// The checks find what they are there for.
func TestDefectsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	finds := map[model.Defect]struct {
		c    model.Config
		want string
	}{
		model.DefectNoJudge:     {model.Config{Nodes: 1, Controllers: 1, Faults: 1}, "S3: a reboot begins after intent-until"},
		model.DefectBlindSlots:  {model.Config{Nodes: 2, Controllers: 2}, "S1: "},
		model.DefectBlindWrites: {model.Config{Nodes: 1, Controllers: 2}, "S"},
		model.DefectIdleTake:    {model.Config{Nodes: 1, Controllers: 2, Faults: 1}, "S1: a disrupted node holds no slot"},
		model.DefectNoLook:      {model.Config{Nodes: 1, Controllers: 2, Faults: 1}, "S2: the host goes down by our command and a pod is left on it"},
		model.DefectDeafAgent:   {model.Config{Nodes: 1, Controllers: 1}, "L1: "},
	}
	for _, d := range model.Defects() {
		t.Run(string(d), func(t *testing.T) {
			find, ok := finds[d]
			assert.Assert(t, ok)
			for _, find.c.Full = range []bool{false, true} {
				find.c.Budget, find.c.Defect = 1, d
				f := model.New(find.c).Run()
				fmt.Println(f)
				assert.Assert(t, slices.ContainsFunc(f.Violations, func(v model.Violation) bool { return strings.HasPrefix(v.What, find.want) }), "%+v", f.Violations)
			}
		})
	}
}

// A bound that is reached is said.
func TestABoundIsSaid(t *testing.T) {
	for want, c := range map[string]model.Config{
		"cut at 100 states": {States: 100},
		"cut at 1ns":        {Within: time.Nanosecond},
		"cut at 0 MiB":      {Memory: 1},
	} {
		c.Nodes, c.Controllers, c.Budget, c.Faults = 1, 1, 1, 1
		f := model.New(c).Run()
		assert.Assert(t, strings.Contains(f.String(), want), f.String())
	}
}
