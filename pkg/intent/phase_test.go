package intent_test

import (
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// The table of docs/design.md#the-life-of-a-node, whole: each action, disrupted or not, with each answer.
func TestPhaseOf(t *testing.T) {
	const none, busy, ready, failed = marker.StateNone, marker.StateBusy, marker.StateReady, marker.StateError
	for _, tc := range []struct {
		action    marker.Action
		disrupted bool
		answers   []marker.State
		phase     intent.Phase
	}{
		{"", false, []marker.State{none, busy, ready, failed}, intent.PhaseNew},
		{marker.ActionStabilize, false, []marker.State{none, busy, ready, failed}, intent.PhaseWaiting},
		{marker.ActionStabilize, true, []marker.State{none, busy, ready, failed}, intent.PhaseVerifying},
		{marker.ActionPrepareUpdate, false, []marker.State{none, busy, failed}, intent.PhaseStaging},
		{marker.ActionPrepareUpdate, false, []marker.State{ready}, intent.PhaseStaged},
		{marker.ActionPrepareUpdate, true, []marker.State{none, busy, ready, failed}, intent.PhaseDraining},
		{marker.ActionRebootUpdate, true, []marker.State{none, busy}, intent.PhaseRebooting},
		{marker.ActionRebootUpdate, true, []marker.State{ready, failed}, intent.PhaseReturning},
		{marker.ActionResetState, false, []marker.State{none, busy, ready, failed}, intent.PhaseResetting},
	} {
		for _, answer := range tc.answers {
			m := marker.Marks{Intent: marker.Intent{ID: "2", Action: tc.action}}
			if tc.disrupted {
				m.Disruption = &marker.Disruption{Since: time.Unix(1, 0)}
			}
			m.Report = marker.Report{ActiveID: "2", State: answer}
			assert.Equal(t, intent.PhaseOf(m), tc.phase, "%s %v %s", tc.action, tc.disrupted, answer)
			assert.Equal(t, intent.PointOfNoReturn(m), tc.action == marker.ActionRebootUpdate && answer != none)
			m.Report.ActiveID = "1"
			stale := intent.PhaseOf(m)
			m.Report.State = none
			assert.Equal(t, stale, intent.PhaseOf(m), "an answer to an older intent counts for nothing")
			assert.Assert(t, !intent.PointOfNoReturn(m))
		}
	}
}

// Every phase but those that PhaseOf never returns has an act that leaves it.
func TestTransitionsLeaveEveryPhase(t *testing.T) {
	for _, p := range intent.Phases() {
		if p == intent.PhaseUpToDate || p == intent.PhaseLost || p == intent.PhaseUnreadable {
			continue
		}
		assert.Assert(t, slices.ContainsFunc(intent.Transitions(), func(l intent.Transition) bool {
			return slices.Contains(l.From, p) && l.To != "" && l.To != p || l.Act == intent.ActStabilize && p == intent.PhaseNew
		}) || p == intent.PhaseResetting, "nothing leaves %s", p)
	}
}

func TestTransitions(t *testing.T) {
	allowed := map[intent.Act][]intent.Phase{}
	for _, l := range intent.Transitions() {
		for _, p := range l.From {
			assert.Assert(t, !slices.Contains(allowed[l.Act], p), "%s from %s stands there twice", l.Act, p)
			assert.Assert(t, slices.Contains(intent.Phases(), p))
			allowed[l.Act] = append(allowed[l.Act], p)
		}
		assert.Equal(t, l.Issues == "" || slices.Contains(marker.Actions(), l.Issues), true)
	}
	for act := range allowed {
		for _, p := range intent.Phases() {
			l, err := intent.Lookup(act, p)
			assert.Equal(t, err == nil, slices.Contains(allowed[act], p), "%s from %s", act, p)
			if err == nil {
				assert.Equal(t, l.Act, act)
			}
		}
	}
	for _, tc := range []struct {
		name string
		act  intent.Act
		from intent.Phase
		ok   bool
	}{
		{"a cordon needs a staged node", intent.ActCordon, intent.PhaseStaging, false},
		{"a reboot needs a drained node", intent.ActReboot, intent.PhaseStaged, false},
		{"a node that verifies isn't abandoned", intent.ActAbandon, intent.PhaseVerifying, false},
		{"an unreadable node is left alone", intent.ActNote, intent.PhaseUnreadable, false},
		{"a slot is never fenced off while the node drains", intent.ActFence, intent.PhaseDraining, false},
		{"a drain can be abandoned", intent.ActAbandon, intent.PhaseDraining, true},
		{"leaving has no line: it removes the marks", intent.ActLeave, intent.PhaseWaiting, false},
	} {
		_, err := intent.Lookup(tc.act, tc.from)
		assert.Equal(t, err == nil, tc.ok, tc.name)
	}
	_, err := intent.Lookup(intent.ActCordon, intent.PhaseWaiting)
	assert.Error(t, err, "Cordon is not allowed in phase Waiting")
	_, err = intent.Lookup(intent.ActLeave, intent.PhaseWaiting)
	assert.Error(t, err, "Leave is not an act on a node's marks")
	fence, err := intent.Lookup(intent.ActFence, intent.PhaseResetting)
	assert.NilError(t, err)
	assert.Equal(t, fence.Issues, marker.ActionResetState, "a fence doesn't drop the wish to deactivate")
}
