package planner_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

func stepOf(t *testing.T, n fleet.Node, act intent.Act) *plan.Step {
	t.Helper()
	var held []string
	if n.Disrupted() {
		held = append(held, n.Name)
	}
	_, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, held...), policy.DefaultSettings()), n.Name)
	assert.Assert(t, step != nil && step.Act == act, "%+v", step)
	return step
}

// We undo exactly our own cordon (S5).
func TestCordon(t *testing.T) {
	on, off := new(true), new(false)
	noSoak := func(n *fleet.Node) { n.Marks.Disruption.Soak = nil }
	for _, tc := range []struct {
		name    string
		act     intent.Act
		changes []change
		want    *bool
	}{
		{"a schedulable node is cordoned", intent.ActCordon, []change{prepared}, on},
		{"a cordoned one is not touched", intent.ActCordon, []change{prepared, cordoned}, nil},
		{"abandoned: ours goes", intent.ActAbandon, []change{draining, paused}, off},
		{"abandoned: a user's stays", intent.ActAbandon, []change{draining, wasCordoned, paused}, nil},
		{"abandoned because ours was taken", intent.ActAbandon, []change{draining, schedulable}, nil},
		{"back: ours goes", intent.ActReturn, []change{back(v2)}, off},
		{"back: a user's stays", intent.ActReturn, []change{back(v2), wasCordoned}, nil},
		{"back: already taken by a user", intent.ActReturn, []change{back(v2), schedulable}, nil},
		{"rolled back: ours goes too", intent.ActReturn, []change{back(v1)}, off},
		{"unwell: cordoned again", intent.ActRecordon, []change{verifying(1), notReady}, on},
		{"unwell, cordoned by a user meanwhile", intent.ActRecordon, []change{verifying(1), notReady, cordoned}, nil},
		{"well again: ours goes", intent.ActSoak, []change{verifying(1), cordoned, noSoak}, off},
		{"well again: a user's stays", intent.ActSoak, []change{verifying(1), cordoned, wasCordoned, noSoak}, nil},
		{"Ready changed in the soak: a cordon that stands isn't ours", intent.ActSoak, []change{verifying(1), cordoned, with(func(n *fleet.Node) { n.ReadySince = "r2" })}, nil},
		{"finished: a cordon that stands isn't ours", intent.ActFinish, []change{verifying(time.Hour), cordoned}, nil},
		{"left while draining: ours goes", intent.ActLeave, []change{draining, unlabelled}, off},
		{"left while draining: a user's stays", intent.ActLeave, []change{draining, wasCordoned, unlabelled}, nil},
		{"left during the soak: a cordon that stands isn't ours", intent.ActLeave, []change{verifying(1), cordoned, unlabelled}, nil},
		{"left after it was cordoned again: ours goes", intent.ActLeave, []change{verifying(1), cordoned, noSoak, unlabelled}, off},
		{"left for good by a Lost node: ours goes", intent.ActLeave, []change{lost, unlabelled}, off},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.DeepEqual(t, stepOf(t, node("a", tc.changes...), tc.act).Change.Unschedulable, tc.want)
		})
	}
}

// The record of the cordon says what stood there before it.
func TestRecord(t *testing.T) {
	d := stepOf(t, node("a", prepared), intent.ActCordon).Change.Marks.Disruption
	assert.Assert(t, !d.WasUnschedulable && d.Since.Equal(now) && d.Soak == nil)
	assert.Assert(t, stepOf(t, node("a", prepared, cordoned), intent.ActCordon).Change.Marks.Disruption.WasUnschedulable)
	d = stepOf(t, node("a", back(v2)), intent.ActReturn).Change.Marks.Disruption
	assert.Assert(t, d.Soak.Equal(now) && d.Returned.Equal(now) && d.Ready == "r1" && d.Since.Before(now))
	d = stepOf(t, node("a", verifying(1), notReady), intent.ActRecordon).Change.Marks.Disruption
	assert.Assert(t, d.Soak == nil && d.Ready == "" && !d.WasUnschedulable)
	assert.Assert(t, stepOf(t, node("a", verifying(1), notReady, cordoned), intent.ActRecordon).Change.Marks.Disruption.WasUnschedulable,
		"a user cordoned it in the soak")
	assert.Assert(t, !stepOf(t, node("a", verifying(1), notReady, wasCordoned), intent.ActRecordon).Change.Marks.Disruption.WasUnschedulable,
		"a user took the older cordon away in the soak, so nothing stood there before this one")
}

