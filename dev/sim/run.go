package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner"
)

// Result is what a run found.
type Result struct {
	Scenario Scenario
	// Violation names the promise that was broken and how; empty: none was.
	Violation string
	// Struck counts the faults that had an effect, by kind.
	Struck map[Kind]int
	// Checked counts how often each promise was looked at.
	Checked map[string]int
	// Steps is how many things happened, Updated how many machines ended on the newest version, Held
	// the most nodes that were disrupted at once.
	Steps, Nodes, Updated, Held int
	// Reasons are those that users could read of each machine's node, in Events and in waiting-for, by
	// the machine's name.
	Reasons map[string]map[plan.Reason]bool
	// Took is how long it was on the virtual clock.
	Took  time.Duration
	trace trace
}

// Trace writes what happened, the last n lines of it; all if n is 0.
func (r Result) Trace(w io.Writer, n int) { r.trace.print(w, n) }

// Run plays a scenario. The same scenario gives the same result.
func Run(s Scenario) Result {
	w := newWorld(s)
	w.play()
	return w.result()
}

func (w *world) play() {
	w.setUp()
	w.run(w.begun().Add(w.scenario.Trouble))
	w.peace()
	w.settle()
}

func (w *world) begun() time.Time { return w.trace.begun }

// start is when every run begins.
var start = time.Date(2026, 9, 21, 9, 0, 0, 0, time.UTC)

var shared = struct {
	controller *controller.Metrics
	agent      *agent.Metrics
	runner     *runner.Metrics
}{controller.NewMetrics(nil, true), agent.NewMetrics(), runner.NewMetrics(nil)}

func newWorld(s Scenario) *world {
	w := &world{scenario: s, settings: s.settings(), rng: rand.New(rand.NewPCG(s.Seed, 2)),
		now: start, repo: &hostsim.Repo{}, unreached: map[string]*unreached{}, struck: map[Kind]int{}, log: quiet(), newest: firstVersion,
		controllerMetrics: shared.controller, agentMetrics: shared.agent, runnerMetrics: shared.runner}
	w.trace.begun = w.now
	w.checks = checks{w: w, counted: map[string]int{}, history: map[string][]stood{}, known: map[string]time.Time{}, carried: newCarried(), went: map[string]map[string]bool{}, nodes: map[string]*watched{}, came: map[string]int64{}, givenBack: map[string]time.Time{}, tampered: map[string]bool{}, reasons: map[string]map[plan.Reason]bool{},
		taken: map[string]time.Time{}, once: map[string]bool{}, made: map[string]int{}}
	w.server = apiserver.New(func() time.Time { return w.now })
	w.server.OnWrite(w.wrote)
	w.server.OnCreate(w.admit)
	w.server.OnLogs(planLog)
	w.people = w.server.Client(people, func(_ apiserver.Request, run func() error) error { return run() })
	return w
}

// wrote is told of every write.
func (w *world) wrote(actor string, r apiserver.Request, before, after runtime.Object) {
	w.checks.wrote(actor, r, before, after)
	w.follow(before, after)
}

