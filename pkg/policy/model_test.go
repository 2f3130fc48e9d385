package policy_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// world is a fleet in plain values: hosts, agents that step by intent.Next, and a controller that carries
// out what policy.Plan says. Nothing in it sleeps or reads a clock.
type world struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	set  policy.Settings

	now      time.Time
	offset   time.Duration
	release  string
	revision int
	writes   int
	machines []*machine
	slots    map[string]string
	uids     int

	// What a controller process remembers.
	passed map[string]string
	drains map[string]*fleet.Drain

	reboots map[string]int
	// exempt are intents whose cordon a human, or a clock that jumped, took away after the point of no return.
	exempt map[string]bool
	log    []string
	failed bool
}

func (w *world) clock() time.Time { return w.now.Add(w.offset) }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("02 15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.failed {
		return
	}
	w.failed = true
	for _, l := range w.log[max(0, len(w.log)-60):] {
		w.t.Log(l)
	}
	w.t.Errorf("seed %d at %s: %s", w.seed, w.now.Format("15:04:05"), fmt.Sprintf(format, args...))
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC),
		release: "1.1.0", slots: map[string]string{}, reboots: map[string]int{}, exempt: map[string]bool{}}
	w.set = policy.DefaultSettings()
	w.set.RetryMax = time.Hour
	w.set.MaxUnavailable = 1 + w.r.IntN(3)
	w.set.MaxStaging = 1 + w.r.IntN(4)
	w.set.MaxLost = w.r.IntN(3)
	w.set.Soak = time.Duration(w.r.IntN(10)) * time.Minute
	for i := range 2 + w.r.IntN(5) {
		m := &machine{w: w, name: fmt.Sprintf("n%d", i), annotations: map[string]string{}, labelled: true, version: "1.1.0", boots: 1, pods: 2}
		m.forget()
		w.register(m)
		w.machines = append(w.machines, m)
	}
	w.restart()
	return w
}

// register makes a new Node object for a host.
func (w *world) register(m *machine) {
	w.uids++
	m.uid = fmt.Sprintf("uid-%d", w.uids)
	clear(m.annotations)
	m.unschedulable, m.othersCordon = false, false
	m.written()
}

// restart is a new controller process.
func (w *world) restart() { w.passed, w.drains = map[string]string{}, map[string]*fleet.Drain{} }

