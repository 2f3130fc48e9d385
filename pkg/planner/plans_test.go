package planner_test

import (
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

const (
	k1, k2, k3      = "v1.35.0+k3s1", "v1.36.3+k3s1", "v1.36.3+k3s2"
	digest, digest2 = "0123456789abcdef", "fedcba9876543210"
)

// k3s is a plan that restarts the kubelet, and files one that puts files on the node in service.
func k3s(target string) policy.Plan {
	return policy.Plan{Name: "k3s", Apply: "upgrade", Prepare: "pull", Target: policy.PlanTarget{Version: target}, Proof: marker.ProofKubelet,
		Effect: marker.EffectRestart, Drain: marker.DrainAll, Deadline: 30 * time.Minute}
}

var files = policy.Plan{Name: "files", Apply: "files", Target: policy.PlanTarget{Content: true}, Proof: marker.ProofContent,
	Effect: marker.EffectNone, Drain: marker.DrainNothing, Deadline: 10 * time.Minute}

// targets is what the runner has found out of those two.
func targets() map[string]fleet.PlanTarget {
	return map[string]fleet.PlanTarget{"k3s": {Prepare: "pull", Apply: "upgrade", Digest: digest}, "files": {Apply: "files", Digest: digest}}
}

// planned is a node of plans at rest, whose kubelet is of k1.
func planned(n *fleet.Node) {
	n.Interface, n.OSVersion, n.Marks.Report.Current = fleet.InterfacePlan, "", ""
	n.Info = &fleet.NodeInfo{Kubelet: k1, OSImage: "Debian GNU/Linux 12 (bookworm)"}
	n.AgentPod = true
}

func kubelet(v string) change { return func(n *fleet.Node) { n.Info.Kubelet = v } }

// version is a target of a plan in marks.
func version(p policy.Plan, target string) string {
	return marker.PlanVersion(p.Name, target, digest)
}

// onItsWay is a node whose attempt of a plan has begun.
func onItsWay(p policy.Plan, target string) change {
	return func(n *fleet.Node) {
		planned(n)
		n.Marks.Plan = &marker.Plan{Name: p.Name, Digest: digest, Proof: p.Proof, Effect: p.Effect, Drain: p.Drain, Apply: p.Apply, Deadline: p.Deadline.String()}
		n.Marks.Intent.Action, n.Marks.Intent.Target, n.Marks.Intent.Template = marker.ActionPrepareUpdate, version(p, target), p.Prepare
		n.Marks.Report.Current = version(p, n.Info.Kubelet)
		if p.Target.Content {
			n.Marks.Report.Current = n.Marks.Plan.Done("")
		}
		n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonStaging), Message: "x"}
		unanswered(n)
	}
}

func then(all ...change) change {
	return func(n *fleet.Node) {
		for _, c := range all {
			c(n)
		}
	}
}

func outOf(n *fleet.Node) {
	answers(marker.StateReady, "")(n)
	n.Unschedulable = n.Marks.Plan.Drain != marker.DrainNothing
	n.Marks.Intent.RebootFrom = "b1"
	n.Marks.Disruption = &marker.Disruption{Since: now.Add(-time.Minute)}
	n.Checked = &fleet.Checked{For: fleet.CheckBaseline, At: now}
}

func acting(n *fleet.Node) {
	outOf(n)
	n.Marks.Intent.Action, n.Marks.Intent.Template = marker.ActionRebootUpdate, n.Marks.Plan.Apply
	n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonRebooting), Message: "x"}
	unanswered(n)
}

