package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// machine is one host with its kubelet and the operator's agent on it.
type machine struct {
	w    *world
	name string
	// nodeName is what its kubelet registers as.
	nodeName string
	host     *hostsim.Host
	up       bool
	// gone: it never comes back.
	gone bool
	// slow is how much longer the next boot takes.
	slow time.Duration
	// unwell: its kubelet says that it is not Ready.
	unwell bool
	// labelled: users want it in the operator's care. labels are those that a policy chooses nodes by.
	labelled bool
	labels   map[string]string
	// boots counts its boots, for what is due only in the same boot; tried are the versions that it ever booted, or tried
	// to.
	boots int
	tried map[string]bool

	agent agentProcess
	// asked is the intent for which a reboot was asked for last, askedOn the UID of its Node.
	asked, askedOn string
	// rebooted counts the reboots that each intent caused.
	rebooted map[string]int
	// unwritten is how writes to its Node go.
	unwritten unwritten
	// sawReady: at its last look the agent saw that another set boots next.
	sawReady bool
	// unregistered: its kubelet makes no Node.
	unregistered bool
	// injected counts the faults that its host was given, left is what is left of them.
	injected int
	left     map[hostsim.FaultID]remaining
	// theirLock is what others have set its host's version-lock to last, and ourLock: the operator has set another since.
	theirLock string
	ourLock   bool
	// sharedLock is one that others set as the operator was about to set the same: it may stay, or go with the operator's.
	sharedLock string
	// isPlanned: its node is one of plans, and no host with an Update API.
	isPlanned bool
	planned
}

func (w *world) newMachine(i int) *machine {
	m := &machine{w: w, name: fmt.Sprintf("machine-%d", i), nodeName: fmt.Sprintf("node-%d", i), labelled: true, theirLock: marker.LockLatest, rebooted: map[string]int{}, tried: map[string]bool{}, labels: w.scenario.labels(i), isPlanned: w.scenario.planned(i)}
	if m.isPlanned {
		m.planned = planned{kubeletVersion: firstKubelet, has: map[string]string{}, runs: map[string]*planRun{}, ran: map[string]int{}, tested: map[string]bool{}}
	}
	prepare := 4 * time.Second
	if w.chance(6) {
		// Long enough for an agent to look less often.
		prepare = 30 * time.Second
	}
	var err error
	m.host, err = hostsim.New(hostsim.Config{
		Name: m.name, Version: firstVersion, Repo: w.repo, Now: func() time.Time { return w.now },
		Settings: hostsim.Settings{Seed: uint32(i * 100)},
		Latencies: hostsim.Latencies{
			Refresh: w.between(50*time.Millisecond, time.Second), Prepare: w.between(500*time.Millisecond, prepare),
			Activate: w.between(50*time.Millisecond, 500*time.Millisecond), Deactivate: w.between(50*time.Millisecond, 500*time.Millisecond),
			Settings: w.scenario.renders(i),
		},
		OnReboot: func() { w.after(0, m.rebootAsked) },
	})
	if err != nil {
		panic(err)
	}
	m.agent.m = m
	w.machines = append(w.machines, m)
	return m
}

const (
	firstVersion = "1.50.0"
	variant      = "aws-k8s-1.31"
	arch         = "x86_64"
)

// rebootAsked is the machine going down because its host API was asked to.
func (m *machine) rebootAsked() {
	if !m.up {
		return
	}
	m.w.checks.reboot(m)
	m.rebooted[m.asked]++
	m.w.note(m.name, "goes down as it was asked to")
	m.cycle()
}

// cycle takes the machine down and, unless it is gone for good, brings it back.
func (m *machine) cycle() {
	if !m.up {
		return
	}
	m.down()
	if m.gone {
		return
	}
	takes := m.w.between(5*time.Second, 45*time.Second) + m.slow
	m.slow = 0
	boots := m.boots
	m.w.after(takes, func() {
		if m.boots == boots {
			m.boot()
		}
	})
}

func (m *machine) down() {
	w := m.w
	m.up = false
	m.host.PowerOff()
	m.agent.kill()
	m.losesPods()
	for _, r := range w.runnersOn(m) {
		if r.process != nil {
			r.process.kill()
		}
	}
	for _, c := range w.controllers {
		if c.home == m && c.process != nil && !c.process.dead {
			c.process.kill()
			c.leading, c.term = false, nil
		}
	}
	boots := m.boots
	// The node lifecycle controller gives a silent kubelet 40 s.
	w.after(40*time.Second+w.between(0, 10*time.Second), func() {
		if m.boots == boots && !m.up {
			w.cluster.setReady(m.nodeName, corev1.ConditionUnknown)
			w.cluster.podsUnready(m.nodeName)
			w.after(5*time.Minute, func() {
				if m.boots == boots && !m.up {
					w.cluster.podsGivenUp(m.nodeName)
				}
			})
		}
	})
}

func (m *machine) boot() {
	w := m.w
	if m.up || m.gone {
		return
	}
	m.boots++
	s := m.host.Snapshot()
	m.tried[s.Sets[s.Next].Version] = true
	m.host.Boot()
	m.up = true
	if m.isPlanned {
		m.bootsPlanned()
	}
	w.note(m.name, "booted %s", m.host.Snapshot().Version)
	w.after(w.between(500*time.Millisecond, 10*time.Second), m.inBoot(m.kubelet))
	w.after(w.between(2*time.Second, 20*time.Second), m.inBoot(m.agent.podStarts))
	for _, c := range w.controllers {
		if c.home == m {
			w.after(w.between(2*time.Second, 20*time.Second), c.start)
		}
	}
	for _, r := range w.runnersOn(m) {
		w.after(w.between(2*time.Second, 20*time.Second), r.start)
	}
}

// inBoot is do, unless the machine went down in between.
func (m *machine) inBoot(do func()) func() {
	boots := m.boots
	return func() {
		if m.up && m.boots == boots {
			do()
		}
	}
}

// kubelet registers the Node if it isn't there, and speaks for it.
func (m *machine) kubelet() {
	w := m.w
	w.cluster.register(m)
	// The first word after a boot comes before the container runtime is up, or after it.
	w.cluster.kubeletReports(m, w.chance(2))
	w.after(w.between(time.Second, 8*time.Second), m.inBoot(func() {
		w.cluster.kubeletReports(m, true)
		w.cluster.podsStart(m.nodeName)
		m.syncPlanPods()
	}))
	w.after(5*time.Minute, m.inBoot(m.heartbeat))
}

func (m *machine) heartbeat() {
	m.w.cluster.kubeletReports(m, true)
	m.w.after(5*time.Minute, m.inBoot(m.heartbeat))
}

func (m *machine) node() *corev1.Node { return m.w.server.Node(m.nodeName) }

// interfaceLabel is the label value that puts the machine's node into the operator's care.
func (m *machine) interfaceLabel() string {
	if m.isPlanned {
		return "plan"
	}
	return "2.0.0"
}
