package model

import (
	"slices"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// What marks lose when they are put into terms makes no plan another one.
func TestTermsChangeNoPlan(t *testing.T) {
	states := 20_000
	if testing.Short() {
		states /= 10
	}
	m := New(Config{Nodes: 1, Controllers: 1, Budget: 1, Faults: 2, States: states})
	// The acts and reasons of a plan, and the reason why a node waits.
	plan := func(r record, slot, drained bool) []plan.Reason {
		c := column{cur: r, agent: agent{up: true}}
		var out []plan.Reason
		for _, s := range m.single(c, slot, drained) {
			out = append(out, plan.Reason(s.Act), s.Reason)
		}
		return out
	}
	compared, different := 0, 0
	m.translated = func(raw, in record) {
		if raw.marks == in.marks {
			return
		}
		compared++
		for _, slot := range []bool{false, true} {
			for _, drained := range []bool{false, true} {
				if a, b := plan(raw, slot, drained), plan(in, slot, drained); !slices.Equal(a, b) && different < 3 {
					different++
					t.Errorf("%v becomes %v:\n%s\n%s", a, b, raw.marks, in.marks)
				}
			}
		}
	}
	m.Run()
	assert.Assert(t, compared > 1000, "%d", compared)
}