// Each phase of a node of plans, with what can happen in it.
func TestPlanNode(t *testing.T) {
	up, one := k3s(k2), []policy.Plan{k3s(k2)}
	reboots := k3s(k2)
	reboots.Effect = marker.EffectReboot
	ready := answers(marker.StateReady, "")
	failed := func(r marker.ReportReason) change { return then(answers(marker.StateError, "x"), because(r)) }
	shows := func(v string) change {
		return func(n *fleet.Node) {
			n.Info.Kubelet = v
			n.Marks.Report.Current = version(up, v)
		}
	}
	emptied := drain(fleet.Drain{})
	for _, tc := range []struct {
		name    string
		plans   []policy.Plan
		changes []change
		finds   func(map[string]fleet.PlanTarget)
		want    string
		target  string
	}{
		{"off its target", one, []change{planned}, nil, "Waiting Stage UpdateAvailable", version(up, k2)},
		{"on its target", one, []change{planned, kubelet(k2)}, nil, "UpToDate wait UpToDate", ""},
		{"above its target, which a flapping channel must not undo", one, []change{planned, kubelet(k3)}, nil, "UpToDate wait UpToDate", ""},
		{"two minor versions ahead (system-upgrade-controller, and Kubernetes' own skew)", []policy.Plan{skipping(k3s("v1.37.0+k3s1"))}, []change{planned}, nil, "Waiting wait MinorSkipped", ""},
		{"one ahead", []policy.Plan{skipping(up)}, []change{planned}, nil, "Waiting Stage UpdateAvailable", ""},
		{"another build of the same version is another target", []policy.Plan{k3s(k3)}, []change{planned, kubelet(k2)}, nil, "Waiting Stage UpdateAvailable", ""},
		{"no plan chooses it", nil, []change{planned}, nil, "Waiting wait NoPlan", ""},
		{"no runner", one, []change{planned, agentAway}, nil, "Waiting wait AgentNotReady", ""},
		{"the runner has not looked yet", one, []change{planned}, func(m map[string]fleet.PlanTarget) { clear(m) }, "Waiting wait TargetUnknown", ""},
		{"it looked at another template", one, []change{planned}, func(m map[string]fleet.PlanTarget) { m["k3s"] = fleet.PlanTarget{Apply: "old", Digest: digest} }, "Waiting wait TargetUnknown", ""},
		{"on its target whatever the runner knows", one, []change{planned, kubelet(k2)}, func(m map[string]fleet.PlanTarget) { clear(m) }, "UpToDate wait UpToDate", ""},
		{"a template is missing", one, []change{planned}, func(m map[string]fleet.PlanTarget) {
			m["k3s"] = fleet.PlanTarget{Prepare: "pull", Apply: "upgrade", Missing: true, Problem: "no PodTemplate"}
		}, "Waiting wait TemplateMissing", ""},
		{"the runner has no digest of it", one, []change{planned}, func(m map[string]fleet.PlanTarget) { m["k3s"] = fleet.PlanTarget{Prepare: "pull", Apply: "upgrade"} }, "Waiting wait TargetUnknown", ""},
		{"the first plan of two goes first", []policy.Plan{up, files}, []change{planned}, nil, "Waiting Stage UpdateAvailable", version(up, k2)},
		{"then the second", []policy.Plan{up, files}, []change{planned, kubelet(k2)}, nil, "Waiting Stage UpdateAvailable", version(files, "content")},
		{"content that it has", []policy.Plan{files}, []change{planned, with(func(n *fleet.Node) { n.Marks.PlanDone = map[string]string{"files": digest} })}, nil, "UpToDate wait UpToDate", ""},
		{"content that changed", []policy.Plan{files}, []change{planned, with(func(n *fleet.Node) { n.Marks.PlanDone = map[string]string{"files": digest2} })}, nil, "Waiting Stage UpdateAvailable", ""},
		{"a plan without effect is not repeated (S10)", one, []change{planned, failedOnce(-time.Hour, version(up, k2)), with(func(n *fleet.Node) { n.Marks.Failure.Reason = "NoEffect" })}, nil, "Waiting wait NoEffect", ""},
		{"a changed template is tried at once", one, []change{planned, failedOnce(time.Hour, marker.PlanVersion("k3s", k2, digest2))}, nil, "Waiting Stage UpdateAvailable", ""},
		{"what failed waits", one, []change{planned, failedOnce(time.Hour, version(up, k2))}, nil, "Waiting wait BackingOff", ""},

		{"preparing", one, []change{onItsWay(up, k2)}, nil, "Staging wait Staging", ""},
		{"the plan's target changed", []policy.Plan{k3s(k3)}, []change{onItsWay(up, k2)}, nil, "Staging Abandon OfferWithdrawn", ""},
		{"the plan is gone", nil, []change{onItsWay(up, k2)}, nil, "Staging Abandon OfferWithdrawn", ""},
		{"its template changed", one, []change{onItsWay(up, k2)}, func(m map[string]fleet.PlanTarget) {
			m["k3s"] = fleet.PlanTarget{Prepare: "pull", Apply: "upgrade", Digest: digest2}
		}, "Staging Abandon OfferWithdrawn", ""},
		{"a runner that was started anew changes nothing", one, []change{onItsWay(up, k2)}, func(m map[string]fleet.PlanTarget) { clear(m) }, "Staging wait Staging", ""},
		{"prepared", one, []change{onItsWay(up, k2), ready}, nil, "Staged Cordon Cordoned", ""},
		{"prepared long ago, which is asked of no repository", one, []change{onItsWay(up, k2), ready, issued(5 * time.Hour)}, nil, "Staged Cordon Cordoned", ""},
		{"updated by another while it waited", one, []change{onItsWay(up, k2), ready, shows(k2)}, nil, "Staged Stabilize AlreadyOnTarget", ""},
		{"taken above its target by another while it waited, so that its next plan can go (L1)", one, []change{onItsWay(up, k2), ready, shows(k3)}, nil, "Staged Stabilize OfferWithdrawn", ""},
		{"taken above its target by another while it drained (S6)", one, []change{onItsWay(up, k2), outOf, shows(k3), emptied}, nil, "Draining Uncordon LowerVersionOffered", ""},
		{"above its target, which its plan goes down to", []policy.Plan{lowering(k3s(k2))}, []change{onItsWay(up, k2), ready, shows(k3)}, nil, "Staged Cordon Cordoned", ""},
		{"drained", one, []change{onItsWay(up, k2), outOf, emptied}, nil, "Draining Reboot RebootRequested", ""},
		{"a reboot before the plan ran counts nothing", one, []change{onItsWay(up, k2), outOf, booted("b2")}, nil, "Draining Abandon RebootedEarly", ""},
		{"in service, for a plan without effect", []policy.Plan{files}, []change{onItsWay(files, "content"), outOf}, nil, "Draining Reboot RebootRequested", ""},
		{"cordoned only", []policy.Plan{cordonOnly()}, []change{onItsWay(cordonOnly(), k2), outOf}, nil, "Draining Reboot RebootRequested", ""},
		{"asked", one, []change{onItsWay(up, k2), acting}, nil, "Rebooting wait Rebooting", ""},
		{"asked, and its target changed before busy (S6)", []policy.Plan{k3s(k3)}, []change{onItsWay(up, k2), acting}, nil, "Rebooting Abandon OfferWithdrawn", ""},
		{"asked, and what it does changed before busy", []policy.Plan{reboots}, []change{onItsWay(up, k2), acting}, nil, "Rebooting Abandon OfferWithdrawn", ""},
		{"asked, and the runner was started anew", one, []change{onItsWay(up, k2), acting}, func(m map[string]fleet.PlanTarget) { clear(m) }, "Rebooting wait Rebooting", ""},
		{"its target changed after busy", []policy.Plan{k3s(k3)}, []change{onItsWay(up, k2), acting, answers(marker.StateBusy, "")}, nil, "Rebooting wait Rebooting", ""},
		{"uncordoned before busy", one, []change{onItsWay(up, k2), acting, schedulable}, nil, "Rebooting Abandon UncordonedByUser", ""},
		{"the runner never began", one, []change{onItsWay(up, k2), acting, issued(7 * time.Minute)}, nil, "Rebooting Abandon RebootDeadline", ""},
		{"rebooted before busy", one, []change{onItsWay(up, k2), acting, booted("b2")}, nil, "Rebooting Abandon RebootedEarly", ""},
		{"the pod was refused, and nothing was done", one, []change{onItsWay(up, k2), acting, failed(marker.ReasonPodRefused)}, nil, "Returning Abandon PodRefused", ""},
		{"it runs", one, []change{onItsWay(up, k2), acting, answers(marker.StateBusy, "")}, nil, "Rebooting wait Rebooting", ""},
		{"uncordoned after busy", one, []change{onItsWay(up, k2), acting, answers(marker.StateBusy, ""), schedulable}, nil, "Rebooting wait Rebooting", ""},
		{"it runs, and has its time", one, []change{onItsWay(up, k2), acting, answers(marker.StateBusy, ""), issued(45 * time.Minute)}, nil, "Rebooting wait Rebooting", ""},
		{"it runs beyond its time", one, []change{onItsWay(up, k2), acting, answers(marker.StateBusy, ""), issued(47 * time.Minute)}, nil, "Lost Note Lost", ""},
		{"done in the same boot", one, []change{onItsWay(up, k2), acting, ready, shows(k2)}, nil, "Returning Return Uncordoned", ""},
		{"the runner alone says so (S7)", one, []change{onItsWay(up, k2), acting, ready, shows(k2), kubelet(k1)}, nil, "Returning Note Returning", ""},
		{"done, and not Ready", one, []change{onItsWay(up, k2), acting, ready, shows(k2), notReady}, nil, "Returning Note Returning", ""},
		{"a reboot is wanted and not seen (S7)", []policy.Plan{reboots}, []change{onItsWay(reboots, k2), acting, ready, shows(k2)}, nil, "Returning Note Returning", ""},
		{"a reboot is wanted and seen", []policy.Plan{reboots}, []change{onItsWay(reboots, k2), acting, ready, shows(k2), booted("b2")}, nil, "Returning Return Uncordoned", ""},
		{"its pod failed", one, []change{onItsWay(up, k2), acting, failed(marker.ReasonPodFailed)}, nil, "Returning Return PodFailed", ""},
		{"its pod changed nothing", one, []change{onItsWay(up, k2), acting, failed(marker.ReasonNoEffect)}, nil, "Returning Return NoEffect", ""},
		{"failed, and not Ready", one, []change{onItsWay(up, k2), acting, failed(marker.ReasonPodFailed), notReady}, nil, "Returning Note Returning", ""},
		{"content, by the runner's word alone (S7)", []policy.Plan{files}, []change{onItsWay(files, "content"), acting, ready, said(version(files, "content"))}, nil, "Returning Check Returning", ""},
		{"content, and the pod's own", []policy.Plan{files}, []change{onItsWay(files, "content"), acting, ready, said(version(files, "content")), with(func(n *fleet.Node) {
			n.Checked = &fleet.Checked{For: fleet.CheckApplied, At: now, Digest: digest}
		})}, nil, "Returning Return Uncordoned", ""},
		{"the runner can't tell why it failed", one, []change{onItsWay(up, k2), acting, failed("")}, nil, "Returning Return HostError", ""},
		{"it came back from its reboot without the target", []policy.Plan{reboots}, []change{onItsWay(reboots, k2), acting, failed(""), booted("b2")}, nil, "Returning Return RolledBack", ""},
		{"well for a minute after a restart, whatever the policy says", one, []change{onItsWay(up, k2), acting, shows(k2), soaking(59 * time.Second)}, nil, "Verifying wait Soaking", ""},
		{"well for longer", one, []change{onItsWay(up, k2), acting, shows(k2), soaking(time.Minute)}, nil, "Verifying Finish Updated", ""},
		{"a reboot needs no such minute", []policy.Plan{reboots}, []change{onItsWay(reboots, k2), acting, shows(k2), booted("b2"), soaking(2 * time.Second)}, nil, "Verifying Finish Updated", ""},
		{"back in its old version during the soak", one, []change{onItsWay(up, k2), acting, soaking(time.Second)}, nil, "Verifying Soak RolledBack", ""},
		{"an attempt of the Update API, labelled for plans", one, []change{preparing, with(func(n *fleet.Node) { n.Interface = fleet.InterfacePlan })}, nil, "Staging Leave LabelRemoved", ""},
		{"labelled for the Update API in mid attempt", one, []change{onItsWay(up, k2), with(func(n *fleet.Node) { n.Interface = fleet.InterfaceUpdateAPI })}, nil, "Staging Leave LabelRemoved", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{node("a", tc.changes...), node("z")}, "a")
			if s.Nodes[0].Marks.Disruption == nil {
				s.Slots = nil
			}
			s.PlanTargets = targets()
			if tc.finds != nil {
				tc.finds(s.PlanTargets)
			}
			set := policy.DefaultSettings()
			set.Plans, set.Soak = tc.plans, time.Second
			out := planner.Plan(s, set)
			d, step := find(t, out, "a")
			assert.Equal(t, decided(d), tc.want, "%s", d.Message)
			if tc.target != "" {
				assert.Equal(t, step.Change.Marks.Intent.Target, tc.target)
			}
		})
	}
}

