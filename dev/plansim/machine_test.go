package plansim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
)

func (w *world) change(uid string, f func(*pod)) {
	for _, p := range w.pods {
		if p.UID == uid {
			f(p)
		}
	}
	w.sweep()
}

func (w *world) sweep() {
	w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return p.Deleting && !p.Held && (p.Over() || w.named(p.node) == nil) })
}

func (w *world) end(p *pod, phase next.Phase, status int, reason string) {
	p.Phase, p.Status, p.Reason, p.Container = phase, status, reason, "apply"
	if p.Started {
		p.Ended = w.now
	}
	w.tell("%s: pod %s (%s) ends: %s %d %s", p.node, p.Name, p.Template, phase, status, reason)
}

func (w *world) kubelet(m *machine) {
	if m.deaf {
		return
	}
	for _, p := range w.pods {
		if p.node != m.name || p.Over() {
			continue
		}
		switch {
		case p.Deleting:
			w.end(p, next.Failed, 143, "")
		case p.NodeUID != m.uid, !w.calm && p.Phase == next.Pending && w.rand.IntN(10) == 0:
			w.end(p, next.Failed, 0, "OutOfcpu")
		case p.Phase == next.Pending:
			p.Phase, p.Started = next.Running, true
		case w.now.After(p.Created.Add(30*time.Minute)) && !w.calm:
			w.end(p, next.Failed, 137, "DeadlineExceeded")
		case p.Template == "prepare" && (w.calm || w.rand.IntN(4) > 0):
			w.end(p, next.Succeeded, 0, "")
		case p.Template == "prepare":
			w.end(p, next.Failed, 1, "")
		default:
			w.run(m, p)
		}
	}
	w.sweep()
}

// run is what an apply pod does.
func (w *world) run(m *machine, p *pod) {
	marks, _ := marker.Decode(m.annotations)
	if marks.Plan == nil || marks.Intent.ID != p.Intent {
		w.end(p, next.Succeeded, 0, "")
		return
	}
	brings := w.calm || w.rand.IntN(2) == 0
	if brings && marks.Plan.Proof == marker.ProofContent {
		m.content, p.Said = marks.Plan.Digest, marks.Plan.Digest
	}
	if brings && marks.Plan.Proof == marker.ProofKubelet {
		m.kubelet = newer
	}
	if marks.Plan.Effect == marker.EffectRestart {
		w.transition(m)
	}
	w.touch(m)
	fate := w.rand.IntN(6)
	if w.calm {
		fate = 0
	}
	switch {
	case fate <= 2:
		w.end(p, next.Succeeded, 0, "")
		if marks.Plan.Effect == marker.EffectReboot && (w.calm || w.rand.IntN(3) > 0) {
			w.reboot(m)
		}
	case fate == 3:
		w.end(p, next.Failed, 1, "")
	case fate == 4:
		w.end(p, next.Failed, 137, "Evicted")
	default:
		w.reboot(m)
	}
}

func (w *world) reboot(m *machine) {
	w.uids++
	m.boot = fmt.Sprintf("boot-%d", w.uids)
	w.transition(m)
	w.touch(m)
	w.tell("%s reboots", m.name)
	for _, p := range w.pods {
		if p.node == m.name && p.Phase == next.Running {
			w.end(p, next.Failed, 137, "")
		}
	}
}

// fault is something that goes wrong, or that a user does.
func (w *world) fault() {
	m := w.machines[w.rand.IntN(len(w.machines))]
	switch w.rand.IntN(17) {
	case 0:
		m.deaf = !m.deaf
	case 1:
		w.reboot(m)
	case 2:
		m.ready = !m.ready
		w.transition(m)
		w.tell("%s is ready: %v", m.name, m.ready)
	case 3:
		values := []string{"plan", "2.0.0", ""}
		delete(m.labels, label)
		if v := values[w.rand.IntN(3)]; v != "" {
			m.labels[label] = v
		}
		w.tell("%s is labelled %q", m.name, m.labels[label])
	case 4:
		w.up = !w.up
		w.runners = [2]process{}
		w.tell("the runner is up: %v", w.up)
	case 5:
		if len(w.pods) > 0 {
			w.tell("a user deletes a pod")
			w.change(w.pods[w.rand.IntN(len(w.pods))].UID, func(p *pod) { p.Deleting = true })
		}
	case 6:
		d := []string{"0123456789abcdef", "fedcba9876543210"}[w.rand.IntN(2)]
		t := w.targets["p"]
		t.Digest = d
		w.targets = map[string]fleet.PlanTarget{"p": t}
		w.tell("the template is %s", d)
	case 7:
		w.targets = map[string]fleet.PlanTarget{}
		w.tell("plan-targets is gone")
	case 8:
		if w.rand.IntN(3) == 0 {
			*m = *w.machine(m.name)
			w.tell("%s is another node", m.name)
		}
	case 9:
		if m.unschedulable && !m.others {
			m.unschedulable = false
			w.tell("a user uncordons %s", m.name)
		}
	case 10:
		if marks, _ := marker.Decode(m.annotations); !m.unschedulable && (marks.Disruption == nil || marks.Plan != nil && marks.Plan.Drain == marker.DrainNothing) {
			m.unschedulable, m.others = true, true
			w.tell("a user cordons %s", m.name)
		} else if m.others {
			m.unschedulable, m.others = false, false
			w.tell("a user takes the cordon of %s back", m.name)
		}
	case 11:
		if _, paused := m.annotations[string(marker.KeyPaused)]; paused {
			delete(m.annotations, string(marker.KeyPaused))
		} else {
			m.annotations[string(marker.KeyPaused)] = "x"
		}
	case 12:
		w.runners[w.rand.IntN(2)] = process{}
	case 13:
		m.annotations[string(marker.KeyRetry)] = ""
	case 15:
		if w.set.Plans == nil {
			w.set.Plans = w.plans
		} else {
			w.set.Plans = nil
		}
		w.tell("the policy has the plan: %v", w.set.Plans != nil)
	case 16:
		w.plans = slices.Clone(w.plans)
		w.plans[0].Deadline = []time.Duration{10 * time.Minute, 30 * time.Minute, 2 * time.Hour}[w.rand.IntN(3)]
		w.set.Plans = w.plans
		w.tell("the deadline is %s", w.plans[0].Deadline)
	case 14:
		m.kubelet = older
		w.tell("%s shows %s again", m.name, older)
	}
	w.touch(m)
}
