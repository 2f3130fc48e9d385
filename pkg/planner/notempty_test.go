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

func lateSince(ago time.Duration) change {
	return func(n *fleet.Node) { at := now.Add(-ago); n.Marks.Disruption.NotEmpty = &at }
}

func emptySince(ago time.Duration) change {
	return func(n *fleet.Node) { at := now.Add(-ago); n.Marks.Disruption.Drained = &at }
}

// A pod that comes when the node was empty already is drained like any other, with the drain's time once more and no
// longer (L2); its volumes are awaited and hooks asked anew (S2).
func TestLatePods(t *testing.T) {
	came := drain(fleet.Drain{Remaining: 1, Waiting: "pod shop/web came after the drain", Next: now.Add(time.Minute)})
	empty := drain(fleet.Drain{Next: now.Add(time.Hour)})
	attached := looked(fleet.Checked{For: fleet.CheckVolumes, Attachments: []string{"csi-1"}, Problem: "volume v is still attached", Next: now.Add(time.Second)})
	hooksAsked := asked("after-drain.", 41*time.Minute)
	for _, tc := range []struct {
		name    string
		changes []change
		want    string
		// What the record holds then: is it late, and does anything else wait.
		late, waits bool
	}{
		{"while hooks are awaited", []change{draining, came, hooksAsked, cordonedSince(2 * time.Hour)}, "Draining wait Draining", true, false},
		{"while volumes are", []change{draining, came, emptySince(41 * time.Minute), cordonedSince(2 * time.Hour)}, "Draining wait Draining", true, false},
		{"once more", []change{draining, came, hooksAsked, lateSince(time.Hour), cordonedSince(2 * time.Hour)}, "Draining wait Draining", true, false},
		{"the drain has its time again", []change{draining, came, lateSince(29 * time.Minute), cordonedSince(2 * time.Hour)}, "Draining wait Draining", true, false},
		{"but not for ever", []change{draining, came, lateSince(30 * time.Minute), cordonedSince(2 * time.Hour)}, "Draining Abandon DrainDeadline", false, false},
		{"what was not seen didn't come", []change{draining, drain(fleet.Drain{Remaining: 1, Failed: "x", Next: now.Add(time.Minute)}), hooksAsked}, "Draining Abandon DrainDeadline", false, false},
		{"empty again, and its volumes have their time", []change{draining, empty, attached, lateSince(time.Minute)}, "Draining wait VolumesAttached", true, true},
		{"what was seen of volumes before says nothing", []change{draining, empty, looked(fleet.Checked{For: fleet.CheckVolumes, At: now.Add(-2 * time.Minute)}), lateSince(time.Minute)},
			"Draining Check VolumesAttached", true, false},
		{"hooks are asked again", []change{draining, empty, lateSince(time.Minute)}, "Draining wait HookAwaited", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			standing, step := planOf(t, withHooks, tc.changes...)
			assert.Equal(t, verdict(standing), tc.want, "%s", standing.Message)
			d := node("a", tc.changes...).Marks.Disruption
			if step != nil && step.Change != nil {
				d = step.Change.Marks.Disruption
				assert.Assert(t, d == nil || step.Change.Marks.Waiting.Reason == string(standing.Reason), "the node says why it waits")
			}
			assert.Equal(t, d != nil && d.NotEmpty != nil, tc.late)
			assert.Equal(t, d != nil && (d.Drained != nil || d.Asked != nil), tc.waits)
		})
	}
}

// A pod comes late again and again: hooks are asked by another id each time, and in the end the attempt is abandoned (L2).
func TestPodsThatKeepComing(t *testing.T) {
	set := policy.DefaultSettings()
	withHooks(&set)
	n, s := node("a", draining, cordonedSince(10*time.Minute)), fleetOf(nil, "a")
	ids, notes := map[string]bool{}, 0
	s.Now = now
	for range 1000 {
		n.ResourceVersion = s.Now.Format("150405")
		s.Nodes = []fleet.Node{n, node("b")}
		standing, step := find(t, planner.Plan(s, set), "a")
		if step == nil || step.Act == intent.ActCheck || step.Act == intent.ActDrain {
			// Whatever is looked for isn't there; but as soon as hooks have been asked, a pod is.
			if n.Drain = (&fleet.Drain{}); step == nil {
				n.Drain = &fleet.Drain{Remaining: 1, Waiting: "pod shop/web came after the drain"}
			}
			n.Checked = &fleet.Checked{For: fleet.CheckVolumes, At: s.Now}
			s.Now = s.Now.Add(time.Minute)
			continue
		}
		if step.Act == intent.ActAbandon {
			assert.Equal(t, standing.Reason, plan.ReasonDrainDeadline)
			assert.Assert(t, len(ids) > 2 && s.Now.Sub(now) < time.Hour, "%d ids in %s", len(ids), s.Now.Sub(now))
			return
		}
		assert.Equal(t, step.Act, intent.ActNote)
		notes++
		n.Marks = step.Change.Marks
		if id := n.Marks.HookID; id != "" {
			assert.Assert(t, strings.HasPrefix(id, "after-drain.") && !ids[id])
			ids[id] = true
		}
	}
	t.Fatalf("it has no end: %d notes, %d ids", notes, len(ids))
}

// The workloads of the only node are left in place, so nothing comes late there.
func TestNothingIsLateInPlace(t *testing.T) {
	set := policy.DefaultSettings()
	set.SingleNode = policy.SingleNodeAllow
	withHooks(&set)
	n := node("a", draining, drain(fleet.Drain{Remaining: 1}), asked("after-drain.", time.Minute))
	n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonHookAwaited)}
	standing, step := find(t, planner.Plan(fleetOf([]fleet.Node{n}, "a"), set), "a")
	assert.Equal(t, standing.Reason, plan.ReasonHookAwaited)
	assert.Assert(t, step == nil || step.Change.Marks.HookID == n.Marks.HookID)
}
