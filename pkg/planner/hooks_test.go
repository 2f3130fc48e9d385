package planner_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const released, quorum, healthy = "example.com/released", "example.com/quorum", "example.com/healthy"

func withHooks(s *policy.Settings) {
	s.Hooks = policy.Hooks{
		AfterDrain: []policy.Hook{
			{Name: "storage", Annotation: released, Timeout: 5 * time.Minute, OnTimeout: policy.Abort},
			{Name: "quorum", Annotation: quorum, Timeout: 10 * time.Minute, OnTimeout: policy.Ignore},
		},
		BeforeUncordon: []policy.Hook{{Name: "health", Annotation: healthy, Timeout: 5 * time.Minute, OnTimeout: policy.Abort}},
	}
}

// asked are hooks of a stage that have been awaited for some time.
func asked(stage string, ago time.Duration) change {
	return func(n *fleet.Node) {
		at := now.Add(-ago)
		n.Marks.HookID, n.Marks.Disruption.Asked = stage+"5-abc", &at
		n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonHookAwaited), Message: "x"}
	}
}

func hooksAnswered(keys ...string) change { return func(n *fleet.Node) { n.HooksAnswered = keys } }

func planOf(t *testing.T, set func(*policy.Settings), changes ...change) (plan.Decision, *plan.Step) {
	t.Helper()
	s := policy.DefaultSettings()
	set(&s)
	n := node("a", changes...)
	var held []string
	if n.Disrupted() {
		held = append(held, "a")
	}
	return find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, held...), s), "a")
}

// Each stage waits for its hooks; one that is silent for too long is ignored, or ends the attempt, as the policy says.
func TestHooks(t *testing.T) {
	after, before := "after-drain.", "before-uncordon."
	empty := drain(fleet.Drain{Next: now.Add(time.Hour)})
	watched := func(n *fleet.Node) { n.WatchedSince = now }
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
	}{
		{"they are asked when nothing is left to evict", []change{draining, empty}, "Draining wait HookAwaited"},
		{"and not before", []change{draining, drain(fleet.Drain{Remaining: 1, Next: now.Add(time.Hour)})}, "Draining wait Draining"},
		{"none has answered", []change{draining, empty, asked(after, time.Minute)}, "Draining wait HookAwaited"},
		{"one has", []change{draining, empty, asked(after, time.Minute), hooksAnswered(released)}, "Draining wait HookAwaited"},
		{"both have", []change{draining, empty, asked(after, time.Minute), hooksAnswered(quorum, released)}, "Draining Reboot RebootRequested"},
		{"too late, and that aborts", []change{draining, empty, asked(after, 5*time.Minute), hooksAnswered(quorum)}, "Draining Abandon HookFailed"},
		{"a new leader looks twice", []change{draining, empty, asked(after, 5*time.Minute), hooksAnswered(quorum), firstLook}, "Draining wait HookAwaited"},
		{"an answer beats the deadline", []change{draining, empty, asked(after, time.Hour), hooksAnswered(quorum, released)}, "Draining Reboot RebootRequested"},
		{"too late, and ignored", []change{draining, empty, asked(after, 10*time.Minute), hooksAnswered(released)}, "Draining Reboot RebootRequested"},
		{"what hooks take is not the drain's", []change{draining, empty, asked(after, time.Minute), cordonedSince(2 * time.Hour)}, "Draining wait HookAwaited"},
		{"their time is waited for an agent too", []change{draining, empty, asked(after, 39*time.Minute), agentAway, watched}, "Draining wait AgentNotReady"},
		{"and no longer", []change{draining, empty, asked(after, 40*time.Minute), agentAway, watched}, "Draining Abandon DrainDeadline"},
		{"a pause ends it", []change{draining, empty, asked(after, time.Minute), paused}, "Draining Abandon Paused"},
		{"a human's hand too", []change{draining, empty, asked(after, time.Minute), schedulable}, "Draining Abandon UncordonedByUser"},
		{"rebooted by a user meanwhile", []change{draining, empty, asked(after, time.Minute), func(n *fleet.Node) { n.BootID = "b2" }}, "Draining Reboot RebootedEarly"},

		{"before the uncordon they are asked anew", []change{back(v2)}, "Returning wait HookAwaited"},
		{"an answer to the first stage is none", []change{back(v2), asked(after, time.Minute), hooksAnswered(healthy)}, "Returning wait HookAwaited"},
		{"rolled back: they are asked too", []change{back(v1)}, "Returning wait HookAwaited"},
		{"not while the node isn't well", []change{back(v2), notReady}, "Returning wait Returning"},
		{"answered", []change{back(v2), asked(before, time.Minute), hooksAnswered(healthy)}, "Returning Return Uncordoned"},
		{"rolled back and answered", []change{back(v1), asked(before, time.Minute), hooksAnswered(healthy)}, "Returning Return RolledBack"},
		{"silent", []change{back(v2), asked(before, time.Minute)}, "Returning wait HookAwaited"},
		{"silent for too long", []change{back(v2), asked(before, 5*time.Minute)}, "Lost wait Lost"},
		{"an answer ends that", []change{back(v2), asked(before, time.Hour), hooksAnswered(healthy)}, "Returning Return Uncordoned"},
		{"the label ends that", []change{back(v2), asked(before, time.Hour), unlabelled}, "Returning Leave LabelRemoved"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			standing, _ := planOf(t, withHooks, tc.changes...)
			assert.Equal(t, verdict(standing), tc.want)
		})
	}
}

