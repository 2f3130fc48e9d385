package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

var now = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)

// The first refusal is read, and when to look again counts every check up to it.
func TestFirstRefusal(t *testing.T) {
	asked := 0
	check := func(r plan.Reason, in time.Duration) plan.Check[int] {
		return func(of int) plan.Refusal {
			asked += of
			return plan.Refusal{Reason: r, Again: now.Add(in)}
		}
	}
	for _, tc := range []struct {
		name   string
		checks []plan.Check[int]
		want   plan.Refusal
		asked  int
	}{
		{"none", nil, plan.Refusal{}, 0},
		{"none refuses", []plan.Check[int]{check("", 2), check("", 1), check("", 0)}, plan.Refusal{Again: now.Add(1)}, 3},
		{"the second refuses", []plan.Check[int]{check("", 1), check("a", 2), check("b", 0)}, plan.Refusal{Reason: "a", Again: now.Add(1)}, 2},
		{"the first moment that is to come counts", []plan.Check[int]{check("", -1), check("a", 2)}, plan.Refusal{Reason: "a", Again: now.Add(2)}, 2},
	} {
		asked = 0
		got := plan.FirstRefusal(now, 1, tc.checks...)
		assert.Assert(t, got.Reason == tc.want.Reason && got.Again.Equal(tc.want.Again), "%s: %+v", tc.name, got)
		assert.Equal(t, got.Refuses(), tc.want.Reason != "")
		assert.Equal(t, asked, tc.asked, tc.name)
	}
	r := plan.Refuse("a", plan.Messagef("%d pods", 2)).After("staged; ")
	assert.Assert(t, r.Refuses() && r.Message.String() == "staged; 2 pods")
}

// A message stands on a node for as long as its reason does; a dated one carries its moment, and an exact one is written
// again when it says something else.
func TestMessage(t *testing.T) {
	plain := plan.Messagef("%d of %s", 2, "a")
	assert.DeepEqual(t, plain.Waiting("R", now), &marker.Waiting{Reason: "R", Message: "2 of a"})
	assert.DeepEqual(t, plain.Dated().Waiting("R", now), &marker.Waiting{Reason: "R", Message: "2 of a (at 2026-09-20 10:00:00 UTC)"})
	assert.DeepEqual(t, plan.Text("100%").Waiting("R", now.In(time.FixedZone("", 3600))), &marker.Waiting{Reason: "R", Message: "100% (at 2026-09-20 10:00:00 UTC)"})
	long := plan.Text(strings.Repeat("x", 300)).Waiting("R", now).Message
	assert.Assert(t, len(long) == marker.MaxMessage && strings.HasSuffix(long, "x... (at 2026-09-20 10:00:00 UTC)"), long)

	for _, tc := range []struct {
		message plan.Message
		on      *marker.Waiting
		stands  bool
	}{
		{plain, nil, false},
		{plain, &marker.Waiting{Reason: "S", Message: "2 of a"}, false},
		{plain, &marker.Waiting{Reason: "R", Message: "1 of a"}, true},
		{plain.Exact(), &marker.Waiting{Reason: "R", Message: "1 of a"}, false},
		{plain.Exact(), &marker.Waiting{Reason: "R", Message: "2 of a"}, true},
		{plan.Text(strings.Repeat("x", 300)).Exact(), &marker.Waiting{Reason: "R", Message: strings.Repeat("x", 253) + "..."}, true},
	} {
		assert.Equal(t, tc.message.Stands(tc.on, "R"), tc.stands, "%s on %+v", tc.message, tc.on)
	}
	assert.Assert(t, plain.Ends().IsZero())
	assert.Equal(t, plain.Until(now).Ends(), now)

	text, err := json.Marshal(plain)
	assert.NilError(t, err)
	assert.Equal(t, string(text), `"2 of a"`)
	var read plan.Message
	assert.NilError(t, json.Unmarshal([]byte(`"100%"`), &read))
	assert.Equal(t, read.String(), "100%")
}

