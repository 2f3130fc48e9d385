package policy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// machine is one host of the model with its kubelet, its agent and its Node object.
type machine struct {
	w    *world
	name string

	// The Node.
	uid           string
	rv            int
	annotations   map[string]string
	labelled      bool
	unschedulable bool
	ready         bool
	readySince    int
	nodeBoot      string
	nodeVersion   string
	// read are the marks as they were read at readAt.
	read   marker.Marks
	readAt int
	// othersCordon: the cordon that stands is not ours.
	othersCordon bool
	pods         int
	// blocked: no pod may be evicted until then.
	blocked time.Time
	// adrift: our marks went away while the host had, or was about to have, something activated.
	adrift bool

	// The host.
	boots          int
	version        string
	state          intent.HostState
	chosen, staged string
	last           intent.LastCommand
	records        int
	running        intent.Command
	runsUntil      time.Time
	goesDown       time.Time
	goesDownFor    string
	downUntil      time.Time
	dead           bool
	notReadyUntil  time.Time

	// What goes wrong the next times.
	failPrepare, failActivate, ignoreReboot, rollBack, neverBack int

	// The agent.
	agentDown time.Time
	seen      map[string]string
	seenRV    int
	view      intent.View
}

func (m *machine) down() bool     { return m.dead || m.w.now.Before(m.downUntil) }
func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.name, m.boots) }

func (m *machine) marks() marker.Marks {
	if m.readAt == m.rv {
		return m.read
	}
	var problems []marker.Problem
	if m.read, problems = marker.Decode(m.annotations); len(problems) > 0 {
		m.w.fail("%s: the marks that we wrote can't be read: %v", m.name, problems)
	}
	m.readAt = m.rv
	return m.read
}

// written bumps the resourceVersion.
func (m *machine) written() { m.w.revision++; m.rv = m.w.revision }

// host lets time pass on the machine and its kubelet.
func (m *machine) host(r *rand.Rand) {
	now := m.w.now
	if !m.goesDown.IsZero() && !now.Before(m.goesDown) {
		m.shutDown(r)
	}
	if m.dead {
		if m.ready {
			m.setReady(false)
		}
		return
	}
	if !m.downUntil.IsZero() && !now.Before(m.downUntil) {
		m.downUntil = time.Time{}
		m.boot(r)
	}
	if m.down() {
		// Ready stays stale through a quick reboot, now and then.
		if m.ready && r.IntN(3) == 0 {
			m.setReady(false)
		}
		return
	}
	if m.running != "" && !now.Before(m.runsUntil) {
		m.finish()
	}
	well := !now.Before(m.notReadyUntil)
	if m.nodeBoot != m.bootID() || m.nodeVersion != m.version {
		m.nodeBoot, m.nodeVersion = m.bootID(), m.version
		m.setReady(well)
	} else if m.ready != well {
		m.setReady(well)
	}
	// A node that takes pods gets some.
	if !m.unschedulable && m.ready && m.pods < 2 {
		m.pods++
	}
}

func (m *machine) setReady(ready bool) {
	m.ready = ready
	m.readySince++
	m.written()
}

// shutDown is where S2 and S3 hold or don't.
func (m *machine) shutDown(r *rand.Rand) {
	id := m.goesDownFor
	m.goesDown, m.goesDownFor = time.Time{}, ""
	m.running = ""
	if id != "" {
		m.w.reboots[id]++
		if m.w.reboots[id] > 1 {
			m.w.fail("S3: %s rebooted %d times for intent %s", m.name, m.w.reboots[id], id)
		}
		if !m.w.exempt[id] && (!m.unschedulable || m.pods > 0) {
			m.w.fail("S2: %s reboots for intent %s: cordoned %v, %d pods", m.name, id, m.unschedulable, m.pods)
		}
	}
	if m.neverBack > 0 {
		m.neverBack--
		m.dead = true
		return
	}
	m.downUntil = m.w.now.Add(time.Duration(5+r.IntN(120)) * time.Second)
}

func (m *machine) boot(r *rand.Rand) {
	m.boots++
	if m.state == intent.HostReady {
		if m.rollBack > 0 {
			m.rollBack--
		} else {
			m.version = m.staged
		}
	}
	m.state, m.chosen, m.staged, m.last, m.running = intent.HostUninitialized, "", "", intent.LastCommand{}, ""
	m.forget()
	m.agentDown = m.w.now.Add(time.Duration(r.IntN(40)) * time.Second)
}

// finish ends the command that runs.
func (m *machine) finish() {
	c := m.running
	m.running = ""
	m.records++
	m.last = intent.LastCommand{Command: c, Success: true, Timestamp: fmt.Sprint(m.records)}
	failed := func(left *int) bool {
		if *left == 0 {
			return false
		}
		*left--
		m.last.Success, m.last.Problem = false, "it failed"
		return true
	}
	switch c {
	case intent.CommandRefresh:
		m.chosen = ""
		if marker.CompareVersions(m.w.release, m.version) > 0 {
			m.chosen = m.w.release
		}
		if m.state != intent.HostStaged && m.state != intent.HostReady {
			m.state = intent.HostIdle
			if m.chosen != "" {
				m.state = intent.HostAvailable
			}
		}
	case intent.CommandPrepare:
		if !failed(&m.failPrepare) {
			m.state, m.staged, m.last.Started = intent.HostStaged, m.chosen, m.chosen
		}
	case intent.CommandActivate:
		if !failed(&m.failActivate) {
			m.state = intent.HostReady
		}
	case intent.CommandDeactivate:
		m.state = intent.HostStaged
	}
}