// The first look at a stage writes the id and since when; what is written with it names the hook.
func TestHooksAreAsked(t *testing.T) {
	standing, step := planOf(t, withHooks, draining, drain(fleet.Drain{}))
	m := step.Change.Marks
	assert.Equal(t, step.Act, intent.ActNote)
	assert.Assert(t, strings.HasPrefix(m.HookID, "after-drain.5-"), m.HookID)
	assert.Assert(t, m.Disruption.Asked.Equal(now) && m.Waiting.Reason == string(plan.ReasonHookAwaited))
	assert.Equal(t, m.Intent.ID, "i1", "the intent stands: the agent has nothing to answer")
	assert.Equal(t, standing.Message.String(),
		"hook storage is awaited since 2026-09-20 10:00:00 UTC: the annotation example.com/released is to have the value of bottlerocket.aws/hook-id")
	standing, _ = planOf(t, withHooks, draining, drain(fleet.Drain{}), asked("after-drain.", time.Minute))
	assert.Assert(t, standing.NotBefore.Equal(now.Add(4*time.Minute)))
	again, _ := marker.Decode(annotations(step.Change))
	assert.Equal(t, again.HookID, m.HookID)
}

// People read on the node itself which hook is awaited, also when the first of two has answered; it is written once (L4).
func TestHookThatIsAwaitedIsNamed(t *testing.T) {
	s := policy.DefaultSettings()
	withHooks(&s)
	n := node("a", draining, drain(fleet.Drain{}))
	plan := func() *plan.Step {
		_, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, "a"), s), "a")
		if step != nil {
			assert.Equal(t, step.Act, intent.ActNote)
			n.Marks, _ = marker.Decode(annotations(step.Change))
			n.Marks.Report = node("a", draining).Marks.Report
		}
		return step
	}
	assert.Assert(t, plan() != nil)
	assert.Assert(t, strings.HasPrefix(n.Marks.Waiting.Message, "hook storage is awaited"))
	assert.Assert(t, plan() == nil, "nothing has changed")
	hooksAnswered(released)(&n)
	assert.Assert(t, plan() != nil)
	assert.Assert(t, strings.HasPrefix(n.Marks.Waiting.Message, "hook quorum is awaited"), n.Marks.Waiting.Message)
	assert.Assert(t, plan() == nil, "nothing has changed")
}

// Whatever ends a stage ends what was asked of hooks, so no answer counts twice.
func TestHooksAreAskedNoMore(t *testing.T) {
	pausing := func(s *policy.Settings) {
		withHooks(s)
		s.Pause = &policy.Pause{Reason: "p", InFlight: policy.Return}
	}
	answered := hooksAnswered(healthy, quorum, released)
	for _, tc := range []struct {
		act     intent.Act
		set     func(*policy.Settings)
		changes []change
	}{
		{intent.ActReboot, withHooks, []change{draining, drain(fleet.Drain{}), asked("after-drain.", 1), answered}},
		{intent.ActUncordon, pausing, []change{draining, drain(fleet.Drain{}), asked("after-drain.", 1), answered}},
		{intent.ActAbandon, withHooks, []change{draining, drain(fleet.Drain{}), asked("after-drain.", 1), paused}},
		{intent.ActReturn, withHooks, []change{back(v2), asked("before-uncordon.", 1), answered}},
		{intent.ActLeave, withHooks, []change{back(v2), asked("before-uncordon.", 1), unlabelled}},
	} {
		_, step := planOf(t, tc.set, tc.changes...)
		assert.Assert(t, step != nil && step.Act == tc.act, "%+v", step)
		m := step.Change.Marks
		assert.Assert(t, m.HookID == "" && (m.Disruption == nil || m.Disruption.Asked == nil), "%s", tc.act)
	}
	_, step := planOf(t, withHooks, draining, drain(fleet.Drain{}), asked("after-drain.", time.Hour))
	assert.Equal(t, step.Change.Marks.Failure.Reason, string(plan.ReasonHookFailed))
	assert.Equal(t, len(step.Change.Marks.Failure.Broken), 0, "no version is to blame")
}

// A Lost node that waits for a hook lends its slot on like any other (L3).
func TestSilentHookLendsTheSlot(t *testing.T) {
	s := policy.DefaultSettings()
	withHooks(&s)
	out := planner.Plan(fleetOf([]fleet.Node{node("a", back(v2), asked("before-uncordon.", time.Hour)), node("b", prepared), node("c")}, "a"), s)
	assert.Equal(t, out.LostUncounted, 1)
	standing, _ := find(t, out, "b")
	assert.Equal(t, standing.Act, intent.ActCordon)
}