// A plan is printed with what is wrong for many nodes at the top, and a row for each node.
func TestString(t *testing.T) {
	p := plan.Plan{Disrupted: 3, LostUncounted: 1, Limit: 2, ByOthers: 1, PolicyProblem: "line 2", AdmissionProblem: "no wall", Warnings: []plan.Warning{{Message: plan.Text("odd\x1b")}},
		Stopped: []plan.StoppedVersion{{Version: "1.2.0", Message: plan.Text("1.2.0 failed")}},
		Nodes: []plan.Decision{
			{Node: "a", Phase: intent.PhaseWaiting, Reason: plan.ReasonUpToDate, Message: plan.Text("one\nline")},
			{Node: "b", Phase: intent.PhaseStaged, Version: "1.1.0", Target: "1.2.0", Act: intent.ActCordon, Reason: plan.ReasonCordoned, Message: plan.Text("goes")},
		},
		Steps: []plan.Step{{Node: "b", Act: intent.ActCordon}, {Node: "c", Act: intent.ActRelease, Reason: plan.ReasonNodeGone, Before: plan.LookGone}, {Node: "d", Act: intent.ActRelease}},
	}
	assert.Equal(t, p.String(), `2 nodes: 1 Waiting, 1 Staged
out of service: 3 of 2 allowed (1 from now on, 1 not by the operator, 1 a slot of a node that is gone); 1 Lost not counted
the policy is not in force: line 2
warning: no wall
warning: odd?
1.2.0 failed

NODE  PHASE    VERSION  TARGET  NEXT    REASON    MESSAGE
a     Waiting  -        -       wait    UpToDate  one line
b     Staged   1.1.0    1.2.0   Cordon  Cordoned  goes
`)
	p.Nodes[0].Message = plan.Text(strings.Repeat("x", 2000))
	p.PolicyProblem = strings.Repeat("y", 2000)
	text := p.String()
	assert.Assert(t, strings.Contains(text, " "+strings.Repeat("x", 1021)+"...\n"), text)
	assert.Assert(t, strings.Contains(text, "\nthe policy is not in force: "+strings.Repeat("y", 993)+"...\n"), text)
}

// A change that removes all takes the controller's and the agent's marks away, and leaves what users and others wrote.
func TestDiff(t *testing.T) {
	stands := map[string]string{string(marker.KeyIntentID): "1", string(marker.KeyBootID): "b", string(marker.KeyPaused): "", "example.com/a": "b"}
	got := (&plan.Change{RemoveAll: true}).Diff(stands)
	assert.DeepEqual(t, got, map[marker.Key]*string{marker.KeyIntentID: nil, marker.KeyBootID: nil})
	got = (&plan.Change{Marks: marker.Marks{HookID: "h"}}).Diff(stands)
	assert.DeepEqual(t, got, map[marker.Key]*string{marker.KeyIntentID: nil, marker.KeyHookID: new("h")})
	labelled := (&plan.Change{RemoveAll: true, Marks: marker.Marks{AutoLabelled: new("then")}}).Diff(stands)
	assert.DeepEqual(t, labelled, map[marker.Key]*string{marker.KeyIntentID: nil, marker.KeyBootID: nil, marker.KeyAutoLabelled: new("then")})
	got = (&plan.Change{RemoveAll: true, DropRetry: true}).Diff(nil)
	assert.DeepEqual(t, got, map[marker.Key]*string{marker.KeyRetry: nil})
}