func (m *machine) observe() intent.Host {
	h := intent.Host{BootID: m.bootID(), Version: m.version}
	if m.running != "" {
		h.Locked = true
		return h
	}
	h.State, h.Staged, h.Last = m.state, m.staged, m.last
	h.ChosenKnown = m.last.Command == intent.CommandRefresh && m.last.Success && m.state != intent.HostIdle
	if h.ChosenKnown {
		h.Chosen = m.chosen
	}
	return h
}

// start is the host's answer to a command.
func (m *machine) start(r *rand.Rand, c intent.Command) {
	a := intent.Asked{Command: c, ID: m.view.Intent.ID, At: m.w.now, Before: m.view.Host.Last.Timestamp}
	allowed, takes := true, 2
	switch c {
	case intent.CommandRefresh:
		m.view.RefreshTried = m.w.now
	case intent.CommandPrepare:
		allowed = m.chosen != "" && (m.state == intent.HostAvailable || m.state == intent.HostStaged)
		takes = 20 + r.IntN(200)
	case intent.CommandActivate:
		allowed = m.state == intent.HostStaged
	case intent.CommandDeactivate:
		allowed = m.state == intent.HostReady
	case intent.CommandReboot:
		m.view.Asked = a
		if m.ignoreReboot > 0 {
			m.ignoreReboot--
		} else if m.goesDown.IsZero() {
			m.goesDown, m.goesDownFor = m.w.now.Add(time.Duration(1+r.IntN(300))*time.Second), a.ID
		}
		return
	}
	if !allowed {
		a.Refused, a.Unchanged = "not now", 1<<20
		m.view.Asked = a
		return
	}
	m.running, m.runsUntil = c, m.w.now.Add(time.Duration(takes)*time.Second)
	m.view.Asked = a
}

// forget is a new agent process.
func (m *machine) forget() {
	m.view = intent.View{Started: m.w.now, RefreshEvery: 30 * time.Minute}
	m.seenRV = 0
}

func (m *machine) agentUp() bool {
	return m.labelled && !m.down() && !m.w.now.Before(m.agentDown)
}

// agent takes one step and tells if there may be another right away.
func (m *machine) agent(r *rand.Rand) bool {
	if !m.agentUp() {
		return false
	}
	if m.seenRV == 0 || r.IntN(4) > 0 {
		m.seen, m.seenRV = maps.Clone(m.annotations), m.rv
	}
	v := &m.view
	v.Now, v.Host = m.w.now, m.observe()
	v.Intent, _ = marker.DecodeIntent(m.seen)
	v.Report, _ = marker.DecodeReport(m.seen)
	switch {
	case !v.Host.Locked:
		v.LockedSince = time.Time{}
		if v.Host.Last.Timestamp == v.Asked.Before {
			v.Asked.Unchanged++
		}
	case v.LockedSince.IsZero():
		v.LockedSince = v.Now
	}
	step := intent.Next(*v)
	report := intent.FactsOf(v.Report, v.Host, "model")
	switch step.Kind {
	case intent.StepCommand:
		m.start(r, step.Command)
		return true
	case intent.StepReport:
		report.ActiveID, report.State, report.Message = v.Intent.ID, step.State, step.Message
		if !m.report(report) {
			return false
		}
		if step.State == marker.StateBusy {
			v.Affirmed = v.Intent.ID
		}
		return true
	}
	m.report(report)
	return false
}

// report is the proxy: a write from an old look is refused, and so is busy where it may not begin.
func (m *machine) report(r marker.Report) bool {
	stands := m.marks()
	fresh := m.seenRV == m.rv
	m.seen, m.seenRV = maps.Clone(m.annotations), m.rv
	if !fresh {
		return false
	}
	if r.State == marker.StateBusy && r.ActiveID == stands.Intent.ID && m.view.Affirmed != r.ActiveID {
		before := stands.Report.Answer(r.ActiveID)
		reboot := stands.Intent.Action == marker.ActionRebootUpdate
		if before == marker.StateError || before == marker.StateReady || stands.Paused || !m.w.clock().Before(stands.Intent.Until) || reboot && !m.unschedulable {
			return false
		}
	}
	m.apply(marker.Diff(m.annotations, marker.EncodeReport(r), marker.WriterAgent))
	m.seen, m.seenRV = maps.Clone(m.annotations), m.rv
	return true
}

func (m *machine) apply(diff map[marker.Key]*string) {
	for k, v := range diff {
		if v == nil {
			delete(m.annotations, string(k))
		} else {
			m.annotations[string(k)] = *v
		}
	}
	if len(diff) > 0 {
		m.written()
		m.w.writes++
	}
}
