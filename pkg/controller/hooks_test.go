package controller_test

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Neither reboot nor uncordon goes before the hooks, also if the controller that asked them is gone; an answer of the
// first stage counts for nothing in the second.
func TestHooks(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	const done = "example.com/done"
	hooks := func(o *controller.Options) {
		hook := []policy.Hook{{Name: "storage", Annotation: done, Timeout: time.Hour, OnTimeout: policy.Abort}}
		o.Policy.Hooks = policy.Hooks{AfterDrain: hook, BeforeUncordon: hook}
	}
	_, stop := f.control(hooks)
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("the hook after the drain is asked", a.waitsFor(plan.ReasonHookAwaited))
	stop()
	first := a.marks().HookID
	assert.Assert(t, strings.HasPrefix(first, "after-drain."), first)
	f.annotateFor("a", done, "some other time")
	_, stop = f.control(hooks)
	passBy(t, 2*time.Second)
	assert.Equal(t, a.rebooted(), 0)
	assert.Equal(t, a.marks().HookID, first, "a new leader asks for the same")
	f.annotateFor("a", done, first)
	f.until("the hook before the uncordon is asked", func() bool { return strings.HasPrefix(a.marks().HookID, "before-uncordon.") })
	passBy(t, 2*time.Second)
	assert.Assert(t, a.node().Spec.Unschedulable)
	assert.Equal(t, a.rebooted(), 1)
	writes := f.writes("a")
	passBy(t, 2*time.Second)
	assert.Equal(t, f.writes("a"), writes, "a wait writes nothing (L4)")
	f.annotateFor("a", done, a.marks().HookID)
	f.until("a is updated", a.updatedTo(v2))
	n := a.node()
	assert.Assert(t, !n.Spec.Unschedulable && a.marks().HookID == "")
	assert.Assert(t, strings.HasPrefix(n.Annotations[done], "before-uncordon."), "the user's annotation stays")
	stop()
}

// A hook that is silent after the drain abandons the attempt; the failure says which.
func TestSilentHook(t *testing.T) {
	f := newFleet(t, "a", "b")
	f.machines["b"].halt()
	f.control(func(o *controller.Options) {
		o.Policy.Hooks.AfterDrain = []policy.Hook{{Name: "storage", Annotation: "example.com/done", Timeout: time.Second, OnTimeout: policy.Abort}}
	})
	a := f.machines["a"]
	f.until("a is managed", a.updatedTo(v1))
	f.release(v2)
	f.until("the attempt on a is abandoned", func() bool { return a.marks().Failure != nil })
	m := a.marks()
	assert.Assert(t, m.Disruption == nil && m.HookID == "" && !a.node().Spec.Unschedulable)
	assert.Equal(t, m.Failure.Reason, string(plan.ReasonHookFailed))
	assert.Equal(t, m.Failure.Message, "hook storage has not answered within 1s")
	assert.Equal(t, len(othersMarks(a.node())), 0)
	assert.Equal(t, a.rebooted(), 0)
	assert.Equal(t, m.History[len(m.History)-1].Outcome, marker.OutcomeFailed)
}
