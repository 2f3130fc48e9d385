package next

import (
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	id      = "i-2"
	digest  = "0123456789abcdef"
	oldBoot = "boot-1"
	newBoot = "boot-2"
	before  = "v1.34.1+k3s1"
	target  = "v1.34.2+k3s1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type change func(*View)

// situation is a node, cordoned and drained, of which a pod is asked for until five minutes after noon.
func situation(action marker.Action, changes ...change) View {
	v := View{Now: noon.Add(time.Minute), Build: "test", Template: Template{Known: true}, Node: &Node{
		Name: "n", UID: "u", Labelled: true, Unschedulable: true, Ready: true, BootID: oldBoot, Info: fleet.NodeInfo{Kubelet: before},
		Plan: &marker.Plan{Name: "k3s", Digest: digest, Proof: marker.ProofKubelet, Effect: marker.EffectReboot, Drain: marker.DrainAll,
			Apply: "apply", Deadline: "30m0s"},
		Intent: marker.Intent{ID: id, Action: action, Time: noon, Until: noon.Add(5 * time.Minute), Template: "apply"},
	}}
	if action != marker.ActionStabilize && action != marker.ActionResetState {
		v.Node.Intent.Target = v.Node.Plan.Version(target)
	}
	if action == marker.ActionRebootUpdate {
		v.Node.Intent.RebootFrom = oldBoot
	}
	for _, c := range changes {
		c(&v)
	}
	if v.Node != nil {
		write(v.Node, encode(v.report(v.Node.Report)))
	}
	return v
}

// write puts a report on a node.
func write(n *Node, report map[marker.Key]string) {
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	for k, v := range report {
		n.Annotations[string(k)] = v
	}
	n.Report, _ = marker.DecodeReport(with(n.Annotations, marker.KeyPlan, "{}"))
}

func with(m map[string]string, k marker.Key, v string) map[string]string {
	out := map[string]string{string(k): v}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func answered(s marker.State) change {
	return func(v *View) { v.Node.Report.ActiveID, v.Node.Report.State, v.Node.Report.Message = id, s, "" }
}

func at(d time.Duration) change { return func(v *View) { v.Now = noon.Add(d) } }

func plan(e marker.Effect, d marker.PlanDrain) change {
	return func(v *View) { v.Node.Plan.Effect, v.Node.Plan.Drain = e, d }
}

func content(v *View) {
	v.Node.Plan.Proof = marker.ProofContent
	if v.Node.Intent.Target != "" {
		v.Node.Intent.Target = v.Node.Plan.Done(digest)
	}
}

func shows(version string) change { return func(v *View) { v.Node.Info.Kubelet = version } }

// boot is one in which the node became Ready four minutes after noon.
func boot(id string) change {
	return func(v *View) { v.Node.BootID, v.Node.ReadySince = id, noon.Add(4*time.Minute) }
}
func remembers(m Memory) change { m.Intent = id; return func(v *View) { v.Memory = m } }

// pod is one of the present intent, made a minute after noon, that ended three minutes after noon.
func pod(changes ...func(*Pod)) change {
	p := Pod{Name: "p", UID: "pod-1", Plan: "k3s", Intent: id, NodeUID: "u", Template: "apply", Created: noon.Add(time.Minute),
		Phase: Succeeded, Started: true, Ended: noon.Add(3 * time.Minute), Held: true}
	for _, c := range changes {
		c(&p)
	}
	return func(v *View) { v.Pods = append(v.Pods, p) }
}

// failedAt is a pod of an intent that could begin until noon.
func failedAt(end time.Time) func(*Pod) {
	return func(p *Pod) { p.Phase, p.Status, p.Until, p.Ended = Failed, 1, noon, end }
}

func running(p *Pod) { p.Phase, p.Ended = Running, time.Time{} }
func pending(p *Pod) { p.Phase, p.Started, p.Ended = Pending, false, time.Time{} }
func failing(status int) func(*Pod) {
	return func(p *Pod) { p.Phase, p.Status, p.Container = Failed, status, "apply" }
}
func because(reason string) func(*Pod) { return func(p *Pod) { p.Reason = reason } }
func deleting(p *Pod)                  { p.Deleting = true }
func rejected(p *Pod)                  { p.Phase, p.Started, p.Ended, p.Reason = Failed, false, time.Time{}, "OutOfcpu" }
func said(text string) func(*Pod)      { return func(p *Pod) { p.Said = text } }
func ends(d time.Duration) func(*Pod)  { return func(p *Pod) { p.Ended = noon.Add(d) } }
func ofUID(uid string) func(*Pod)      { return func(p *Pod) { p.NodeUID = uid } }
func of(intent string) func(*Pod) {
	return func(p *Pod) { p.Intent, p.Name, p.UID = intent, "p-"+intent, "pod-"+intent }
}

const (
	stabilize = marker.ActionStabilize
	prepare   = marker.ActionPrepareUpdate
	confirm   = marker.ActionConfirmUpdate
	apply     = marker.ActionRebootUpdate
	reset     = marker.ActionResetState

	ready   = marker.StateReady
	busy    = marker.StateBusy
	failure = marker.StateError
)

// Every line of the contract of plan nodes, with what a runner does next.
func TestDecide(t *testing.T) {
	unlabelled := func(v *View) { v.Node.Labelled = false }
	gone := func(v *View) { v.Node = nil }
	uncordoned := func(v *View) { v.Node.Unschedulable = false }
	paused := func(v *View) { v.Node.Paused = true }
	noTemplate := func(v *View) { v.Node.Intent.Template = "" }
	noPlan := func(v *View) { v.Node.Plan = nil }
	unknown := func(v *View) { v.Template = Template{} }
	changed := func(v *View) { v.Template.Problem = "the template changed" }
	notReady := func(v *View) { v.Node.Ready = false }
	unreadable := func(v *View) { v.Node.Unreadable = true }
	otherUID := func(v *View) { v.Node.UID = "u-2" }
	tried := remembers(Memory{Tried: true})
	read := remembers(Memory{LogOf: "pod-1", Log: "no space left"})
	for _, tc := range []struct {
		name string
		view View
		want Kind
		// Of a report: state, reason and message; of rest: the time until the next look.
		state  marker.State
		reason marker.ReportReason
		says   string
		runs   string
		again  time.Duration
		pod    string
	}{
		{name: "stabilize, outside an attempt", view: situation(stabilize, noPlan), want: Report, state: ready, runs: "-"},
		{name: "stabilize, in an attempt", view: situation(stabilize), want: Report, state: ready, runs: "k3s/" + before + "#" + digest},
		{name: "stabilize, content", view: situation(stabilize, content), want: Report, state: ready, runs: "k3s/content#"},
		{name: "stabilize, content that was proven", view: situation(stabilize, content, func(v *View) {
			v.Node.Report.Current = v.Node.Plan.Done(digest)
		}), want: Report, state: ready, runs: "k3s/content#" + digest},
		{name: "stabilize, answered", view: situation(stabilize, answered(ready)), want: Rest},
		{name: "stabilize, answered, other facts", view: func() View {
			v := situation(stabilize, answered(ready))
			v.Node.BootID = newBoot
			return v
		}(), want: Report, state: ready, runs: "k3s/" + before + "#" + digest},
		{name: "no intent", view: situation(stabilize, func(v *View) { v.Node.Intent = marker.Intent{} }), want: Rest},
		{name: "an intent that can't be read", view: situation(apply, tried, unreadable), want: Rest},

		{name: "prepare without a template", view: situation(prepare, noTemplate), want: Report, state: ready},
		{name: "prepare without a template, an earlier pod runs", view: situation(prepare, noTemplate, pod(of("i-1"), running)), want: Delete, pod: "pod-i-1"},
		{name: "prepare without a template, an earlier pod ends", view: situation(prepare, noTemplate, pod(of("i-1"), running, deleting)), want: Rest, again: 70 * time.Minute},
		{name: "prepare, not tried", view: situation(prepare, uncordoned), want: Try},
		{name: "prepare, tried", view: situation(prepare, uncordoned, tried), want: Report, state: busy},
		{name: "prepare, busy", view: situation(prepare, uncordoned, answered(busy)), want: Create},
		{name: "prepare, the pod runs", view: situation(prepare, answered(busy), pod(running)), want: Rest},
		{name: "prepare, its image is pulled", view: situation(prepare, answered(busy), pod(pending), at(6*time.Minute)), want: Rest, again: 25 * time.Minute},
		{name: "prepare, its image could not be pulled", view: situation(prepare, answered(busy), pod(pending), at(31*time.Minute)), want: Delete, pod: "pod-1"},
		{name: "prepare, the pod succeeded", view: situation(prepare, answered(busy), pod()), want: Report, state: ready},
		{name: "prepare, the pod failed", view: situation(prepare, answered(busy), pod(failing(3))), want: ReadLog, pod: "pod-1"},
		{name: "prepare, the pod failed, log read", view: situation(prepare, answered(busy), pod(failing(3)), read), want: Report, state: failure,
			reason: marker.ReasonPodFailed, says: "container apply of pod p ended with status 3: no space left"},
		{name: "prepare, evicted", view: situation(prepare, answered(busy), pod(failing(137), because("Evicted"))), want: Report, state: failure,
			reason: marker.ReasonInterrupted, says: "Evicted"},
		{name: "prepare, killed", view: situation(prepare, answered(busy), pod(failing(143))), want: Report, state: failure, reason: marker.ReasonInterrupted},
		{name: "prepare, answered with an error", view: situation(prepare, answered(failure), pod()), want: Rest},
		{name: "prepare, answered ready, the pod is gone", view: situation(prepare, answered(ready)), want: Rest},
		{name: "confirm is prepare", view: situation(confirm, answered(busy), pod()), want: Report, state: ready},

		{name: "apply, not tried", view: situation(apply), want: Try},
		{name: "apply, refused once", view: situation(apply, remembers(Memory{Refusals: 1, Refused: "no"})), want: Try},
		{name: "apply, refused for good", view: situation(apply, remembers(Memory{Refusals: refusals, Refused: "no such field"})), want: Report,
			state: failure, reason: marker.ReasonPodRefused, says: "the API server refuses the pod: no such field"},
		{name: "apply, refused under another intent", view: situation(apply, func(v *View) { v.Memory = Memory{Intent: "i-1", Refusals: refusals} }), want: Try},
		{name: "apply, the template changed", view: situation(apply, changed), want: Report, state: failure, reason: marker.ReasonPodRefused, says: "the template changed"},
		{name: "apply, the template not looked at", view: situation(apply, unknown), want: Rest, again: soon},
		{name: "apply without a template", view: situation(apply, noTemplate), want: Report, state: failure, reason: marker.ReasonPodRefused},
		{name: "apply, tried", view: situation(apply, tried), want: Report, state: busy, runs: "k3s/" + before + "#" + digest},
		{name: "apply, tried, paused", view: situation(apply, tried, paused), want: Rest},
		{name: "apply, tried, not cordoned", view: situation(apply, tried, uncordoned), want: Rest},
		{name: "apply in service, tried, not cordoned", view: situation(apply, tried, uncordoned, plan(marker.EffectNone, marker.DrainNothing)), want: Report, state: busy},
		{name: "apply, tried, rebooted", view: situation(apply, tried, boot(newBoot)), want: Rest},
		{name: "apply, tried, too late", view: situation(apply, tried, at(5*time.Minute)), want: Rest},
		{name: "apply, tried, much too late", view: situation(apply, tried, at(time.Hour)), want: Rest},
		{name: "apply, an earlier pod runs", view: situation(apply, tried, pod(of("i-1"), running)), want: Delete, pod: "pod-i-1"},
		{name: "apply, an earlier pod ends", view: situation(apply, tried, pod(of("i-1"), running, deleting)), want: Rest, again: 70 * time.Minute},
		{name: "apply, a pod of the Node before it runs", view: situation(apply, tried, pod(of("i-1"), running, ofUID("u-0"))), want: Delete, pod: "pod-i-1"},
		{name: "apply, a pod of the Node before it ends", view: situation(apply, tried, pod(of("i-1"), running, deleting, ofUID("u-0"))), want: Release, pod: "pod-i-1"},
		{name: "apply, a pod of the Node before it ends, let go", view: situation(apply, tried, pod(of("i-1"), running, deleting, ofUID("u-0"), func(p *Pod) { p.Held = false })),
			want: Rest},
		{name: "apply, busy", view: situation(apply, answered(busy)), want: Create},
		{name: "apply, busy, at the last moment", view: situation(apply, answered(busy), at(5*time.Minute-time.Nanosecond)), want: Create},
		{name: "apply, busy, too late", view: situation(apply, answered(busy), at(5*time.Minute)), want: Rest, again: time.Minute},
		{name: "apply, busy, much too late", view: situation(apply, answered(busy), at(6*time.Minute)), want: Report, state: failure, reason: marker.ReasonPodRefused},
		{name: "apply, busy, much too late, refused", view: situation(apply, answered(busy), remembers(Memory{Refused: "quota"}), at(6*time.Minute)),
			want: Report, state: failure, reason: marker.ReasonPodRefused, says: "quota"},
		{name: "apply, busy, the template changed", view: situation(apply, answered(busy), changed), want: Rest, again: 5 * time.Minute},
		{name: "apply, busy, the template changed, too late", view: situation(apply, answered(busy), changed, at(6*time.Minute)), want: Report, state: failure,
			reason: marker.ReasonPodRefused, says: "the template changed"},
		{name: "apply, busy, not cordoned any more", view: situation(apply, answered(busy), uncordoned), want: Rest, again: 5 * time.Minute},
		{name: "apply, busy, paused", view: situation(apply, answered(busy), paused), want: Create},
		{name: "apply, a pod without busy", view: situation(apply, pod(running)), want: Report, state: busy},
		{name: "apply, done, and the node fell back before it served", view: situation(apply, answered(ready), pod(), boot(newBoot)), want: Report, state: failure,
			says: "shows " + before + " again", runs: "k3s/" + before + "#" + digest},
		{name: "apply, done, fell back, not Ready", view: situation(apply, answered(ready), pod(), boot(newBoot), notReady), want: Rest},
		{name: "apply, done", view: situation(apply, answered(ready), pod(), boot(newBoot), shows(target)), want: Rest},
		{name: "apply, done, its pod is gone", view: situation(apply, answered(ready), boot(newBoot)), want: Rest},
		{name: "apply, answered with an error, no pod", view: situation(apply, answered(failure)), want: Rest},

		{name: "apply, the pod runs", view: situation(apply, answered(busy), pod(running), at(time.Hour)), want: Rest},
		{name: "apply, nothing started yet", view: situation(apply, answered(busy), pod(pending), at(5*time.Minute)), want: Rest, again: time.Minute},
		{name: "apply, nothing started in time", view: situation(apply, answered(busy), pod(pending), at(6*time.Minute)), want: Delete, pod: "pod-1"},
		{name: "apply, nothing started, deleted", view: situation(apply, answered(busy), pod(pending, deleting), at(time.Hour)), want: Rest},
		{name: "apply, nothing started, let go", view: situation(apply, answered(busy), pod(pending, deleting, func(p *Pod) { p.Phase = Failed }), at(7*time.Minute)),
			want: Report, state: failure, reason: marker.ReasonInterrupted},
		{name: "apply, rejected", view: situation(apply, answered(busy), pod(rejected)), want: Report, state: failure, reason: marker.ReasonInterrupted, says: "OutOfcpu"},

		{name: "reboot, over and the old boot", view: situation(apply, answered(busy), pod(), at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "reboot, over and the old boot for long", view: situation(apply, answered(busy), pod(), at(13*time.Minute)), want: Report, state: failure,
			reason: marker.ReasonNoEffect, says: "did not reboot"},
		{name: "reboot, new boot, target", view: situation(apply, answered(busy), pod(), boot(newBoot), shows(target)), want: Report, state: ready,
			runs: "k3s/" + target + "#" + digest},
		{name: "reboot, new boot, target without its v", view: situation(apply, answered(busy), pod(), boot(newBoot), shows(strings.TrimPrefix(target, "v"))),
			want: Report, state: ready, runs: "k3s/" + target + "#" + digest},
		{name: "reboot, old boot, target", view: situation(apply, answered(busy), pod(), shows(target), at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "reboot, new boot, target, pod not over", view: situation(apply, answered(busy), pod(running), boot(newBoot), shows(target)), want: Rest},
		{name: "reboot, new boot, another build", view: situation(apply, answered(busy), pod(), boot(newBoot), shows("v1.34.2+k3s2")), want: Report, state: failure,
			says: "v1.34.2+k3s2 instead of " + target},
		{name: "reboot, new boot, no target", view: situation(apply, answered(busy), pod(), boot(newBoot)), want: Report, state: failure, says: "rolled back"},
		{name: "reboot, lost its power before the pod ran, which has yet to reboot it", view: situation(apply, answered(busy), pod(ends(5*time.Minute)), boot(newBoot), at(6*time.Minute)),
			want: Rest, again: 9 * time.Minute},
		{name: "reboot, lost its power before the pod ran, and nothing came of it", view: situation(apply, answered(busy), pod(ends(5*time.Minute)), boot(newBoot), at(15*time.Minute)),
			want: Report, state: failure, says: "rolled back"},
		{name: "reboot, new boot, no target, rejected", view: situation(apply, answered(busy), pod(rejected), boot(newBoot)), want: Report, state: failure,
			reason: marker.ReasonInterrupted, says: "OutOfcpu"},
		{name: "reboot, new boot, no target, not Ready", view: situation(apply, answered(busy), pod(), boot(newBoot), notReady, at(time.Hour)), want: Rest},
		{name: "reboot, its kubelet died, new boot, target", view: situation(apply, answered(busy), pod(failing(143), because("Terminated")), boot(newBoot), shows(target)),
			want: Report, state: ready},
		{name: "reboot, unknown end, old boot", view: situation(apply, answered(busy), pod(failing(137)), at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "reboot, unknown end, old boot for long", view: situation(apply, answered(busy), pod(failing(137)), at(13*time.Minute)), want: Report, state: failure,
			reason: marker.ReasonInterrupted},
		{name: "reboot, failed by itself, old boot", view: situation(apply, answered(busy), pod(failing(1)), at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "reboot, failed by itself, old boot for long", view: situation(apply, answered(busy), pod(failing(1)), read, at(13*time.Minute)), want: Report, state: failure,
			reason: marker.ReasonPodFailed, says: "status 1: no space left"},
		{name: "reboot, failed by itself, new boot", view: situation(apply, answered(busy), pod(failing(1)), boot(newBoot), at(13*time.Minute)), want: Report, state: failure,
			says: "rolled back"},
		{name: "reboot, deleted, old boot for long", view: situation(apply, answered(busy), pod(failing(1), deleting), at(13*time.Minute)), want: Report, state: failure,
			reason: marker.ReasonInterrupted, says: "was deleted"},
		{name: "reboot, deleted, and ended in peace, old boot for long", view: situation(apply, answered(busy), pod(deleting), at(13*time.Minute)), want: Report, state: failure,
			reason: marker.ReasonInterrupted, says: "was deleted"},
		{name: "reboot, too long, old boot for long", view: situation(apply, answered(busy), pod(failing(137), because("DeadlineExceeded")), at(13*time.Minute)), want: Report,
			state: failure, reason: marker.ReasonInterrupted, says: "DeadlineExceeded"},
		{name: "reboot, a kubelet's clock far ahead", view: situation(apply, answered(busy), pod(func(p *Pod) { p.Ended = noon.Add(24 * time.Hour) }), at(46*time.Minute)),
			want: Report, state: failure, reason: marker.ReasonNoEffect},
		{name: "restart, a kubelet's clock 15 min behind, over a minute ago (S10)", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(ends(6*time.Minute),
			func(p *Pod) { p.Taken = noon.Add(-14 * time.Minute) }), at(22*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "restart, a kubelet's clock a minute ahead", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(
			func(p *Pod) { p.Taken = noon.Add(2 * time.Minute) }), at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "reboot, ready", view: situation(apply, answered(ready), pod(), boot(newBoot), shows(target)), want: Rest},
		{name: "reboot, late target after an error", view: situation(apply, answered(failure), pod(), boot(newBoot), shows(target)), want: Report, state: ready},

		{name: "restart, target", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(), shows(target)), want: Report, state: ready},
		{name: "restart, target, pod not over", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(running), shows(target)), want: Rest},
		{name: "restart, no target", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(), at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "restart, no target for long", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(), at(13*time.Minute)), want: Report,
			state: failure, reason: marker.ReasonNoEffect, says: before + " instead of " + target},
		{name: "restart, killed with its kubelet, target (k3s 11347: the pod fails as it ends k3s)", view: situation(apply, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(failing(137)), shows(target)),
			want: Report, state: ready},

		{name: "none, target", view: situation(apply, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(), shows(target)), want: Report, state: ready},
		{name: "none, no target", view: situation(apply, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(), at(4*time.Minute)), want: Rest, again: time.Minute},
		{name: "none, no target for long", view: situation(apply, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(), at(5*time.Minute)), want: Report,
			state: failure, reason: marker.ReasonNoEffect},
		{name: "none, deleted, and ended in peace", view: situation(apply, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(deleting), at(5*time.Minute)), want: Report,
			state: failure, reason: marker.ReasonInterrupted, says: "was deleted"},
		{name: "none, killed by itself", view: situation(apply, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(failing(137)), read, at(5*time.Minute)), want: Report,
			state: failure, reason: marker.ReasonPodFailed},

		{name: "content, proven", view: situation(apply, content, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(said(digest+"\n"))), want: Report, state: ready,
			runs: "k3s/content#" + digest},
		{name: "content, another digest", view: situation(apply, content, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(said("fedcba9876543210")), at(5*time.Minute)),
			want: Report, state: failure, reason: marker.ReasonNoEffect, says: "shows fedcba9876543210 instead of " + digest},
		{name: "content, no message", view: situation(apply, content, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(), at(5*time.Minute)),
			want: Report, state: failure, reason: marker.ReasonNoEffect, says: "no digest"},
		{name: "content, proven but failed", view: situation(apply, content, answered(busy), plan(marker.EffectNone, marker.DrainNothing), pod(said(digest), failing(1)), read,
			at(5*time.Minute)), want: Report, state: failure, reason: marker.ReasonPodFailed},
		{name: "content, after a reboot alone", view: situation(apply, content, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(said(digest+" reboot")),
			at(4*time.Minute)), want: Rest, again: 9 * time.Minute},
		{name: "content, rebooted", view: situation(apply, content, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(said(digest+" reboot")), boot(newBoot)),
			want: Report, state: ready},
		{name: "content, never rebooted", view: situation(apply, content, answered(busy), plan(marker.EffectRestart, marker.DrainAll), pod(said(digest+" reboot")),
			at(13*time.Minute)), want: Report, state: failure, reason: marker.ReasonNoEffect},

		{name: "reset, nothing runs", view: situation(reset), want: Report, state: ready},
		{name: "reset, a pod runs", view: situation(reset, pod(of("i-1"), running)), want: Delete, pod: "pod-i-1"},
		{name: "reset, a pod ends", view: situation(reset, pod(of("i-1"), running, deleting)), want: Rest, again: 70 * time.Minute},
		{name: "reset, a pod is over", view: situation(reset, pod(of("i-1"))), want: Report, state: ready},

		{name: "an earlier pod, before its time", view: situation(stabilize, answered(ready), pod(of("i-1"), func(p *Pod) { p.Until = noon })), want: Rest, again: 9 * time.Minute},
		{name: "an earlier pod, when its time is over", view: situation(stabilize, answered(ready), pod(of("i-1"), func(p *Pod) { p.Until = noon }), at(10*time.Minute)),
			want: Release, pod: "pod-i-1"},
		{name: "an earlier pod that failed, within the hour", view: situation(stabilize, answered(ready), pod(of("i-1"), failedAt(noon.Add(10*time.Minute))), at(60*time.Minute)),
			want: Rest, again: 10 * time.Minute},
		{name: "an earlier pod that failed, an hour ago", view: situation(stabilize, answered(ready), pod(of("i-1"), failedAt(noon.Add(10*time.Minute))), at(70*time.Minute)),
			want: Release, pod: "pod-i-1"},
		{name: "an earlier pod that failed in a time to come", view: situation(stabilize, answered(ready), pod(of("i-1"), failedAt(noon.Add(24*time.Hour))), at(10*time.Minute)),
			want: Release, pod: "pod-i-1"},
		{name: "an earlier pod without its finalizer", view: situation(stabilize, answered(ready), pod(of("i-1"), func(p *Pod) { p.Until, p.Held = noon, false }), at(10*time.Minute)),
			want: Delete, pod: "pod-i-1"},
		{name: "an earlier pod, its time not known", view: situation(stabilize, answered(ready), pod(of("i-1"))), want: Rest, again: 70 * time.Minute},
		{name: "the present pod, whatever the time", view: situation(apply, answered(ready), boot(newBoot), shows(target), pod(), at(24*time.Hour)), want: Rest},

		{name: "node gone, a pod", view: situation(apply, gone, pod(running)), want: Release, pod: "pod-1"},
		{name: "node gone, a pod without its finalizer", view: situation(apply, gone, pod(running, func(p *Pod) { p.Held = false })), want: Delete, pod: "pod-1"},
		{name: "another node of that name, a pod", view: situation(stabilize, answered(ready), otherUID, pod()), want: Release, pod: "pod-1"},
		{name: "label gone, a pod runs", view: situation(apply, unlabelled, answered(busy), pod(running)), want: Delete, pod: "pod-1"},
		{name: "label gone, a pod is over, its intent stands", view: situation(apply, unlabelled, answered(busy), pod(), at(24*time.Hour)), want: Rest, again: 10 * time.Minute},
		{name: "label gone, an earlier pod is over", view: situation(stabilize, unlabelled, pod(of("i-1"), func(p *Pod) { p.Until = noon })), want: Rest, again: 9 * time.Minute},
		{name: "label gone, an earlier pod is over for long", view: situation(stabilize, unlabelled, pod(of("i-1"), func(p *Pod) { p.Until = noon }), at(10*time.Minute)),
			want: Release, pod: "pod-i-1"},
		{name: "label gone, an intent", view: situation(apply, unlabelled, answered(busy)), want: Rest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			step := Decide(tc.view)
			assert.Equal(t, step.Kind, tc.want, "%+v", step)
			if tc.pod != "" {
				assert.Equal(t, step.Pod.UID, tc.pod)
			}
			if tc.want == Rest {
				again := time.Duration(0)
				if !step.Again.IsZero() {
					again = step.Again.Sub(tc.view.Now)
				}
				assert.Equal(t, again, tc.again)
			}
			if tc.want != Report {
				return
			}
			assert.Equal(t, step.Report.State, tc.state, step.Report.Message)
			assert.Equal(t, step.Report.Reason, tc.reason, step.Report.Message)
			assert.Assert(t, strings.Contains(step.Report.Message, tc.says), step.Report.Message)
			if tc.runs != "" {
				assert.Equal(t, step.Report.Current, strings.TrimPrefix(tc.runs, "-"))
			}
			if tc.state == failure {
				assert.Assert(t, step.Report.Message != "")
			}
			for _, k := range []marker.Key{marker.KeyAvailableVersion, marker.KeyUpdateAvailable, marker.KeyActivatedID} {
				if v, touched := step.Changes[k]; touched {
					assert.Assert(t, v == nil, k)
				}
			}
		})
	}
}

// S10, S7: a label that is gone for long and comes back in mid attempt is no proof that no pod was made.
func TestLabelComesBack(t *testing.T) {
	v := situation(apply, answered(busy), pod(failing(143), deleting), func(v *View) { v.Node.Labelled = false }, at(30*time.Minute))
	for step := Decide(v); step.Kind != Rest; step = Decide(v) {
		assert.Equal(t, step.Kind, Release)
		// Its deletion was asked for.
		v.Pods = nil
	}
	v.Node.Labelled = true
	step := Decide(v)
	assert.Equal(t, step.Report.Reason, marker.ReasonInterrupted, step.Report.Message)
}

// L4: runners of two builds don't write against each other.
func TestTwoBuilds(t *testing.T) {
	v := situation(stabilize, answered(ready))
	v.Build = "newer"
	assert.Equal(t, Decide(v).Kind, Rest)
	v.Node.BootID = newBoot
	assert.Equal(t, *Decide(v).Changes[marker.KeyOperatorVersion], "newer")
	v.Node.BootID, v.Node.Report.Protocol = oldBoot, marker.Protocol-1
	assert.Equal(t, Decide(v).Kind, Report)
	v.Node.Report.Protocol = marker.Protocol + 1
	assert.Equal(t, Decide(v).Kind, Rest)
}

// L4: what was written stands, and nothing is written again.
func TestSaidOnce(t *testing.T) {
	for _, v := range []View{
		situation(stabilize), situation(prepare, func(v *View) { v.Node.Intent.Template = "" }), situation(reset),
		situation(apply, answered(busy), pod(), boot(newBoot), shows(target)), situation(apply, answered(busy), pod(), at(time.Hour)),
		situation(apply, answered(busy), at(time.Hour)), situation(apply, remembers(Memory{Refusals: refusals})),
	} {
		step := Decide(v)
		assert.Equal(t, step.Kind, Report)
		for k, value := range step.Changes {
			delete(v.Node.Annotations, string(k))
			if value != nil {
				v.Node.Annotations[string(k)] = *value
			}
		}
		write(v.Node, nil)
		assert.Equal(t, Decide(v).Kind, Rest, "%+v", step.Report)
		v.Memory = Memory{}
		assert.Equal(t, Decide(v).Kind, Rest, "%+v", step.Report)
	}
}