// A node whose content is proven and whose pods are Ready goes back into service, though only the last look at it is
// remembered (L2); the runner's word alone is not enough, whatever was looked at before (S7).
func TestContentAndPodsOnNode(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{files}
	withPods(&set)
	for _, before := range []*fleet.Checked{nil, {For: fleet.CheckPods, At: now}, {For: fleet.CheckApplied, At: now, Digest: digest}} {
		back := node("a", onItsWay(files, "content"), acting, answers(marker.StateReady, ""), said(version(files, "content")))
		back.Checked = before
		looks := 0
		for ; ; looks++ {
			s := fleetOf([]fleet.Node{back, node("z")}, "a")
			s.PlanTargets = targets()
			_, step := find(t, planner.Plan(s, set), "a")
			assert.Assert(t, step != nil)
			if step.Act == intent.ActReturn {
				break
			}
			assert.Equal(t, step.Act, intent.ActCheck)
			assert.Equal(t, looks, 0, "it is looked for %s once more", step.Check.For)
			assert.Assert(t, step.Check.Digest == digest && len(step.Check.Pods) == 1)
			back.Checked = &fleet.Checked{For: step.Check.For, At: now, Digest: step.Check.Digest}
		}
		assert.Equal(t, looks, 1)
	}
}

func decided(d plan.Decision) string {
	act := string(d.Act)
	if act == "" {
		act = "wait"
	}
	return string(d.Phase) + " " + act + " " + string(d.Reason)
}