// setUp makes a cluster that runs well, on the first version.
func (w *world) setUp() {
	w.publish(firstVersion, nil)
	w.publish(otherVersion, nil)
	w.repo.Withdraw(variant, arch, otherVersion)
	w.cluster = w.newCluster()
	apps := []*app{{name: "web", replicas: 2 + w.rng.IntN(2), budget: true}, {name: "batch", replicas: 1 + w.rng.IntN(w.scenario.Nodes)}}
	if w.chance(2) {
		apps = append(apps, &app{name: "store", replicas: 3, budget: true, volumes: true})
	}
	w.cluster.deploy(apps)
	for i := range w.scenario.Nodes {
		m := w.newMachine(i)
		if w.scenario.joins(i) {
			m.host.PowerOff()
			continue
		}
		m.up = true
		w.cluster.register(m)
		w.cluster.kubeletReports(m, true)
		w.after(5*time.Minute, m.inBoot(m.heartbeat))
	}
	if w.scenario.PlanNodes > 0 {
		w.writeTemplates()
		for i := range w.scenario.Runners {
			w.newRunner(i)
		}
	}
	if len(w.scenario.Policies) > 0 {
		w.writePolicy(w.scenario.Policies[0].Text())
	}
	for i := range w.scenario.Controllers {
		w.newController(i, w.machines[i%len(w.machines)]).start()
	}
	for i, part := range []string{"controller", "controller", "proxy", "proxy"} {
		w.cluster.ownPod(fmt.Sprintf("%s-%d", part, i), part, w.machines[i%len(w.machines)].nodeName)
	}
	w.after(w.between(0, 2*time.Minute), func() { w.release() })
	for _, f := range w.scenario.Faults {
		w.after(f.At, func() {
			switch {
			case w.calm:
			case f.When != "":
				w.await(f)
			default:
				w.apply(f)
			}
		})
	}
	w.after(time.Minute, w.explain)
	if w.scenario.Fresh > 0 {
		w.after(taintLook, w.watchTaints)
	}
}

// explain asks now and then what the operator would say of every node.
func (w *world) explain() {
	out := planner.Plan(w.snapshot(), w.stands())
	w.transcript.plan(out)
	w.checks.explained(out)
	w.after(5*time.Minute, w.explain)
}

// snapshot is the fleet as it is stored.
func (w *world) snapshot() fleet.Snapshot {
	s := fleet.Snapshot{Now: w.now, Slots: map[string]string{}}
	if cm := w.server.ConfigMap(namespace, kube.PlanTargetsConfigMap); cm != nil {
		s.PlanTargets = kube.DecodePlanTargets(cm.Data)
	}
	for _, n := range w.server.Nodes() {
		s.Nodes = append(s.Nodes, kube.View(n))
	}
	return s
}

// peace ends all that goes wrong. What users want on purpose, and what is broken for good, stays.
func (w *world) peace() {
	for _, version := range w.bad {
		w.checks.touchedBy(version)
	}
	w.calm = true
	w.note("fault", "everything is put right")
	w.proxyDown, w.apiDown, w.proxyClock = time.Time{}, time.Time{}, 0
	for _, r := range w.restores {
		r.now()
	}
	for _, p := range w.processes {
		p.stopped = false
	}
	for _, c := range w.controllers {
		if c.process != nil {
			c.process.clock = 0
		}
		w.after(10*time.Second, c.start)
	}
	for _, r := range w.runners {
		w.after(10*time.Second, r.start)
	}
	for _, f := range w.watches {
		f.stuck = time.Time{}
		if !f.p.dead {
			f.schedule()
		}
	}
	w.calmSince = w.now
	for _, a := range w.cluster.apps {
		if a.stubborn {
			w.after(stubbornFor, func() { a.frozen, a.stubborn = false, false; w.cluster.changed() })
			continue
		}
		a.frozen = false
	}
	w.cluster.stuck = map[string]bool{}
	for _, p := range w.server.Pods(appsNamespace) {
		if p.DeletionTimestamp != nil {
			w.cluster.terminating(p)
		}
	}
	w.cluster.changed()
	if cm := w.server.ConfigMap(namespace, kube.StateConfigMap); cm != nil && cm.Data["slots"] == "nobody" {
		w.editSlots(Fault{N: 0})
	}
	kept := len(w.machines) - 3
	for i, m := range w.machines {
		if n := m.node(); n != nil && w.checks.of(n).theirs {
			// Workloads need some place to go to: most cordons end, one may stay.
			if kept = min(kept, 1); kept > 0 {
				kept--
			} else {
				w.edit(m, func(n *corev1.Node) { n.Spec.Unschedulable = false })
			}
		}
		_ = m.host.SetFaults()
		m.injected, m.left, m.agent.offset = 0, nil, 0
		m.unwell, m.slow, m.unregistered = false, 0, false
		m.fates = nil
		m.gone = m.gone && !m.up
		w.edit(m, func(n *corev1.Node) {
			delete(n.Annotations, string(marker.KeyPaused))
			for _, g := range garbage {
				if n.Annotations[string(g.key)] == g.value {
					delete(n.Annotations, string(g.key))
				}
			}
		})
		if !m.labelled && (i%2 == 0 || i < w.scenario.Canaries) {
			w.label(m, true)
		}
		if m.up {
			w.cluster.kubeletReports(m, true)
		} else if !m.gone {
			w.after(w.between(time.Second, time.Minute), m.boot)
		}
		// A foreign update is undone by the program that made it, or later by a user.
		if s := m.host.Snapshot(); w.scenario.Seed%2 == 0 && m.up && s.State == hostsim.Ready && annotationOf(m.node(), marker.KeyActionWanted) != string(marker.ActionRebootUpdate) {
			_ = m.host.Foreign(hostsim.Deactivate)
		}
	}
	w.publish(w.newest, nil)
	_ = w.repo.SetMaxVersion(variant, arch, w.newest)
	w.endPolicies()
	if w.scenario.PlanNodes > 0 {
		// What had no effect is not tried again before that.
		w.changeTemplates(false)
		w.changeTemplates(true)
	}
	w.after(2*time.Minute, w.tidy)
}

