package next

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// world is one node with its kubelet, the API server, the controller, two runners, and everything that goes wrong.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	now     time.Time
	node    Node
	version int
	pods    []Pod
	// deaf: the kubelet doesn't act.
	deaf    bool
	intents int
	boots   int
	// made counts pods by intent, begun are the intents for which busy was accepted.
	made    map[string]int
	begun   map[string]bool
	told    []string
	runners [2]process
}

type process struct {
	memory Memory
	until  map[string]time.Time
	// looked is what it decided from last; nil: it carries nothing out.
	looked  *View
	version int
	at      time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: noon, made: map[string]int{}, begun: map[string]bool{},
		node: Node{Name: "n", UID: "u", Labelled: true, Ready: true, BootID: "boot-0", Info: fleet.NodeInfo{Kubelet: before}, Annotations: map[string]string{}}}
	w.node.Plan = &marker.Plan{Name: "k3s", Digest: digest, Proof: marker.ProofKubelet, Apply: "apply", Deadline: "30m0s",
		Effect: marker.Effects()[w.rand.IntN(3)], Drain: marker.DrainAll}
	if w.rand.IntN(4) == 0 {
		w.node.Plan.Proof = marker.ProofContent
	}
	if w.node.Plan.Effect == marker.EffectNone {
		w.node.Plan.Drain = marker.DrainNothing
	}
	w.ask(marker.ActionStabilize)
	return w
}