// soaking is back in service for so long.
func soaking(ago time.Duration) change {
	return func(n *fleet.Node) {
		answers(marker.StateReady, "")(n)
		at := now.Add(-ago)
		n.Marks.Intent.Action, n.Unschedulable = marker.ActionStabilize, false
		n.Marks.Disruption.Soak, n.Marks.Disruption.Returned, n.Marks.Disruption.Ready = &at, &at, "r1"
		n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonSoaking), Message: "x"}
	}
}

func booted(id string) change {
	return func(n *fleet.Node) { n.BootID, n.Marks.Report.BootID = id, id }
}

func said(version string) change {
	return func(n *fleet.Node) { n.Marks.Report.Current = version }
}

func skipping(p policy.Plan) policy.Plan {
	p.MaxMinorSkip = 1
	return p
}

func lowering(p policy.Plan) policy.Plan {
	p.Versions.Downgrade = true
	return p
}

func cordonOnly() policy.Plan {
	p := k3s(k2)
	p.Drain = marker.DrainCordon
	return p
}

// What an attempt does stands on the node from its first intent to its end, each intent names its template, and the
// content is noted in the patch that ends the attempt.
func TestPlanMarks(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{k3s(k2), files}
	decide := func(changes ...change) (*plan.Step, marker.Marks) {
		s := fleetOf([]fleet.Node{node("a", changes...), node("z")}, "a")
		s.PlanTargets = targets()
		_, step := find(t, planner.Plan(s, set), "a")
		assert.Assert(t, step != nil && step.Change != nil)
		return step, step.Change.Marks
	}
	_, m := decide(onItsWay(set.Plans[0], k2), outOf, drain(fleet.Drain{}))
	assert.Equal(t, m.Intent.Action, marker.ActionRebootUpdate)
	assert.Equal(t, m.Intent.Template, "upgrade")
	assert.Equal(t, m.Intent.Until, now.Add(5*time.Minute), "no pod is made later (S3)")
	assert.Equal(t, m.Plan.Name, "k3s")

	content := version(files, "content")
	step, m := decide(onItsWay(files, "content"), acting, said(content), soaking(time.Hour))
	assert.Equal(t, step.Act, intent.ActFinish)
	assert.DeepEqual(t, m.PlanDone, map[string]string{"files": digest})
	assert.Assert(t, m.Plan == nil && m.Intent.Template == "" && m.Intent.Target == "")

	step, m = decide(onItsWay(files, "content"), acting, answers(marker.StateError, "x"), because(marker.ReasonPodFailed))
	assert.Equal(t, step.Act, intent.ActReturn)
	// A pod that failed is its target's doing (S10).
	assert.DeepEqual(t, m.Failure.Broken, []string{content})
	_, m = decide(onItsWay(files, "content"), acting, answers(marker.StateError, "x"), because(marker.ReasonInterrupted))
	assert.Equal(t, len(m.Failure.Broken), 0, "one that was ended from outside is not (S10)")
}

