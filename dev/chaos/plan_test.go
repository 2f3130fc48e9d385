package chaos

import (
	"testing"

	"gotest.tools/v3/assert"
)

func TestSameSeedSamePlan(t *testing.T) {
	assert.DeepEqual(t, Draw(7, 3), Draw(7, 3))
	a, b := Draw(7, 3), Draw(8, 3)
	same := len(a.Operator) == len(b.Operator)
	for i := range a.Operator {
		same = same && a.Operator[i] == b.Operator[i]
	}
	assert.Assert(t, !same, "another seed is another plan")
	struck := map[Fault]int{}
	for _, s := range append(a.Platform, a.Operator...) {
		struck[s.Fault]++
		assert.Assert(t, s.After > 0 && s.Hold > leaseDuration, "%v", s)
	}
	for _, f := range Faults() {
		assert.Equal(t, struck[f], 3, "%s", f)
	}
	assert.Equal(t, len(struck), len(Faults()))
}

func TestRunWithoutAFaultIsBad(t *testing.T) {
	r := Result{Struck: map[Fault]int{}}
	for _, f := range Faults() {
		assert.ErrorContains(t, r.Err(), "never struck")
		r.Struck[f]++
	}
	assert.NilError(t, r.Err())
	r.Missed = []string{"it missed"}
	assert.ErrorContains(t, r.Err(), "it missed")
	r.Violations = []Violation{{Promise: "S1", What: "too many"}}
	assert.ErrorContains(t, r.Err(), "too many")
	var total Total
	total.Add(r, r.Err())
	total.Add(Result{Seed: 2, Struck: map[Fault]int{AgentKilled: 1}}, nil)
	assert.Equal(t, total.Bad, 1)
	assert.Equal(t, total.Struck[AgentKilled], 2)
	assert.Equal(t, total.Violations, 1)
}