func (w *world) tell(format string, args ...any) {
	w.told = append(w.told, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *world) must(ok bool, format string, args ...any) {
	if !ok {
		w.t.Helper()
		for _, line := range w.told {
			w.t.Log(line)
		}
		w.t.Fatalf(format, args...)
	}
}

// ask is the controller's next intent.
func (w *world) ask(action marker.Action) {
	w.intents++
	i := marker.Intent{ID: fmt.Sprintf("i-%d", w.intents), Action: action, Time: w.now, Until: w.now.Add(5 * time.Minute), Template: "apply"}
	w.node.Unschedulable = action == marker.ActionRebootUpdate && w.node.Plan.Drain != marker.DrainNothing
	if action != marker.ActionStabilize && action != marker.ActionResetState {
		i.Target = w.node.Plan.Version(target)
		if w.node.Plan.Proof == marker.ProofContent {
			i.Target = w.node.Plan.Done(digest)
		}
	}
	if action == marker.ActionRebootUpdate {
		i.RebootFrom = w.node.BootID
	}
	own := marker.Keys(marker.WriterController)
	maps.DeleteFunc(w.node.Annotations, func(k, _ string) bool { return slices.Contains(own, marker.Key(k)) })
	for k, v := range marker.Encode(marker.Marks{Intent: i, Plan: w.node.Plan}) {
		w.node.Annotations[string(k)] = v
	}
	w.version++
	w.tell("the controller asks for %s, %s", action, i.ID)
}

// look is a runner's live look.
func (w *world) look(r *process) {
	n := w.node
	n.Annotations = maps.Clone(n.Annotations)
	v := View{Now: w.now, Node: NodeOf(n), Template: Template{Known: true}, Memory: r.memory, Build: "test", Pods: slices.Clone(w.pods)}
	if r.until == nil {
		r.until = map[string]time.Time{}
	}
	r.until[v.Node.Intent.ID] = v.Node.Intent.Until
	for i := range v.Pods {
		v.Pods[i].Until = r.until[v.Pods[i].Intent]
	}
	r.looked, r.version, r.at = &v, w.version, w.now
}

// act carries out what a runner decided from its last look, a minute old at most.
func (w *world) act(r *process) {
	if r.looked == nil || w.now.Sub(r.at) >= lateAfter {
		r.looked = nil
		return
	}
	v := *r.looked
	r.looked = nil
	lost := w.rand.IntN(8) == 0
	switch step := Decide(v); step.Kind {
	case Rest:
	case Report:
		w.write(v, step, r.version)
	case Try:
		r.memory = Memory{Intent: v.Node.Intent.ID, Tried: true}
		if w.rand.IntN(6) == 0 {
			r.memory.Tried, r.memory.Refused, r.memory.Refusals = false, "no", w.rand.IntN(refusals+1)
		}
	case Create:
		w.create(v)
	case Delete:
		w.change(step.Pod, func(p *Pod) { p.Deleting = true })
	case Release:
		w.change(step.Pod, func(p *Pod) { p.Held = false })
	case ReadLog:
		r.memory.Intent, r.memory.LogOf, r.memory.Log = v.Node.Intent.ID, step.Pod.UID, "it broke"
	}
	if lost {
		// As after a crash: whatever came of it isn't known.
		r.memory = Memory{}
	}
}

// write is a report, which the rule judges and the resourceVersion guards.
func (w *world) write(v View, step Step, version int) {
	annotations := map[string]*string{}
	for k, value := range step.Changes {
		annotations[string(k)] = value
	}
	refusal := rule.Judge(rule.Write{NodeName: "n", NodeUID: v.Node.UID, Now: w.now, Patch: rule.Patch{ResourceVersion: "1", Annotations: annotations},
		Live: rule.Live{Name: "n", UID: v.Node.UID, ResourceVersion: "1", Annotations: v.Node.Annotations, Unschedulable: v.Node.Unschedulable}})
	w.must(refusal == nil || refusal.Reason == rule.ReasonUntil, "refused: %+v: %+v", refusal, step.Report)
	if refusal != nil || version != w.version {
		return
	}
	i := v.Node.Intent
	_, answers := step.Changes[marker.KeyActionState]
	if answers {
		w.tell("a runner answers %s: %s %s %s", i.ID, step.Report.State, step.Report.Reason, step.Report.Message)
		w.judge(v, step.Report)
	}
	for k, value := range step.Changes {
		delete(w.node.Annotations, string(k))
		if value != nil {
			w.node.Annotations[string(k)] = *value
		}
	}
	w.version++
}

// judge holds what is answered against the truth: S7 and S10.
func (w *world) judge(v View, r marker.Report) {
	i := v.Node.Intent
	if r.State == marker.StateBusy {
		w.begun[i.ID] = true
	}
	if i.Action != marker.ActionRebootUpdate {
		return
	}
	at := slices.IndexFunc(w.pods, func(p Pod) bool { return p.Intent == i.ID })
	has, fresh := w.node.Info.Kubelet == target, w.node.BootID != i.RebootFrom
	switch {
	case r.State == marker.StateReady:
		w.must(at >= 0 && w.pods[at].Over(), "ready, and no pod is over")
		if w.node.Plan.Proof == marker.ProofContent {
			has = w.pods[at].Phase == Succeeded && w.pods[at].Said == digest
		}
		w.must(has && (fresh || w.node.Plan.Effect != marker.EffectReboot), "ready without proof: %+v", w.node)
	case r.Reason == marker.ReasonNoEffect:
		w.must(at >= 0 && w.pods[at].Phase == Succeeded, "NoEffect, and no pod succeeded")
		w.must(!has || w.node.Plan.Effect == marker.EffectReboot && !fresh || w.node.Plan.Proof == marker.ProofContent && w.pods[at].Said != digest, "NoEffect, and the target shows")
	case r.Reason == marker.ReasonPodFailed:
		w.must(at >= 0 && w.pods[at].Phase == Failed && w.pods[at].Reason == "" && w.pods[at].Status == 1 && !fresh, "PodFailed, and it was not the pod's doing")
	case r.Reason == marker.ReasonPodRefused:
		w.must(at < 0, "PodRefused, and there is a pod")
	}
}

// create is the API server's part of S3 but for the admission policies, which would hold it alone.
func (w *world) create(v View) {
	i := v.Node.Intent
	// The loop looks at its clock again.
	if !w.now.Before(i.Until) || slices.ContainsFunc(w.pods, func(p Pod) bool { return p.Intent == i.ID }) {
		return
	}
	w.made[i.ID]++
	w.tell("a runner makes the pod of %s", i.ID)
	w.must(w.made[i.ID] == 1, "two pods for %s", i.ID)
	w.must(w.begun[i.ID], "a pod without busy")
	w.must(w.now.Before(i.Until), "a pod too late")
	w.pods = append(w.pods, Pod{Name: "p-" + i.ID, UID: fmt.Sprintf("pod-%d", len(w.made)), Plan: "k3s", Intent: i.ID, NodeUID: w.node.UID,
		Template: "apply", Created: w.now, Phase: Pending, Held: true})
}

func (w *world) change(of *Pod, f func(*Pod)) {
	for i := range w.pods {
		if w.pods[i].UID == of.UID {
			f(&w.pods[i])
		}
	}
	w.pods = slices.DeleteFunc(w.pods, func(p Pod) bool { return p.Deleting && !p.Held && p.Over() })
}

func (w *world) end(p *Pod, phase Phase, status int, reason string) {
	p.Phase, p.Status, p.Reason, p.Container = phase, status, reason, "apply"
	if p.Started {
		p.Ended = w.now
	}
	w.tell("pod %s ends: %s %d %s", p.Name, phase, status, reason)
}

// kubelet takes one of the kubelet's steps.
func (w *world) kubelet() {
	if w.deaf {
		return
	}
	for i := range w.pods {
		switch p := &w.pods[i]; {
		case p.Over():
		case p.Deleting:
			w.end(p, Failed, 143, "")
		case p.Phase == Pending && w.rand.IntN(4) == 0:
			w.end(p, Failed, 0, "OutOfcpu")
		case p.Phase == Pending && w.rand.IntN(3) > 0:
			p.Phase, p.Started = Running, true
		case p.Phase == Running:
			w.run(p)
		}
	}
	w.pods = slices.DeleteFunc(w.pods, func(p Pod) bool { return p.Deleting && !p.Held && p.Over() })
}

// run is what the pod does.
func (w *world) run(p *Pod) {
	if w.rand.IntN(2) == 0 {
		w.node.Info.Kubelet = target
		w.version++
	}
	if w.rand.IntN(2) == 0 {
		p.Said = digest
	}
	switch w.rand.IntN(5) {
	case 0, 1:
		w.end(p, Succeeded, 0, "")
	case 2:
		w.end(p, Failed, 1, "")
	case 3:
		w.end(p, Failed, 137, "Evicted")
	case 4:
		w.reboot()
	}
}

// reboot ends what runs.
func (w *world) reboot() {
	w.boots++
	w.node.BootID, w.node.ReadySince = fmt.Sprintf("boot-%d", w.boots), w.now
	w.version++
	w.tell("the node reboots")
	for i := range w.pods {
		if p := &w.pods[i]; p.Phase == Running {
			w.end(p, Failed, 137, "")
		}
	}
}

func (w *world) step() {
	r := &w.runners[w.rand.IntN(2)]
	switch n := w.rand.IntN(100); {
	case n < 30:
		w.look(r)
	case n < 60:
		w.act(r)
	case n < 75:
		w.kubelet()
	case n < 88:
		w.now = w.now.Add([]time.Duration{time.Second, 20 * time.Second, 3 * time.Minute, 11 * time.Minute}[w.rand.IntN(4)])
	case n < 90:
		*r = process{}
	case n < 92:
		w.deaf = !w.deaf
	case n < 93 && len(w.pods) > 0:
		w.tell("a user deletes a pod")
		w.change(&w.pods[w.rand.IntN(len(w.pods))], func(p *Pod) { p.Deleting = true })
	case n < 94:
		w.node.Labelled = !w.node.Labelled
		w.version++
	case n < 95:
		w.reboot()
	case n < 96:
		w.node.Ready = !w.node.Ready
		w.version++
	case n < 98:
		w.controller()
	}
}

// controller goes on once there is an answer, and takes an intent back that is not busy.
func (w *world) controller() {
	n := NodeOf(w.node)
	if n.Intent.Action == marker.ActionRebootUpdate && n.Report.Answer(n.Intent.ID) == marker.StateBusy {
		return
	}
	w.ask([]marker.Action{marker.ActionStabilize, marker.ActionPrepareUpdate, marker.ActionRebootUpdate, marker.ActionRebootUpdate, marker.ActionResetState}[w.rand.IntN(5)])
}

// S3, S7, S10: whatever crashes, is lost or is done by others, in any order; and once that stops, what was begun gets
// its answer (L1).
func TestWorld(t *testing.T) {
	answers, seeds := map[string]int{}, uint64(1000)
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		w := newWorld(t, seed)
		for range 300 {
			w.step()
		}
		w.deaf, w.node.Labelled, w.node.Ready = false, true, true
		w.version++
		for range 200 {
			w.look(&w.runners[0])
			w.act(&w.runners[0])
			w.kubelet()
			w.now = w.now.Add(30 * time.Second)
		}
		n := NodeOf(w.node)
		answer := n.Report.Answer(n.Intent.ID)
		w.must(answer == marker.StateReady || answer == marker.StateError || answer == marker.StateNone && n.Intent.Action != marker.ActionStabilize, "seed %d: no answer to %+v: %+v", seed, n.Intent, n.Report)
		answers[string(n.Intent.Action)+" "+string(answer)+" "+string(n.Report.Reason)]++
	}
	for _, want := range []string{"reboot-update ready ", "reboot-update error ", "reboot-update error NoEffect", "reboot-update error PodFailed",
		"reboot-update error Interrupted", "reboot-update error PodRefused", "prepare-update ready ", "prepare-update error PodFailed", "reset-state ready "} {
		assert.Check(t, answers[want] > 0, "the runs show no %q: %v", want, answers)
	}
}
