package controller

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Each phase counts as the state of Brupop's that docs/migration.md says, and as no other.
func TestBrupopStates(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	assert.NilError(t, err)
	_, table, begins := strings.Cut(string(page), "### States of Brupop\n")
	assert.Assert(t, begins)
	table, _, _ = strings.Cut(table, "\n#")
	word := regexp.MustCompile("`(\\w+)`")
	var documented []intent.Phase
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		state := word.FindStringSubmatch(cells[1])[1]
		assert.Assert(t, slices.Contains(brupopStates, state), state)
		for _, w := range word.FindAllStringSubmatch(cells[2], -1) {
			d := &plan.Decision{Phase: intent.Phase(w[1])}
			switch {
			case w[1] == string(plan.ReasonBackingOff):
				d.Phase, d.Reason = intent.PhaseWaiting, plan.ReasonBackingOff
			case state == brupopError && d.Phase == intent.PhaseWaiting:
				continue
			default:
				documented = append(documented, d.Phase)
			}
			assert.Equal(t, brupopState(d), state, "%v", w[1])
		}
	}
	slices.Sort(documented)
	assert.DeepEqual(t, documented, slices.Sorted(slices.Values(intent.Phases())))
}