// What ends an attempt is one patch, and counts only what failed.
func TestGivingBack(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changes []change
		reason  plan.Reason
		outcome marker.Outcome
	}{
		{"a failure of the host", []change{preparing, answers(marker.StateError, "x")}, plan.ReasonStagingFailed, marker.OutcomeFailed},
		{"a deadline", []change{draining, drain(fleet.Drain{Remaining: 1}), cordonedSince(time.Hour)}, plan.ReasonDrainDeadline, marker.OutcomeFailed},
		{"a reboot that never began", []change{rebooting, issued(time.Hour)}, plan.ReasonRebootDeadline, marker.OutcomeFailed},
		{"a reboot that failed", []change{rebooting, answers(marker.StateError, "x")}, plan.ReasonRebootFailed, marker.OutcomeFailed},
		{"a pause", []change{draining, paused}, plan.ReasonPaused, marker.OutcomeAbandoned},
		{"a human's hand", []change{draining, schedulable}, plan.ReasonUncordonedByUser, marker.OutcomeUncordoned},
		{"an offer withdrawn", []change{draining, offered("")}, plan.ReasonOfferWithdrawn, marker.OutcomeAbandoned},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := node("a", append(tc.changes, failedOnce(0, "1.0.1"))...)
			step := stepOf(t, n, intent.ActAbandon)
			m := step.Change.Marks
			assert.Equal(t, step.Reason, tc.reason)
			assert.Equal(t, step.FreesSlot, n.Disrupted())
			assert.Equal(t, m.Intent.Action, marker.ActionResetState)
			assert.Assert(t, m.Intent.ID != n.Marks.Intent.ID && m.Intent.Target == "" && m.Intent.RebootFrom == "" && m.Disruption == nil)
			last := m.History[len(m.History)-1]
			assert.Equal(t, last.Version, v2)
			assert.Equal(t, last.Reason, string(tc.reason))
			assert.Equal(t, last.Outcome, tc.outcome)
			if tc.outcome != marker.OutcomeFailed {
				assert.Equal(t, m.Failure.Count, 1)
				return
			}
			assert.Equal(t, last.Outcome, marker.OutcomeFailed)
			assert.Equal(t, m.Failure.Count, 2)
			assert.DeepEqual(t, m.Failure.Versions, []string{"1.0.1", v2})
			assert.Equal(t, m.Failure.RetryAfter.Sub(now), 20*time.Minute, "back-off grows with the count")
		})
	}
}

// Only a success clears failures, and a rolled-back node keeps its own. What another version was to blame for is still
// known then (S6).
func TestEndOfAnAttempt(t *testing.T) {
	step := stepOf(t, node("a", verifying(time.Hour), failedOnce(time.Hour, v1, v2)), intent.ActFinish)
	assert.DeepEqual(t, *step.Change.Marks.Failure, marker.Failure{Versions: []string{v1}, Broken: []string{v1}, Reason: "X", At: now, RetryAfter: now}, cmpopts.IgnoreUnexported(marker.Failure{}))

	step = stepOf(t, node("a", verifying(time.Hour), failedOnce(0, v2)), intent.ActFinish)
	m := step.Change.Marks
	assert.Assert(t, step.FreesSlot && m.Failure == nil && m.Disruption == nil && m.Waiting == nil && m.Intent.Target == "" && m.Intent.RebootFrom == "")
	assert.Equal(t, m.History[0].Outcome, marker.OutcomeUpdated)

	step = stepOf(t, node("a", back(v1)), intent.ActReturn)
	assert.Assert(t, !step.FreesSlot && step.Change.Marks.Disruption != nil, "the slot is held through the soak")
	assert.DeepEqual(t, step.Change.Marks.Failure.Versions, []string{v2})
	assert.Equal(t, step.Change.Marks.Intent.Target, "")

	n := node("a", verifying(time.Hour), failedOnce(0, v2))
	n.OSVersion, n.Marks.Report.Current, n.Marks.Intent.Target = v1, v1, ""
	m = stepOf(t, n, intent.ActFinish).Change.Marks
	assert.Assert(t, m.Failure != nil && len(m.History) == 0, "the failure was told before")

	retry := stepOf(t, node("a", draining, failedOnce(0, v2), with(func(n *fleet.Node) { n.Marks.Retry = true })), intent.ActRetry)
	assert.Assert(t, retry.Change.DropRetry && retry.Change.Marks.Failure == nil && retry.Change.Marks.Disruption != nil)

	tried := []marker.Attempt{{Outcome: marker.OutcomeFailed}, {Outcome: marker.OutcomeAbandoned}, {Outcome: marker.OutcomeUpdated}}
	retry = stepOf(t, node("a", offered(v2), with(func(n *fleet.Node) { n.Marks.Retry, n.Marks.History = true, tried })), intent.ActRetry)
	for i, counts := range []bool{true, false, true} {
		assert.Equal(t, retry.Change.Marks.History[i].Retried, !counts, "the last attempt without success, and those before it, hold up none")
	}

	retry = stepOf(t, node("a", offered(v2), with(func(n *fleet.Node) { n.Marks.Retry, n.Marks.History = true, tried[:1] })), intent.ActRetry)
	assert.Assert(t, retry.Change.Marks.History[0].Retried)

	ended := stepOf(t, node("a", draining, paused, cordonedSince(7*time.Minute)), intent.ActAbandon).Change.Marks.History[0]
	assert.Assert(t, ended.Started.Equal(now.Add(-7*time.Minute)) && ended.Ended.Equal(now), "an attempt that was out of service began with its cordon")

	leave := stepOf(t, node("a", draining, unlabelled), intent.ActLeave)
	assert.Assert(t, leave.Change.RemoveAll && leave.FreesSlot)
}

// Back-off doubles up to its limit, and a failure remembers a bounded number of versions.
func TestBackOff(t *testing.T) {
	n := node("a", preparing, answers(marker.StateError, "x"))
	var waits []time.Duration
	for i := range 12 {
		n.Marks.Intent.Target = "2.0." + string(rune('a'+i))
		n.Marks.Report.Available = n.Marks.Intent.Target
		m := stepOf(t, n, intent.ActAbandon).Change.Marks
		n.Marks.Failure = m.Failure
		waits = append(waits, m.Failure.RetryAfter.Sub(now))
		assert.Assert(t, len(m.Failure.Versions) <= 10 && len(m.History) <= marker.HistoryLength)
		n.Marks.History = m.History
	}
	assert.Equal(t, waits[0], 10*time.Minute)
	assert.Equal(t, waits[3], 80*time.Minute)
	assert.Equal(t, waits[11], 24*time.Hour)
	far := stepOf(t, node("a", offered(v2), failedOnce(100*time.Hour, v2)), intent.ActNote)
	assert.Equal(t, far.Change.Marks.Failure.RetryAfter.Sub(now), 24*time.Hour)
}