// A node in service takes a slot like any other, and is neither cordoned nor uncordoned (S1, S5).
func TestPlanInService(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{files}
	s := fleetOf([]fleet.Node{node("a", onItsWay(files, "content"), answers(marker.StateReady, "")), node("b", onItsWay(files, "content"), answers(marker.StateReady, ""))})
	s.PlanTargets = targets()
	out := planner.Plan(s, set)
	_, step := find(t, out, "a")
	assert.Equal(t, step.Act, intent.ActCordon)
	assert.Assert(t, step.TakesSlot && step.Change.Unschedulable == nil && len(step.Change.Labels) == 0)
	d, _ := find(t, out, "b")
	assert.Equal(t, d.Reason, plan.ReasonUnavailableLimit)

	s = fleetOf([]fleet.Node{node("a", onItsWay(files, "content"), acting, answers(marker.StateError, "x"), because(marker.ReasonPodRefused), cordoned), node("z")}, "a")
	s.PlanTargets = targets()
	_, step = find(t, planner.Plan(s, set), "a")
	assert.Equal(t, step.Act, intent.ActAbandon)
	assert.Assert(t, step.Change.Unschedulable == nil, "the cordon is another's")
}

// The age of a target counts from when it was first seen, whatever becomes of its template.
func TestPlanMinAge(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{k3s(k2)}
	set.Plans[0].Versions.MinAge = time.Hour
	s := fleetOf([]fleet.Node{node("a", planned), node("z")})
	s.PlanTargets = targets()
	out := planner.Plan(s, set)
	d, _ := find(t, out, "a")
	assert.Equal(t, d.Reason, plan.ReasonVersionTooNew)
	seen := "k3s/" + k2 + "#"
	assert.DeepEqual(t, out.Saw, []string{v1, seen})
	s.FirstSeen = map[string]time.Time{seen: now.Add(-2 * time.Hour)}
	s.PlanTargets["k3s"] = fleet.PlanTarget{Prepare: "pull", Apply: "upgrade", Digest: digest2}
	d, _ = find(t, planner.Plan(s, set), "a")
	assert.Equal(t, d.Act, intent.ActStage)
}