func (w *world) snapshot() fleet.Snapshot {
	s := fleet.Snapshot{Now: w.clock(), Slots: maps.Clone(w.slots)}
	for i, m := range w.machines {
		n := fleet.Node{Name: m.name, UID: m.uid, ResourceVersion: fmt.Sprint(m.rv), Unschedulable: m.unschedulable, Ready: m.ready,
			ReadySince: fmt.Sprint(m.readySince), BootID: m.nodeBoot, OSVersion: m.nodeVersion, ControllerHere: i == 0,
			AgentPod: m.labelled, AgentReady: m.agentUp()}
		if m.labelled {
			n.Interface = fleet.InterfaceUpdateAPI
		}
		n.Marks = m.marks()
		n.PassedOver = w.passed[m.uid] == string(n.Phase())+n.Marks.Intent.ID
		if d := n.Marks.Disruption; d != nil {
			n.Drain = w.drains[m.uid+d.Since.String()]
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// pass is one pass of the controller. between runs after the plan was made and before it is carried
// out; die tells, before each write, if the process dies there.
func (w *world) pass(between func(), die func() bool) (wrote bool) {
	s := w.snapshot()
	out := policy.Plan(s, w.set)
	w.explained(s, out)
	w.passed = map[string]string{}
	for _, n := range s.Nodes {
		w.passed[n.UID] = string(n.Phase()) + n.Marks.Intent.ID
	}
	between()
	for _, step := range out.Steps {
		if step.TakesSlot {
			w.slots[step.UID] = step.Node
		}
	}
	var free []string
	for _, step := range out.Steps {
		if die() {
			w.note("the controller dies")
			w.restart()
			return true
		}
		done, change := w.carryOut(step, out)
		wrote = wrote || change
		if done && step.FreesSlot {
			free = append(free, step.UID)
		}
	}
	if die() {
		w.restart()
		return true
	}
	for _, uid := range free {
		delete(w.slots, uid)
	}
	return wrote
}

func (w *world) carryOut(step policy.Step, out policy.Outcome) (done, wrote bool) {
	at := slices.IndexFunc(w.machines, func(m *machine) bool { return m.uid == step.UID })
	if step.Act == intent.ActRelease {
		return at < 0, false
	}
	if at < 0 {
		return false, false
	}
	m := w.machines[at]
	marks := m.marks()
	if step.Act == intent.ActDrain {
		if marks.Disruption == nil {
			return false, false
		}
		found := &fleet.Drain{Waiting: "a pod is shutting down", Next: w.clock().Add(time.Second)}
		switch {
		case w.now.Before(m.blocked):
			found.Blocked = "a pod may not be evicted"
		case w.r.IntN(10) == 0:
			found.Failed = "no answer"
		case m.pods > 0 && w.r.IntN(3) > 0 && !m.down():
			m.pods--
		}
		found.Remaining = m.pods
		w.drains[m.uid+marks.Disruption.Since.String()] = found
		return false, false
	}
	if step.Reason == policy.ReasonDrained && m.pods > 0 || step.Change.ResourceVersion != fmt.Sprint(m.rv) {
		return false, false
	}
	w.note("%s %s %s: %s", m.name, step.Act, step.Reason, step.Message)
	w.check(m, marks, step, out)
	diff := map[marker.Key]*string{}
	maps.Copy(diff, marker.Diff(m.annotations, marker.Encode(step.Change.Marks), marker.WriterController))
	if step.Change.RemoveAll {
		clear(diff)
		m.adrift = m.adrift || marks.Intent.Action == marker.ActionRebootUpdate || m.state == intent.HostReady
		for k := range m.annotations {
			if !marker.Owns(marker.WriterUser, k) {
				diff[marker.Key(k)] = nil
			}
		}
	}
	if step.Change.DropRetry {
		diff[marker.KeyRetry] = nil
	}
	if step.Change.Unschedulable != nil {
		m.unschedulable = *step.Change.Unschedulable
		if len(diff) == 0 {
			w.fail("%s: a cordon changes without a record", m.name)
		}
	}
	m.apply(diff)
	return true, len(diff) > 0
}

// check holds the promises about one write.
func (w *world) check(m *machine, marks marker.Marks, step policy.Step, out policy.Outcome) {
	if u := step.Change.Unschedulable; u != nil && !*u && m.othersCordon {
		w.fail("S5: %s: %s takes away a cordon that isn't ours", m.name, step.Act)
	}
	switch step.Act {
	case intent.ActCordon:
		held := maps.Clone(w.slots)
		for _, o := range w.machines {
			if o.marks().Disruption != nil {
				held[o.uid] = o.name
			}
		}
		if len(held)-out.Lent > w.set.MaxUnavailable || out.Lent > w.set.MaxLost {
			w.fail("S1: %s is cordoned as number %d (%d of them Lost), limit %d", m.name, len(held), out.Lent, w.set.MaxUnavailable)
		}
		if !m.labelled || marks.Paused {
			w.fail("S6: %s is cordoned though it is paused or not ours", m.name)
		}
	case intent.ActReboot:
		if !m.unschedulable && step.Reason == policy.ReasonDrained {
			w.fail("S2: %s is asked to reboot while it isn't cordoned", m.name)
		}
	case intent.ActFinish:
		if step.Reason == policy.ReasonUpdated && (m.nodeVersion != marks.Intent.Target || m.version != marks.Intent.Target && !m.down()) {
			w.fail("S7: %s is said to be updated to %s and runs %s", m.name, marks.Intent.Target, m.version)
		}
	case intent.ActLeave:
		if m.labelled {
			w.fail("%s: left although it is labelled", m.name)
		}
	}
}

// explained holds S9, and that a plan is a plan.
func (w *world) explained(s fleet.Snapshot, out policy.Outcome) {
	stands := map[string]policy.Standing{}
	for _, n := range out.Nodes {
		if _, twice := stands[n.Node]; twice {
			w.fail("%s stands in the plan twice", n.Node)
		}
		stands[n.Node] = n
		if !slices.Contains(policy.Reasons(), n.Reason) || n.Message == "" {
			w.fail("S9: %s has reason %q and message %q", n.Node, n.Reason, n.Message)
		}
	}
	lost := 0
	for _, n := range s.Nodes {
		if _, ok := stands[n.Name]; s.Managed(n) && !ok {
			w.fail("S9: %s is managed and not in the plan", n.Name)
		}
		if stands[n.Name].Phase == intent.PhaseLost {
			lost++
		}
	}
	for _, step := range out.Steps {
		if step.Change == nil && step.Act != intent.ActDrain && step.Act != intent.ActRelease {
			w.fail("%s of %s changes nothing", step.Act, step.Node)
		}
	}
	if w.r.IntN(20) > 0 {
		return
	}
	if again := policy.Plan(s, w.set); again.String() != out.String() || len(again.Steps) != len(out.Steps) {
		w.fail("two plans of one snapshot differ")
	}
}

func (w *world) all(f func(*machine)) {
	for _, i := range w.r.Perm(len(w.machines)) {
		f(w.machines[i])
	}
}

func (w *world) hostsAndAgents(m *machine) {
	m.host(w.r)
	for range 6 {
		if !m.agent(w.r) {
			break
		}
	}
}

// fault lets something go wrong, or a human do something.
func (w *world) fault() {
	m := w.machines[w.r.IntN(len(w.machines))]
	if busy := slices.DeleteFunc(slices.Clone(w.machines), func(m *machine) bool { return m.marks().Disruption == nil }); len(busy) > 0 && w.r.IntN(3) > 0 {
		m = busy[w.r.IntN(len(busy))]
	}
	marks := m.marks()
	ours := marks.Disruption != nil && marks.Disruption.Soak == nil
	kinds := []string{"prepare", "activate", "ignored", "rollback", "never back", "cordon", "uncordon", "pause", "unpause", "unlabel", "label",
		"agent", "crash", "reboot", "unwell", "retry", "recreate", "clock", "controller", "release", "release", "release", "blocked", "ignored", "unwell", "cordon"}
	kind := kinds[w.r.IntN(len(kinds))]
	switch kind {
	case "prepare":
		m.failPrepare = 1
	case "activate":
		m.failActivate = 1
	case "ignored":
		m.ignoreReboot = 1
	case "rollback":
		m.rollBack = 1
	case "never back":
		m.neverBack = 1
	case "cordon":
		// A cordon upon ours, or again where ours was taken away, can't be told from ours.
		if m.unschedulable || ours {
			return
		}
		m.unschedulable, m.othersCordon = true, true
		m.written()
	case "uncordon":
		if !m.unschedulable {
			return
		}
		m.unschedulable, m.othersCordon = false, false
		w.exempt[marks.Intent.ID] = true
		m.written()
	case "blocked":
		m.blocked = w.now.Add(time.Duration(w.r.IntN(3600)) * time.Second)
	case "pause":
		m.annotations[string(marker.KeyPaused)] = "a human"
		m.written()
	case "unpause":
		delete(m.annotations, string(marker.KeyPaused))
		m.written()
	case "unlabel":
		m.labelled = false
		m.forget()
		m.written()
	case "label":
		m.labelled = true
		m.written()
	case "agent":
		m.forget()
		m.agentDown = w.now.Add(time.Duration(w.r.IntN(600)) * time.Second)
	case "crash":
		m.forget()
	case "reboot":
		if m.goesDown.IsZero() && !m.down() {
			m.goesDown = w.now
		}
	case "unwell":
		m.notReadyUntil = w.now.Add(time.Duration(w.r.IntN(1500)) * time.Second)
	case "retry":
		m.annotations[string(marker.KeyRetry)] = ""
		m.written()
	case "recreate":
		w.exempt[marks.Intent.ID] = true
		m.adrift = m.adrift || marks.Intent.Action == marker.ActionRebootUpdate || m.state == intent.HostReady
		w.register(m)
	case "clock":
		w.offset = time.Duration(w.r.IntN(5)-2) * time.Hour
		for _, o := range w.machines {
			w.exempt[o.marks().Intent.ID] = true
		}
	case "controller":
		w.restart()
	case "release":
		w.release = fmt.Sprintf("1.%d.0", 1+w.r.IntN(9))
	}
	w.note("fault: %s %s", m.name, kind)
}

func (w *world) never() bool { return false }
func nothing()               {}

// trouble is the time of faults.
func (w *world) trouble(rounds int) {
	rate := 2 + w.r.IntN(12)
	for range rounds {
		if w.failed {
			return
		}
		w.now = w.now.Add(time.Duration(1+w.r.IntN(60)) * time.Second)
		if w.r.IntN(rate) == 0 {
			w.fault()
		}
		w.all(w.hostsAndAgents)
		w.pass(func() {
			if w.r.IntN(3) == 0 {
				w.all(w.hostsAndAgents)
			}
		}, func() bool { return w.r.IntN(25) == 0 })
		if w.r.IntN(10) == 0 {
			w.converges()
		}
	}
}

// converges holds that a plan that was carried out leads, with nothing else changing, to one that writes nothing.
func (w *world) converges() {
	for range 8 {
		if !w.pass(nothing, w.never) {
			return
		}
	}
	w.fail("passes write on and on while nothing changes")
}

// calm ends all faults; what they did to hosts and marks stays to be dealt with.
func (w *world) calm() {
	w.offset = 0
	w.note("the faults stop")
	w.release = "1.10.0"
	cordoned := 0
	for _, m := range w.machines {
		m.failPrepare, m.failActivate, m.ignoreReboot, m.rollBack, m.neverBack = 0, 0, 0, 0, 0
		m.labelled = true
		delete(m.annotations, string(marker.KeyPaused))
		if m.dead {
			m.dead, m.downUntil = false, w.now
		}
		if m.othersCordon {
			if cordoned++; cordoned > len(w.machines)-2 {
				// Somebody has to take the pods.
				m.unschedulable, m.othersCordon = false, false
				w.exempt[m.marks().Intent.ID] = true
			}
		}
		m.written()
	}
}

func (w *world) round() {
	w.now = w.now.Add(20 * time.Second)
	w.all(w.hostsAndAgents)
	for _, m := range w.machines {
		if m.adrift && m.state == intent.HostReady && m.running == "" && m.goesDown.IsZero() && m.marks().Intent.Action == marker.ActionStabilize {
			// Nobody remembers any more that it was us, so it takes a human.
			w.note("%s: a human deactivates", m.name)
			m.state, m.adrift = intent.HostStaged, false
		}
	}
	w.pass(nothing, w.never)
}

func (w *world) updated() bool {
	for _, m := range w.machines {
		marks := m.marks()
		if m.version != w.release || intent.PhaseOf(marks) != intent.PhaseIdle || marks.Disruption != nil || marks.Report.Answer(marks.Intent.ID) != marker.StateReady {
			return false
		}
	}
	return len(w.slots) == 0
}

var (
	firstSeed = flag.Uint64("seed", 0, "first seed of the closed loop")
	seeds     = flag.Uint64("seeds", 25, "how many seeds of the closed loop to run")
)

// Whatever went wrong before: no promise is broken meanwhile, and once it stops every node is updated
// and then nothing is written.
func TestClosedLoop(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds && !t.Failed(); seed++ {
		w := newWorld(t, seed)
		w.trouble(200)
		w.calm()
		end := w.now.Add(12 * time.Hour)
		for !w.updated() && w.now.Before(end) && !w.failed {
			w.round()
		}
		if w.failed {
			return
		}
		if !w.updated() {
			w.note("%s", policy.Plan(w.snapshot(), w.set))
			w.fail("L1: not all nodes are updated 12 hours after the last fault")
			return
		}
		for _, m := range w.machines {
			if m.unschedulable != m.othersCordon {
				w.fail("S5: %s ends cordoned %v, others wanted %v", m.name, m.unschedulable, m.othersCordon)
			}
		}
		w.round()
		before := w.writes
		for end := w.now.Add(time.Hour); w.now.Before(end); {
			w.round()
		}
		if w.writes != before {
			w.fail("L4: %d writes at rest", w.writes-before)
		}
	}
}
