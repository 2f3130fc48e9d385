package sim

import (
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// people is the actor for all users: it is neither Kubernetes nor the operator.
const people = "people"

// lasts is how long the faults of a host last at most, on its own clock.
func (f Fault) lasts() time.Duration { return f.For + 30*time.Second }

// hit is one fault as it happens: on a machine, or a controller, until some moment.
type hit struct {
	Fault
	w   *world
	m   *machine
	c   *controllerProcess
	end time.Time
}

// strikes are what faults do, by their kinds. What users do, and what is wrong with a host, is elsewhere.
var strikes = map[Kind]func(hit){
	CrashController: hit.crashController, FreezeController: hit.freezeLeader, CrashAgent: hit.crashAgent,
	FreezeAgent: func(h hit) { h.w.freeze(h.m.agent.process, h.Fault, 3) },

	ProxyDown: hit.proxyDown, APIServerDown: func(h hit) { h.w.apiDown = maxTime(h.w.apiDown, h.w.now.Add(h.For/4)) },
	LostRequest: hit.disturbNetwork, LostAnswer: hit.disturbNetwork, SlowRequest: hit.disturbNetwork, SlowAnswer: hit.disturbNetwork, Throttled: hit.disturbNetwork,
	WatchLag: hit.disturbWatches, WatchRepeat: hit.disturbWatches, WatchRestart: hit.disturbWatches, Compaction: hit.disturbWatches,
	StaleList: hit.restartController,

	ControllerClock: hit.controllerClock, ProxyClock: hit.proxyClock, AgentClock: hit.agentClock,

	PowerCut: hit.powerCut, SlowBoot: hit.slowBoot, NeverReturns: hit.neverReturns,
	NodeFlaps: func(h hit) { h.w.unwell(h.m, h.Fault) }, NodeUnwell: func(h hit) { h.w.unwell(h.m, h.Fault) },
	NodeDeleted: func(h hit) { h.w.deleteNode(h.m, h.Fault) }, NodeRenamed: func(h hit) { h.w.deleteNode(h.m, h.Fault) },
	AgentPodReplaced: hit.replaceAgentPod, AutoscalerTakes: func(h hit) { h.w.takenAway(h.m, h.Fault) },

	FrozenBudget: hit.freezeBudget, StuckPod: hit.stickPod, SlowDetach: hit.slowDetach, BrokenApp: hit.breakApp,
	LateBinding:   func(h hit) { h.w.cluster.late = maxTime(h.w.cluster.late, h.end.Add(time.Minute)) },
	WritesRefused: hit.disturbWrites, WritesSlow: hit.disturbWrites,

	NewRelease: func(h hit) { h.strike(); h.w.release() }, BadRelease: func(h hit) { h.strike(); h.w.badRelease() },
	Withdrawn: hit.withdraw, PolicyChanged: hit.changePolicy,

	CrashRunner: hit.crashRunner, FreezeRunner: hit.freezeRunner, KubeletDies: hit.kubeletDies, PlanPodRefused: hit.refusePlanPods,
	PlanPodHangs: hit.podFault, PlanPodFails: hit.podFault, PlanPodNoEffect: hit.podFault, PlanPodEvicted: hit.podFault, PlanPodRejected: hit.podFault,
	ImageNotPulled: hit.podFault, RebootInPod: hit.podFault, PersonDeletesPlanPod: hit.deletePlanPod, PersonChangesTemplate: hit.changeTemplate,

	PersonAsksCycle: hit.askCycle, PersonTakesCycleBack: hit.takeCycleBack, PersonLocks: hit.locks, MachineJoins: hit.join, PersonTaints: hit.taint, PersonUntaints: hit.untaint,
	ForeignUpdate: func(h hit) { h.strike(); h.w.release(); h.m.foreignUpdate(2 * time.Minute) },
}

// apply lets the fault happen now.
func (w *world) apply(f Fault) {
	h := hit{f, w, w.machines[f.On%len(w.machines)], w.controllers[f.On%len(w.controllers)], w.now.Add(f.For)}
	w.note("fault", "%s on=%d for=%s n=%d %s", f.Kind, f.On, f.For, f.N, f.When)
	switch strike := strikes[f.Kind]; {
	case strike != nil:
		strike(h)
	case strings.HasPrefix(string(f.Kind), "person-"):
		w.person(h.m, f)
	default:
		w.hostFault(h.m, f)
	}
}

// strike counts the fault as one that had an effect.
func (h hit) strike() { h.w.strike(h.Kind) }

func (h hit) crashController() {
	if h.c.process.runs() {
		h.strike()
		h.c.crash(h.For + time.Second)
	}
}

// restartController starts a process that finds an API server whose cache lags.
func (h hit) restartController() {
	if h.c.process.runs() {
		h.c.crash(time.Second)
	}
}

// freezeLeader stops the leader, if there is one: one that wakes after its lease has gone to another.
func (h hit) freezeLeader() {
	c := h.c
	for _, other := range h.w.controllers {
		if other.leading {
			c = other
		}
	}
	h.w.freeze(c.process, h.Fault, 5)
}

func (h hit) crashAgent() {
	if a := &h.m.agent; a.process.runs() {
		h.strike()
		a.crash()
	}
}

func (h hit) proxyDown() {
	h.w.proxyDown = maxTime(h.w.proxyDown, h.end)
	h.w.deafen()
}

func (h hit) disturbNetwork() {
	for _, p := range h.w.some(h.Fault) {
		p.net.disturb(h.Kind, h.end.Add(time.Minute), 1+h.N%6)
	}
}

func (h hit) disturbWatches() { h.w.disturbWatches(h.Fault, h.end) }

func (h hit) disturbWrites() { h.m.unwritten = unwritten{h.Kind, h.end} }

func (h hit) controllerClock() {
	h.strike()
	for _, c := range h.w.controllers {
		c.jumped, c.jumpedAt = true, h.w.now
		if c.process != nil {
			c.process.clock += h.jump()
		}
		if h.N%2 == 0 {
			break
		}
	}
}

func (h hit) proxyClock() {
	h.strike()
	h.w.proxyClock = h.jump()
}

// agentClock has the agent's wall clock be off from its next start on.
func (h hit) agentClock() {
	h.m.agent.offset = h.jump()
	h.crashAgent()
}

func (h hit) powerCut() {
	if h.m.up {
		h.strike()
		h.m.cycle()
	}
}

func (h hit) slowBoot() {
	h.strike()
	h.m.slow = 4 * h.For
}

func (h hit) neverReturns() {
	if !h.m.up || h.w.cluster.hasGone() {
		return
	}
	h.strike()
	h.m.gone = true
	if h.N%2 == 0 {
		h.m.cycle()
	}
}

func (h hit) replaceAgentPod() {
	if p := h.w.server.Pod(namespace, h.m.agent.pod); p != nil {
		h.strike()
		h.m.agent.podRemoved()
		h.w.restore(time.Second+h.For/4, h.m.agent.podScheduled)
	}
}

func (h hit) freezeBudget() {
	for _, a := range h.w.cluster.apps {
		if !a.budget {
			continue
		}
		h.strike()
		a.frozen, a.stubborn = true, h.N%3 == 2
		h.w.cluster.changed()
		if !a.stubborn {
			h.w.restore(2*h.For, func() { a.frozen = a.stubborn; h.w.cluster.changed() })
		}
		return
	}
}

func (h hit) stickPod() {
	for _, p := range h.w.server.PodsOn(h.m.nodeName) {
		if evictable(p) {
			h.strike()
			uid, name := string(p.UID), p.Name
			h.w.cluster.stuck[uid] = true
			h.w.restore(2*h.For, func() { h.w.cluster.unstick(uid, name) })
			return
		}
	}
}

func (h hit) slowDetach() {
	h.strike()
	k, w := h.w.cluster, h.w
	k.detaching = maxTime(k.detaching, h.end)
	w.restore(h.For, func() { k.detaching = minTime(k.detaching, w.now) })
}

func (h hit) breakApp() {
	a := h.w.cluster.apps[h.N%len(h.w.cluster.apps)]
	h.strike()
	h.w.cluster.breaks(a)
	h.w.restore(2*h.For, func() { h.w.cluster.mends(a) })
}

func (h hit) withdraw() {
	h.strike()
	version := h.w.newest
	h.w.repo.Withdraw(variant, arch, version)
	h.w.restore(2*h.For, func() { h.w.publish(version, nil) })
}

// changePolicy restarts the controllers one after the other with other settings.
func (h hit) changePolicy() {
	h.strike()
	w := h.w
	w.settings.MaxUnavailable = policy.Count(1 + h.N%3)
	w.settings.MaxLost = policy.Count(h.N % 2)
	w.settings.Soak = time.Duration(1+h.N) * 5 * time.Second
	for i, c := range w.controllers {
		w.after(time.Duration(i)*20*time.Second, func() {
			if c.process.runs() {
				c.crash(time.Second)
			}
		})
	}
}
