package plansim_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
)

func (w *world) look(r *process) {
	m := w.machines[w.rand.IntN(len(w.machines))]
	w.lookAt(r, m)
}

func (w *world) lookAt(r *process, m *machine) {
	if r.until == nil {
		r.until, r.memory = map[string]time.Time{}, map[string]next.Memory{}
	}
	n := next.NodeOf(next.Node{Name: m.name, UID: m.uid, Labelled: m.labels[label] == "plan", Unschedulable: m.unschedulable, Ready: m.ready, ReadySince: m.readyAt, BootID: m.boot,
		Info: fleet.NodeInfo{Kubelet: m.kubelet}, Annotations: maps.Clone(m.annotations)})
	v := next.View{Now: w.now, Node: n, Memory: r.memory[m.name], Build: "test"}
	r.until[n.Intent.ID] = n.Intent.Until
	for _, p := range w.pods {
		if p.node == m.name {
			q := p.Pod
			q.Until = r.until[q.Intent]
			v.Pods = append(v.Pods, q)
		}
	}
	v.Template = next.Template{Known: true}
	if n.Plan != nil {
		switch {
		case w.set.Plans == nil:
			v.Template.Problem = "the policy has no such plan"
		case w.targets["p"].Digest != "" && w.targets["p"].Digest != n.Plan.Digest:
			v.Template.Problem = "the template changed"
		}
	}
	r.looked, r.of, r.version, r.at = &v, m.name, m.version, w.now
}

// act carries out what a runner decided from its last look, 20 s old at most.
func (w *world) act(r *process) {
	v := r.looked
	r.looked = nil
	if v == nil || w.now.Sub(r.at) > 20*time.Second {
		return
	}
	m := w.named(r.of)
	step := next.Decide(*v)
	switch step.Kind {
	case next.Rest:
	case next.Report:
		w.report(m, v, step, r.version)
	case next.Try:
		memory := next.Memory{Intent: v.Node.Intent.ID, Tried: true}
		if !w.calm && w.rand.IntN(10) == 0 {
			memory.Tried, memory.Refused, memory.Refusals = false, "no", 3
		}
		r.memory[r.of] = memory
	case next.Create:
		w.create(m, v)
	case next.Delete:
		w.change(step.Pod.UID, func(p *pod) { p.Deleting = true })
	case next.Release:
		w.change(step.Pod.UID, func(p *pod) { p.Held = false })
	case next.ReadLog:
		memory := r.memory[r.of]
		memory.Intent, memory.LogOf, memory.Log = v.Node.Intent.ID, step.Pod.UID, "it broke"
		r.memory[r.of] = memory
	}
}

func (w *world) report(m *machine, v *next.View, step next.Step, version int) {
	patch := map[string]*string{}
	for k, value := range step.Changes {
		patch[string(k)] = value
	}
	refusal := rule.Judge(rule.Write{NodeName: v.Node.Name, NodeUID: v.Node.UID, Now: w.now, Patch: rule.Patch{ResourceVersion: "1", Annotations: patch},
		Live: rule.Live{Name: v.Node.Name, UID: v.Node.UID, ResourceVersion: "1", Annotations: v.Node.Annotations, Unschedulable: v.Node.Unschedulable}})
	w.must(refusal == nil || refusal.Reason == rule.ReasonUntil, "the rule refuses: %+v: %+v", refusal, step.Report)
	if refusal != nil || m == nil || m.version != version {
		return
	}
	for k, value := range step.Changes {
		delete(m.annotations, string(k))
		if value != nil {
			m.annotations[string(k)] = *value
		}
	}
	w.touch(m)
	w.writes++
	w.tell("%s: the runner reports %s %s %s, current %s, to %s", m.name, step.Report.State, step.Report.Reason, step.Report.Message, step.Report.Current, v.Node.Intent.Action)
}

func (w *world) create(m *machine, v *next.View) {
	i := v.Node.Intent
	if m == nil || m.uid != v.Node.UID || !w.now.Before(i.Until) || slices.ContainsFunc(w.pods, func(p *pod) bool { return p.Intent == i.ID && p.NodeUID == m.uid }) {
		return
	}
	// The admission policies look at the Node.
	marks, _ := marker.Decode(m.annotations)
	if marks.Intent.ID != i.ID || marks.Report.Answer(i.ID) != marker.StateBusy || m.labels[label] != "plan" ||
		i.Action == marker.ActionRebootUpdate && !m.unschedulable && marks.Plan.Drain != marker.DrainNothing {
		return
	}
	w.made[i.ID]++
	w.must(w.made[i.ID] == 1, "S3: two pods for %s", i.ID)
	if i.Action == marker.ActionRebootUpdate {
		for _, p := range w.pods {
			w.must(p.node != m.name || p.NodeUID != m.uid || p.Over(), "two pods at once on %s", m.name)
		}
	}
	w.tell("%s: a runner makes the pod of %s", m.name, i.ID)
	w.pods = append(w.pods, &pod{node: m.name, Pod: next.Pod{Name: "p-" + i.ID, UID: fmt.Sprintf("pod-%d", w.next()), Plan: "p", Intent: i.ID, NodeUID: m.uid,
		Template: i.Template, Created: w.now, Phase: next.Pending, Held: true}})
}
