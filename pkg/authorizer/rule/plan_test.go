package rule

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	digest  = "0123456789abcdef"
	oldBoot = "boot-old"
	newBoot = "boot-new"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// live is a cordoned node on which an attempt of a plan stands.
func live(action marker.Action, e marker.Effect, d marker.PlanDrain) Live {
	p := marker.Plan{Name: "kubelet", Digest: digest, Proof: marker.ProofKubelet, Effect: e, Drain: d, Apply: "t", Deadline: "30m0s"}
	l := Live{Name: "n", UID: "u", ResourceVersion: "10", Unschedulable: true, Annotations: map[string]string{}}
	for k, v := range marker.Encode(marker.Marks{Plan: &p, Intent: marker.Intent{ID: "i-1", Action: action, Time: noon,
		Until: noon.Add(5 * time.Minute), Target: p.Version("v1.34.2"), RebootFrom: oldBoot, Template: "t"}}) {
		l.Annotations[string(k)] = v
	}
	return l
}

func write(l Live, r marker.Report) Write {
	r.ActiveID = "i-1"
	p := Patch{ResourceVersion: "10", Annotations: map[string]*string{}}
	for k, v := range marker.EncodeReport(r) {
		p.Annotations[string(k)] = &v
	}
	return Write{NodeName: "n", NodeUID: "u", Live: l, Patch: p, Now: noon}
}

// S2, S7: what a plan changes of the rule, and what it doesn't.
func TestJudgePlan(t *testing.T) {
	const reached, before = "kubelet/v1.34.2#" + digest, "kubelet/v1.34.1#" + digest
	busy := func(boot string) marker.Report { return marker.Report{State: marker.StateBusy, BootID: boot} }
	ready := func(boot, current string) marker.Report {
		return marker.Report{State: marker.StateReady, BootID: boot, Current: current}
	}
	act := marker.ActionRebootUpdate
	for _, tc := range []struct {
		name   string
		live   Live
		report marker.Report
		change func(*Live)
		want   Reason
	}{
		{name: "busy, cordoned", live: live(act, marker.EffectReboot, marker.DrainAll), report: busy(oldBoot)},
		{name: "busy, not cordoned", live: live(act, marker.EffectReboot, marker.DrainAll), report: busy(oldBoot),
			change: func(l *Live) { l.Unschedulable = false }, want: ReasonNotCordoned},
		{name: "busy, to be cordoned alone", live: live(act, marker.EffectRestart, marker.DrainCordon), report: busy(oldBoot),
			change: func(l *Live) { l.Unschedulable = false }, want: ReasonNotCordoned},
		{name: "busy in service", live: live(act, marker.EffectNone, marker.DrainNothing), report: busy(oldBoot),
			change: func(l *Live) { l.Unschedulable = false }},
		{name: "busy in service, rebooted", live: live(act, marker.EffectNone, marker.DrainNothing), report: busy(newBoot), want: ReasonRebooted},
		{name: "busy, rebooted", live: live(act, marker.EffectReboot, marker.DrainAll), report: busy(newBoot), want: ReasonRebooted},
		{name: "busy, paused", live: live(act, marker.EffectNone, marker.DrainNothing), report: busy(oldBoot),
			change: func(l *Live) { l.Annotations[string(marker.KeyPaused)] = "" }, want: ReasonPaused},
		{name: "busy under a plan that can't be read", live: live(act, marker.EffectNone, marker.DrainNothing), report: busy(oldBoot),
			change: func(l *Live) { l.Annotations[string(marker.KeyPlan)] = "{}" }, want: ReasonIntent},
		{name: "busy to prepare under a plan that can't be read", live: live(marker.ActionPrepareUpdate, marker.EffectNone, marker.DrainNothing),
			report: busy(oldBoot), change: func(l *Live) { l.Annotations[string(marker.KeyPlan)] = "?" }, want: ReasonIntent},
		{name: "busy to prepare", live: live(marker.ActionPrepareUpdate, marker.EffectReboot, marker.DrainAll), report: busy(oldBoot),
			change: func(l *Live) { l.Unschedulable = false }},

		{name: "ready after a reboot", live: live(act, marker.EffectReboot, marker.DrainAll), report: ready(newBoot, reached)},
		{name: "ready in the old boot", live: live(act, marker.EffectReboot, marker.DrainAll), report: ready(oldBoot, reached), want: ReasonUnproven},
		{name: "ready after a reboot without the target", live: live(act, marker.EffectReboot, marker.DrainAll), report: ready(newBoot, before), want: ReasonUnproven},
		{name: "ready after a restart", live: live(act, marker.EffectRestart, marker.DrainAll), report: ready(oldBoot, reached)},
		{name: "ready after a restart, rebooted", live: live(act, marker.EffectRestart, marker.DrainAll), report: ready(newBoot, reached)},
		{name: "ready after a restart without the target", live: live(act, marker.EffectRestart, marker.DrainAll), report: ready(oldBoot, before), want: ReasonUnproven},
		{name: "ready without a version", live: live(act, marker.EffectNone, marker.DrainNothing), report: ready(oldBoot, ""), want: ReasonUnproven},
		{name: "ready by another plan", live: live(act, marker.EffectNone, marker.DrainNothing), report: ready(oldBoot, "other/v1.34.2#"+digest), want: ReasonUnproven},
		{name: "ready in service", live: live(act, marker.EffectNone, marker.DrainNothing), report: ready(oldBoot, reached)},
		{name: "ready under a plan that can't be read", live: live(act, marker.EffectNone, marker.DrainNothing), report: ready(oldBoot, reached),
			change: func(l *Live) { l.Annotations[string(marker.KeyPlan)] = "{}" }, want: ReasonIntent},
		{name: "ready to prepare", live: live(marker.ActionPrepareUpdate, marker.EffectReboot, marker.DrainAll), report: ready(oldBoot, before)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(&tc.live)
			}
			refusal := Judge(write(tc.live, tc.report))
			if tc.want == "" {
				assert.Assert(t, refusal == nil, "%v", refusal)
				return
			}
			assert.Assert(t, refusal != nil)
			assert.Equal(t, refusal.Reason, tc.want, refusal.Message)
		})
	}
}