// A plan goes to what its channel shows, as far as the runner knows it.
func TestPlanChannel(t *testing.T) {
	const stable = "https://example.com/stable"
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{k3s("")}
	set.Plans[0].Target = policy.PlanTarget{Channel: stable}
	s := fleetOf([]fleet.Node{node("a", planned), node("z")})
	for _, tc := range []struct {
		channel, version, problem string
		want                      plan.Reason
	}{
		{stable, k2, "", plan.ReasonUpdateAvailable},
		{stable, k2, "the channel does not answer", plan.ReasonUpdateAvailable},
		{stable, k1, "", plan.ReasonUpToDate},
		{stable, "", "the channel does not answer", plan.ReasonTargetUnknown},
		{"https://example.com/latest", k2, "", plan.ReasonTargetUnknown},
	} {
		s.PlanTargets = map[string]fleet.PlanTarget{"k3s": {Prepare: "pull", Apply: "upgrade", Digest: digest, Channel: tc.channel, Version: tc.version, Problem: tc.problem}}
		d, _ := find(t, planner.Plan(s, set), "a")
		assert.Equal(t, d.Reason, tc.want, "%v: %s", tc, d.Message)
	}
}

// Groups go one after the other by what their nodes show, also where nodes have gone on to another plan; nodes that a
// plan doesn't choose hold it up as little as those of Bottlerocket.
func TestPlanWaves(t *testing.T) {
	set := policy.DefaultSettings()
	set.Plans = []policy.Plan{k3s(k2), files}
	set.Groups = []policy.Group{
		{Name: "control-plane", Selector: policy.Selector{{Key: "role", Operator: policy.In, Values: []string{"cp"}}}, Rules: set.Rules},
		{Name: "workers", Selector: policy.Selector{}, Rules: set.Rules, After: []string{"control-plane"}},
	}
	role := func(n *fleet.Node) { n.Labels = map[string]string{"role": "cp"} }
	for _, tc := range []struct {
		name  string
		first fleet.Node
		want  plan.Reason
	}{
		{"the control plane is not there yet", node("cp", planned, role), plan.ReasonAfterGroup},
		{"it is, and has gone on to its next plan", node("cp", onItsWay(files, "content"), role, kubelet(k2)), plan.ReasonUpdateAvailable},
		{"it shows a higher one", node("cp", planned, role, kubelet(k3)), plan.ReasonUpdateAvailable},
		{"it is of Bottlerocket", node("cp", role), plan.ReasonUpdateAvailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fleetOf([]fleet.Node{tc.first, node("w", planned), node("z")})
			s.PlanTargets = targets()
			d, _ := find(t, planner.Plan(s, set), "w")
			assert.Equal(t, d.Reason, tc.want, "%s", d.Message)
		})
	}
}
