package planner_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// FLUO_30: a host went down with volumes attached. The reboot waits for those of evicted pods, for a bounded time.
func TestFLUO_30(t *testing.T) {
	soon := now.Add(time.Second)
	attached := looked(fleet.Checked{For: fleet.CheckVolumes, Attachments: []string{"csi-1"}, Problem: "volume v is still attached", Next: soon})
	failed := looked(fleet.Checked{For: fleet.CheckVolumes, Failed: "listing volume attachments: forbidden", Next: soon})
	since := func(ago time.Duration) change {
		return func(n *fleet.Node) { at := now.Add(-ago); n.Marks.Disruption.Drained = &at }
	}
	empty := drain(fleet.Drain{Next: now.Add(time.Hour)})
	byDefault := func(*policy.Settings) {}
	aborting := func(s *policy.Settings) { s.Volumes.OnTimeout = policy.Abort }
	for _, tc := range []struct {
		name    string
		set     func(*policy.Settings)
		changes []change
		want    string
	}{
		{"it is looked for them when nothing is left to evict", byDefault, []change{draining, empty, unlooked}, "Draining Check VolumesAttached"},
		{"not before", byDefault, []change{draining, drain(fleet.Drain{Remaining: 1, Next: soon})}, "Draining wait Draining"},
		{"one is there", byDefault, []change{draining, empty, attached}, "Draining wait VolumesAttached"},
		{"it stays", byDefault, []change{draining, empty, attached, since(time.Minute)}, "Draining wait VolumesAttached"},
		{"it is looked for again", byDefault, []change{draining, empty, looked(fleet.Checked{For: fleet.CheckVolumes, Problem: "x"}), since(time.Minute)}, "Draining Check VolumesAttached"},
		{"the check fails", byDefault, []change{draining, empty, failed, since(time.Minute)}, "Draining wait CheckFailing"},
		{"none is there any more", byDefault, []change{draining, empty, since(time.Minute)}, "Draining Reboot RebootRequested"},
		{"it had its time", byDefault, []change{draining, empty, attached, since(5 * time.Minute)}, "Draining Reboot RebootRequested"},
		{"a new leader passes over it first", byDefault, []change{draining, empty, attached, since(5 * time.Minute), firstLook}, "Draining wait VolumesAttached"},
		{"it had its time, and that aborts", aborting, []change{draining, empty, attached, since(5 * time.Minute)}, "Draining Abandon VolumesDeadline"},
		{"what volumes take is not the drain's", byDefault, []change{draining, empty, attached, since(time.Minute), cordonedSince(time.Hour)}, "Draining wait VolumesAttached"},
		{"the agent is away meanwhile", byDefault, []change{draining, empty, attached, since(time.Minute), cordonedSince(time.Hour), agentAway}, "Draining wait AgentNotReady"},
		{"a human's hand comes first", byDefault, []change{draining, empty, attached, schedulable}, "Draining Abandon UncordonedByUser"},
		{"no check is set", func(s *policy.Settings) { s.Volumes.Wait = 0 }, []change{draining, empty, unlooked}, "Draining Reboot RebootRequested"},
		{"hooks come after", withHooks, []change{draining, empty, attached, since(5 * time.Minute)}, "Draining wait HookAwaited"},
		{"and volumes aren't looked at again", withHooks, []change{draining, empty, unlooked, asked("after-drain.", time.Minute)}, "Draining wait HookAwaited"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			standing, _ := planOf(t, tc.set, tc.changes...)
			assert.Equal(t, verdict(standing), tc.want, "%s", standing.Message)
		})
	}
	_, step := planOf(t, byDefault, draining, empty, attached)
	assert.Assert(t, step.Act == intent.ActNote && step.Change.Marks.Disruption.Drained.Equal(now))
	_, step = planOf(t, byDefault, draining, empty, looked(fleet.Checked{For: fleet.CheckVolumes, Attachments: []string{"csi-1"}, Problem: "x"}), since(time.Minute))
	assert.DeepEqual(t, step.Check.Attachments, []string{"csi-1"})
}

// People read on the node itself which volume is awaited, also when the first of two is detached; it is written once (L4).
func TestVolumeThatIsAwaitedIsNamed(t *testing.T) {
	n := node("a", draining, drain(fleet.Drain{}))
	plan := func(volume string) *plan.Step {
		looked(fleet.Checked{For: fleet.CheckVolumes, Attachments: []string{volume}, Problem: volume + " is still attached", Next: now.Add(time.Second)})(&n)
		_, step := find(t, planner.Plan(fleetOf([]fleet.Node{n, node("b")}, "a"), policy.DefaultSettings()), "a")
		if step != nil {
			assert.Equal(t, step.Act, intent.ActNote)
			n.Marks = step.Change.Marks
		}
		return step
	}
	for _, volume := range []string{"volume v", "volume w"} {
		assert.Assert(t, plan(volume) != nil)
		assert.Equal(t, n.Marks.Waiting.Message, volume+" is still attached")
		assert.Assert(t, plan(volume) == nil, "nothing has changed")
	}
}