// tidy ends what a person has to: an update that was activated behind the operator's back, or that its Node tells nothing
// of, and Nodes whose machines are gone for good.
func (w *world) tidy() {
	for _, m := range w.machines {
		reason := marker.ReportReason(annotationOf(m.node(), marker.KeyReason))
		switch other := m.up && (reason == marker.ReasonAnotherUpdater || reason == marker.ReasonUnrequestedActivation); {
		case other && m.host.Snapshot().State == hostsim.Ready:
			w.edit(m, func(n *corev1.Node) { n.Annotations[string(marker.KeyRetry)] = "" })
		case other:
			w.note(people, "reboots %s, on which another program activated another update", m.name)
			m.cycle()
		}
		n := m.node()
		w.unlock(m, n)
		if id := annotationOf(n, marker.KeyHookID); id != "" && n.Annotations[hookKey] != id && isLost(n) {
			w.note(people, "answers hooks on %s", n.Name)
			w.edit(m, func(n *corev1.Node) { n.Annotations[hookKey] = id })
		}
		if n != nil && m.gone && !m.up {
			w.note(people, "deletes node %s, whose machine is gone", n.Name)
			w.deleteNode(m, Fault{Kind: NodeDeleted, For: forever})
		}
	}
	w.after(2*time.Minute, w.tidy)
}

func annotationOf(n *corev1.Node, k marker.Key) string {
	if n == nil {
		return ""
	}
	return annotation(n, k)
}

// settle waits until the fleet is at its end and checks what must be true then (L1, L2, L4, S5).
func (w *world) settle() {
	began := w.now
	// The hosts look anew at what is offered first.
	w.run(w.now.Add(w.scenario.Refresh * 12 / 10))
	for w.checks.violation == "" && w.unsettled() != "" {
		w.checks.inTime()
		if w.now.Sub(began) > maxSettle {
			w.violate("L1", "%s, %s after everything was put right", w.unsettled(), maxSettle)
			return
		}
		w.run(w.now.Add(30 * time.Second))
	}
	if w.checks.violation != "" {
		return
	}
	// What was said last may be on its way still, and what a host lists may change later than that, by the end of its last
	// fault or by a wave: its agent reports it at the next refresh. Then nothing is written any more (L4).
	said, healed := w.now.Add(2*time.Minute+w.settings.Soak), maxTime(began, w.wavesOpen)
	for _, f := range w.scenario.Faults {
		healed = maxTime(healed, began.Add(f.lasts()))
	}
	w.run(maxTime(said, healed.Add(w.scenario.Refresh*11/10)))
	writes, events := w.checks.writes, w.checks.events
	w.checks.resting = true
	w.run(w.now.Add(w.scenario.Refresh*11/10 + 3*time.Minute))
	w.checks.count("L4")
	if n := w.checks.writes - writes; n > 0 {
		w.violate("L4", "%d writes of nodes, pods or slots while nothing changes", n)
	}
	if n := w.checks.events - events; n > 0 {
		w.violate("L4", "%d events while nothing changes", n)
	}
	if u := w.unsettled(); u != "" {
		w.violate("L1", "%s, after it was at its end", u)
	}
	w.atTheEnd()
}