// The marks of a node show its last step, and nothing where they tell of none.
func TestLastShown(t *testing.T) {
	attempt := func(o marker.Outcome, reason string) []marker.Attempt {
		return []marker.Attempt{{Version: "1.2.0", Outcome: o, Reason: reason, Ended: now}}
	}
	returned, failure := now.Add(time.Minute), &marker.Failure{Message: "no space", At: now}
	asked := marker.Intent{Action: marker.ActionRebootUpdate, Target: "1.2.0", Time: now}
	for _, tc := range []struct {
		name        string
		marks       marker.Marks
		id, message string
	}{
		{"nothing", marker.Marks{}, "", ""},
		{"a cordon", marker.Marks{Disruption: &marker.Disruption{Since: now}, Intent: marker.Intent{Target: "1.2.0"}},
			"Cordon 2026-09-20T10:00:00Z", "taken out of service for 1.2.0"},
		{"a reboot", marker.Marks{Disruption: &marker.Disruption{Since: now.Add(-1)}, Intent: asked}, "Reboot 2026-09-20T10:00:00Z", "asked to reboot into 1.2.0"},
		{"a return", marker.Marks{Disruption: &marker.Disruption{Returned: &returned}, History: attempt("updated", "Updated"), Report: marker.Report{Current: "1.2.0"}},
			"Return 2026-09-20T10:01:00Z", "Ready again with 1.2.0"},
		{"an end", marker.Marks{History: attempt(marker.OutcomeUpdated, "Updated")}, "Finish 2026-09-20T10:00:00Z Updated", "updated to 1.2.0"},
		{"a failure", marker.Marks{History: attempt(marker.OutcomeFailed, "StagingFailed"), Failure: failure}, "Finish 2026-09-20T10:00:00Z StagingFailed", "no space"},
		{"a failure of which another was told since", marker.Marks{History: attempt(marker.OutcomeFailed, "StagingFailed"), Failure: &marker.Failure{Message: "x", At: now.Add(1)}},
			"Finish 2026-09-20T10:00:00Z StagingFailed", "the attempt at 1.2.0 was abandoned"},
		{"a failure that was forgotten", marker.Marks{History: attempt(marker.OutcomeFailed, "StagingFailed")}, "Finish 2026-09-20T10:00:00Z StagingFailed", "the attempt at 1.2.0 was abandoned"},
		{"one abandoned", marker.Marks{History: attempt(marker.OutcomeAbandoned, "Paused"), Failure: failure}, "Finish 2026-09-20T10:00:00Z Paused", "the attempt at 1.2.0 was abandoned"},
		{"an end by any reason", marker.Marks{History: attempt(marker.OutcomeUpdated, string(plan.Reasons()[0]))},
			"Finish 2026-09-20T10:00:00Z " + string(plan.Reasons()[0]), "updated to 1.2.0"},
		{"an end by a reason of another build", marker.Marks{History: attempt(marker.OutcomeFailed, "New")}, "", ""},
	} {
		got, ok := plan.LastShown(&tc.marks)
		assert.Equal(t, ok, tc.id != "", tc.name)
		if ok {
			assert.Equal(t, got.ID(), tc.id)
			assert.Equal(t, got.Message(), tc.message)
		}
	}
}

// Steps that change marks are shown by them, and others aren't.
func TestStepShown(t *testing.T) {
	c := &plan.Change{Marks: marker.Marks{Disruption: &marker.Disruption{Since: now}}}
	ended := &plan.Change{Marks: c.Marks, EndsAttempt: true}
	for _, tc := range []struct {
		step  plan.Step
		shown bool
	}{
		{plan.Step{Act: intent.ActCordon, Change: c}, true}, {plan.Step{Act: intent.ActReboot, Change: c}, true}, {plan.Step{Act: intent.ActReturn, Change: c}, true},
		{plan.Step{Act: intent.ActAbandon, Change: c}, true}, {plan.Step{Act: intent.ActUncordon, Change: c}, true},
		{plan.Step{Act: intent.ActFinish, Change: ended}, true}, {plan.Step{Act: intent.ActSoak, Change: ended}, true},
		{plan.Step{Act: intent.ActFinish, Change: c}, false}, {plan.Step{Act: intent.ActSoak, Change: c}, false},
		{plan.Step{Act: intent.ActNote, Change: c}, false}, {plan.Step{Act: intent.ActDrain}, false},
	} {
		_, ok := tc.step.Shown()
		assert.Equal(t, ok, tc.shown, "%s", tc.step.Act)
		assert.Equal(t, tc.step.Starts(), tc.step.Act != intent.ActNote && tc.step.Act != intent.ActDrain, "%s", tc.step.Act)
	}
}

// The first moment that is still to come counts.
func TestEarliest(t *testing.T) {
	assert.Assert(t, plan.Earliest(now).IsZero())
	assert.Assert(t, plan.Earliest(now, time.Time{}, now, now.Add(-1)).IsZero())
	assert.Equal(t, plan.Earliest(now, now.Add(3), now.Add(1), now.Add(2), now), now.Add(1))
}
