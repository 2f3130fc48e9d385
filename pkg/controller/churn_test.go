package controller_test

import (
	"slices"
	"testing"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// An offer that comes and goes, by the word of one agent, has its node taken out of service a few times and keeps no
// other waiting (S8, L3; report: 68 cordons and evictions a minute).
func TestAttackOfferThatComesAndGoes(t *testing.T) {
	f := newFleet(t, "a", "b", "c")
	a := f.machines["a"]
	c, _ := f.control(func(o *controller.Options) { o.Policy.Eviction.Predict = false })
	for _, m := range f.machines {
		f.until(m.name+" is managed", m.updatedTo(v1))
	}
	// A thief has the token of its agent from now on.
	a.powerOff()
	says := func(annotations map[marker.Key]any) {
		f.patch("a", map[string]any{"metadata": map[string]any{"annotations": annotations}})
	}
	cordons, last := 0, ""
	tired := func() bool {
		m := a.marks()
		if d := m.Disruption; d != nil && d.Since.String() != last {
			cordons, last = cordons+1, d.Since.String()
		}
		switch phase := intent.PhaseOf(m); {
		case phase == intent.PhaseDraining:
			says(map[marker.Key]any{marker.KeyAvailableVersion: nil})
		case m.Report.Answer(m.Intent.ID) == marker.StateNone && phase != intent.PhaseRebooting:
			says(map[marker.Key]any{marker.KeyActiveID: m.Intent.ID, marker.KeyActionState: marker.StateReady})
		case phase == intent.PhaseWaiting && m.Report.Available == "":
			says(map[marker.Key]any{marker.KeyAvailableVersion: v2})
		}
		out, err := c.Plan(t.Context())
		assert.NilError(t, err)
		return slices.ContainsFunc(out.Nodes, func(s plan.Decision) bool { return s.Node == "a" && s.Reason == plan.ReasonBackingOff })
	}
	// What is never evicted keeps each drain from its end.
	f.pod("a", "web")
	f.budget("web")
	f.until("the offer has come and gone often enough", tired)
	assert.Assert(t, cordons > 1 && cordons <= 3, "%d cordons", cordons)
	f.release(v2)
	for _, name := range []string{"b", "c"} {
		f.until(name+" is updated meanwhile", func() bool { tired(); return f.machines[name].updatedTo(v2)() })
	}
	assert.Assert(t, cordons <= 3, "%d cordons", cordons)
}

// Of a node's pods no more are evicted within an hour than the policy lets, also by a pod that is made anew each time,
// and the node says so (S8, S9).
func TestAttackPodThatComesBack(t *testing.T) {
	f := newFleet(t, "a", "b")
	a := f.machines["a"]
	f.pod("a", "web")
	f.control(func(o *controller.Options) { o.Policy.Eviction.PerHour = 3 })
	f.until("a is managed", a.updatedTo(v1))
	made := 1
	f.release(v2)
	f.until("a says that there is an end to it", func() bool {
		pods, err := f.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		assert.NilError(t, err)
		if len(pods.Items) == 0 && a.node().Spec.Unschedulable {
			f.pod("a", "web")
			made++
		}
		return a.waitsFor(plan.ReasonEvictionLimit, "3 pods were evicted from the node within an hour")()
	})
	// The node may say so before the third one is gone.
	assert.Assert(t, made == 3 || made == 4, "%d pods were made", made)
}