// maxSettle is more than a fleet takes whose every node failed and backs off.
const maxSettle = 24 * time.Hour

// unsettled says what is still to come; empty: nothing.
func (w *world) unsettled() string {
	for _, m := range w.machines {
		n := m.node()
		switch {
		case m.gone:
			continue
		case !m.up || n == nil:
			return m.name + " is down"
		case lockUnsettled(n) != "":
			return lockUnsettled(n)
		case m.labelled && w.taintLeft(n) != "":
			return w.taintLeft(n)
		case !m.labelled:
			if has(n, marker.KeyIntentID) || has(n, marker.KeyDisruption) {
				return n.Name + " is not labelled and has marks of the operator"
			}
			continue
		}
		if id := annotation(n, marker.KeyCycle); id != "" {
			return fmt.Sprintf("the request %s for %s stands", id, n.Name)
		}
		if m.isPlanned {
			if u := w.planUnsettled(m, n); u != "" {
				return u
			}
			continue
		}
		if v := m.host.Snapshot().Version; v != w.newest {
			return fmt.Sprintf("%s runs %s and not %s", n.Name, v, w.newest)
		}
		if has(n, marker.KeyDisruption) || annotation(n, marker.KeyActionWanted) != string(marker.ActionStabilize) || annotation(n, marker.KeyCurrentVersion) != w.newest {
			return n.Name + " is still out of service"
		}
	}
	if pods := w.server.Pods(plansNamespace); len(pods) > 0 {
		return "pod " + pods[0].Name + " of a plan is still there"
	}
	if cm := w.server.ConfigMap(namespace, kube.StateConfigMap); cm != nil && cm.Data["slots"] != "{}" {
		for _, m := range w.machines {
			if m.gone && m.node() != nil {
				return ""
			}
		}
		return "slots are held: " + cm.Data["slots"]
	}
	return ""
}

// atTheEnd: all cordons of users stand as before (S5), and no other; nothing waits without a reason (S9).
func (w *world) atTheEnd() {
	w.checks.count("L1")
	w.checks.count("L2")
	w.checks.count("S5")
	for _, n := range w.server.Nodes() {
		k := w.checks.of(n)
		m := w.cluster.machineOf(n.Name)
		if m == nil || m.gone || k.blurred || w.checks.tampered[string(n.UID)] {
			continue
		}
		if n.Spec.Unschedulable && !k.theirs {
			w.violate("S5", "%s ends cordoned, and no user cordoned it", n.Name)
		}
		if !n.Spec.Unschedulable && k.theirs {
			w.violate("S5", "%s ends uncordoned, and a user had cordoned it", n.Name)
		}
	}
	w.checks.explained(planner.Plan(w.snapshot(), w.stands()))
}

func (w *world) result() Result {
	r := Result{Scenario: w.scenario, Violation: w.checks.violation, Struck: w.struck, Checked: w.checks.counted, Steps: w.steps,
		Nodes: len(w.machines), Held: w.checks.held, Reasons: w.checks.reasons, Took: w.now.Sub(w.begun()), trace: w.trace}
	for _, m := range w.machines {
		if m.up && (m.host.Snapshot().Version == w.newest || m.isPlanned && w.planUnsettled(m, m.node()) == "") {
			r.Updated++
		}
	}
	for _, p := range w.processes {
		if !p.dead {
			p.dead = true
			p.reap()
		}
	}
	return r
}
