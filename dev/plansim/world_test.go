package plansim_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
)

const (
	older, newer = "v1.35.0+k3s1", "v1.36.3+k3s1"
	label        = string(marker.KeyInterfaceVersion)
)

// machine is a node with its kubelet.
type machine struct {
	name, uid     string
	labels        map[string]string
	annotations   map[string]string
	unschedulable bool
	// others is what others want of the cordon.
	others  bool
	version int
	ready   bool
	since   int
	// readyAt is when since changed.
	readyAt time.Time
	boot    string
	kubelet string
	// content is what the plan brought in truth.
	content string
	// deaf: the kubelet doesn't act.
	deaf bool
	// What the controller remembers.
	passed   string
	passedAt time.Time
	drain    *fleet.Drain
	checked  *fleet.Checked
	forecast *fleet.Forecast
	lostAt   time.Time
	// emptied is the disruption for which a drain found nothing left.
	emptied time.Time
}

// pod is one that a runner made.
type pod struct {
	next.Pod
	node string
}

// process is a runner's.
type process struct {
	memory  map[string]next.Memory
	until   map[string]time.Time
	looked  *next.View
	of      string
	version int
	at      time.Time
}

// world is a few nodes, their controller, two runners, and everything that goes wrong.
type world struct {
	t    *testing.T
	rand *rand.Rand
	now  time.Time
	set  policy.Settings
	// plans are the policy's, also while they are taken out of it.
	plans    []policy.Plan
	targets  map[string]fleet.PlanTarget
	machines []*machine
	pods     []*pod
	slots    map[string]string
	runners  [2]process
	// up: a runner is Ready.
	up      bool
	version int
	uids    int
	made    map[string]int
	told    []string
	writes  int
	// calm: nothing goes wrong any more.
	calm bool
	// planned is a plan that is not carried out yet.
	planned []plan.Step
	seen    map[string]int
	// rare is how seldom something goes wrong.
	rare int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), slots: map[string]string{}, up: true,
		made: map[string]int{}, seen: map[string]int{}, set: policy.DefaultSettings()}
	w.set.MaxFailed, w.set.Verify.OnWorkloads, w.set.RetryMax = policy.Count(100), policy.IgnoreWorkloads, time.Hour
	p := policy.Plan{Name: "p", Apply: "apply", Deadline: 30 * time.Minute, Drain: marker.PlanDrains()[w.rand.IntN(3)], Effect: marker.Effects()[w.rand.IntN(3)]}
	if p.Drain == marker.DrainNothing {
		p.Effect = marker.EffectNone
	}
	if p.Effect == marker.EffectReboot {
		p.Drain = marker.DrainAll
	}
	if w.rand.IntN(2) == 0 {
		p.Prepare = "prepare"
	}
	if p.Proof, p.Target.Version = marker.ProofKubelet, newer; w.rand.IntN(3) == 0 {
		p.Proof, p.Target = marker.ProofContent, policy.PlanTarget{Content: true}
	}
	w.plans, w.rare = []policy.Plan{p}, 1+w.rand.IntN(8)
	w.set.Plans = w.plans
	if w.rand.IntN(8) == 0 {
		w.set.SingleNode = policy.SingleNodeAllow
	}
	w.targets = map[string]fleet.PlanTarget{"p": {Prepare: p.Prepare, Apply: p.Apply, Digest: "0123456789abcdef"}}
	nodes := 3
	if w.set.SingleNode == policy.SingleNodeAllow {
		nodes = 1
	}
	for i := range nodes {
		w.machines = append(w.machines, w.machine(fmt.Sprintf("n%d", i)))
	}
	w.tell("plan %+v", p)
	return w
}

func (w *world) machine(name string) *machine {
	w.uids++
	return &machine{name: name, uid: fmt.Sprintf("u%d", w.uids), labels: map[string]string{label: "plan"}, annotations: map[string]string{},
		ready: true, boot: fmt.Sprintf("boot-%d", w.uids), kubelet: older, version: w.next()}
}

func (w *world) next() int { w.version++; return w.version }

// transition is one of the Ready condition.
func (w *world) transition(m *machine) { m.since, m.readyAt = m.since+1, w.now }

func (w *world) touch(m *machine) { m.version = w.next() }

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

func (w *world) named(name string) *machine {
	for _, m := range w.machines {
		if m.name == name {
			return m
		}
	}
	return nil
}

// snapshot is what the controller sees.
func (w *world) snapshot() fleet.Snapshot {
	s := fleet.Snapshot{Now: w.now, Slots: maps.Clone(w.slots), PlanTargets: w.targets}
	for _, m := range w.machines {
		n := fleet.Node{Name: m.name, UID: m.uid, ResourceVersion: strconv.Itoa(m.version), Interface: fleet.InterfaceOf(m.labels), Labels: maps.Clone(m.labels),
			Unschedulable: m.unschedulable, Ready: m.ready, ReadySince: strconv.Itoa(m.since), BootID: m.boot}
		if n.Interface == fleet.InterfacePlan {
			n.Info = &fleet.NodeInfo{Kubelet: m.kubelet}
			n.AgentPod, n.AgentReady = w.up, w.up
		}
		n.Marks, n.Problems = marker.Decode(m.annotations)
		w.must(len(n.Problems) == 0, "unreadable: %+v", n.Problems)
		n.Drain, n.Checked, n.Forecast = m.drain, m.checked, m.forecast
		if !n.Disrupted() {
			n.Drain, n.Checked = nil, nil
		}
		if !n.Disrupted() || !n.Ready || n.AgentReady {
			m.lostAt = time.Time{}
		} else if m.lostAt.IsZero() {
			m.lostAt = w.now
		}
		n.AgentLostSince = m.lostAt
		n.PassedOver, n.WatchedSince = m.passed == string(n.Phase())+n.Marks.Intent.ID, m.passedAt
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// plan is the controller's look.
func (w *world) plan() {
	s := w.snapshot()
	out := planner.Plan(s, w.set)
	w.planned = out.Steps
	for i := range s.Nodes {
		m, n := w.named(s.Nodes[i].Name), &s.Nodes[i]
		if at := string(n.Phase()) + n.Marks.Intent.ID; m.passed != at {
			m.passed, m.passedAt = at, w.now
		}
		if !n.Disrupted() {
			m.drain, m.checked = nil, nil
		}
	}
	for _, d := range out.Nodes {
		w.must(d.Act != "" || d.Reason != "", "S9: %+v", d)
	}
}

// carryOut carries the plan out, or a part of it before a crash.
func (w *world) carryOut() {
	steps := w.planned
	w.planned = nil
	if !w.calm && len(steps) > 0 && w.rand.IntN(10) == 0 {
		steps = steps[:w.rand.IntN(len(steps))]
		w.tell("the controller crashes")
		for _, m := range w.machines {
			m.passed, m.drain, m.checked, m.forecast, m.lostAt = "", nil, nil, nil, time.Time{}
		}
	}
	for i := range steps {
		w.do(&steps[i])
	}
}

func (w *world) do(s *plan.Step) {
	m := w.named(s.Node)
	if m == nil || m.uid != s.UID {
		if s.Act == intent.ActRelease {
			delete(w.slots, s.UID)
		}
		return
	}
	if s.TakesSlot {
		w.slots[s.UID] = s.Node
		w.writes++
	}
	switch s.Act {
	case intent.ActDrain:
		m.drain = &fleet.Drain{Remaining: w.rand.IntN(2), Next: w.now.Add(5 * time.Second)}
		if d, _ := marker.Decode(m.annotations); m.drain.Remaining == 0 && d.Disruption != nil && m.unschedulable {
			m.emptied = d.Disruption.Since
		}
	case intent.ActLook:
		m.forecast = &fleet.Forecast{At: w.now}
	case intent.ActCheck:
		m.checked = &fleet.Checked{For: s.Check.For, Digest: s.Check.Digest, At: w.now, Next: w.now.Add(10 * time.Second)}
		if s.Check.For == fleet.CheckApplied {
			m.checked.Problem = w.unapplied(m, s.Check)
		}
	default:
		// It is a write alone.
	}
	if s.Change == nil {
		if s.FreesSlot {
			delete(w.slots, s.UID)
		}
		return
	}
	if s.Change.ResourceVersion != strconv.Itoa(m.version) {
		return
	}
	if !w.write(m, s) {
		return
	}
	if s.FreesSlot && (w.calm || w.rand.IntN(10) > 0) {
		delete(w.slots, s.UID)
	}
}

func (w *world) unapplied(m *machine, q *plan.LiveCheck) string {
	for _, p := range w.pods {
		if p.node == m.name && p.Intent == q.Intent && p.Phase == next.Succeeded && p.Said == q.Digest {
			return ""
		}
	}
	return "not applied"
}

// write is a write of the controller.
func (w *world) write(m *machine, s *plan.Step) bool {
	before, _ := marker.Decode(m.annotations)
	diff := s.Change.Diff(m.annotations)
	if len(diff) == 0 && s.Change.Unschedulable == nil && len(s.Change.Labels)+len(s.Change.Annotations) == 0 {
		return true
	}
	for k, v := range diff {
		delete(m.annotations, string(k))
		if v != nil {
			m.annotations[string(k)] = *v
		}
	}
	for k, v := range s.Change.Labels {
		delete(m.labels, k)
		if v != nil {
			m.labels[k] = *v
		}
	}
	if c := s.Change.Unschedulable; c != nil {
		w.must(*c || !m.others, "S5: another's cordon is taken away from %s", m.name)
		m.unschedulable = *c
	}
	w.touch(m)
	w.writes++
	w.tell("%s: %s %s: %s", m.name, s.Act, s.Reason, s.Message)
	w.seen[string(s.Act)+" "+string(s.Reason)]++
	after, problems := marker.Decode(m.annotations)
	w.must(len(problems) == 0, "written and not readable: %+v", problems)
	if before.Disruption == nil && after.Disruption != nil {
		w.budget()
	}
	if f := after.Failure; f != nil && (before.Failure == nil || before.Failure.Count < f.Count) {
		w.seen["failure "+f.Reason]++
	}
	if s.Reason == plan.ReasonUpdated {
		w.must(w.has(m), "S7: %s counts as updated and has not the target", m.name)
		w.must(m.ready, "S7: %s is not Ready", m.name)
	}
	if s.Act == intent.ActReboot {
		p := after.Plan
		w.must(m.unschedulable || p.Drain == marker.DrainNothing, "S2: %s is asked and not cordoned", m.name)
		w.must(p.Drain != marker.DrainAll || len(w.machines) == 1 || m.emptied.Equal(after.Disruption.Since), "S2: %s is asked and not drained", m.name)
	}
	return true
}

// budget holds S1: one node, and one Lost.
func (w *world) budget() {
	n := 0
	for _, m := range w.machines {
		if d, _ := marker.Decode(m.annotations); d.Disruption != nil {
			n++
		}
	}
	w.must(n <= 2, "S1: %d nodes are in our hands", n)
}

// has reports whether a machine has what its attempt was about, or the policy wants.
func (w *world) has(m *machine) bool {
	if w.plans[0].Target.Content {
		return m.content != ""
	}
	return m.kubelet == newer
}

func (w *world) step() {
	r := &w.runners[w.rand.IntN(2)]
	switch n := w.rand.IntN(100); {
	case n < 20 && w.up:
		w.look(r)
	case n < 30 && w.up:
		w.look(r)
		w.act(r)
	case n < 50 && w.up:
		w.act(r)
	case n < 62:
		w.kubelet(w.machines[w.rand.IntN(len(w.machines))])
	case n < 70:
		w.plan()
	case n < 80:
		w.plan()
		w.carryOut()
	case n < 88:
		w.carryOut()
	case n < 98:
		w.now = w.now.Add([]time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second}[w.rand.IntN(5)])
		if w.rand.IntN(100) == 0 {
			w.now = w.now.Add(11 * time.Minute)
		}
	case w.rand.IntN(w.rare) == 0:
		w.fault()
	}
}

// round gives each its turn in a world where nothing goes wrong.
func (w *world) round(d time.Duration) {
	for _, m := range w.machines {
		for range 6 {
			w.lookAt(&w.runners[0], m)
			w.act(&w.runners[0])
		}
		w.kubelet(m)
	}
	w.plan()
	w.carryOut()
	w.now = w.now.Add(d)
}

// soothe ends all that goes wrong.
func (w *world) soothe() {
	w.tell("CALM")
	w.calm, w.up, w.runners = true, true, [2]process{}
	w.set.Plans = w.plans
	p := w.plans[0]
	w.targets = map[string]fleet.PlanTarget{"p": {Prepare: p.Prepare, Apply: p.Apply, Digest: "0123456789abcdef"}}
	for _, m := range w.machines {
		m.deaf, m.labels[label] = false, "plan"
		if !m.ready {
			m.ready = true
			w.transition(m)
		}
		delete(m.annotations, string(marker.KeyPaused))
		m.annotations[string(marker.KeyRetry)] = ""
		if m.others {
			m.others, m.unschedulable = false, false
		}
		w.touch(m)
	}
}

// done reports whether all nodes have their target and are at rest. What ended without effect is tried again, as a user
// would.
func (w *world) done() bool {
	done := len(w.slots) == 0
	for _, m := range w.machines {
		marks, _ := marker.Decode(m.annotations)
		done = done && marks.Disruption == nil && marks.Intent.Action == marker.ActionStabilize && w.has(m)
		if f := marks.Failure; f != nil && f.Reason == string(plan.ReasonNoEffect) && f.Count > 0 && !marks.Retry {
			m.annotations[string(marker.KeyRetry)] = ""
			w.touch(m)
		}
	}
	return done
}

// S1, S2, S3, S5, S7 at every step, whatever goes wrong; L1 and L4 once that stops.
func TestWorld(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 100
	}
	seen := map[string]int{}
	for seed := range seeds {
		w := newWorld(t, seed)
		for range 3000 {
			w.step()
		}
		w.soothe()
		for range 4 * 60 * 6 {
			if w.round(15 * time.Second); w.done() {
				break
			}
		}
		for _, m := range w.machines {
			marks, _ := marker.Decode(m.annotations)
			w.must(marks.Disruption == nil && marks.Intent.Action == marker.ActionStabilize && !m.unschedulable, "seed %d: L1: %s is not at rest: %+v", seed, m.name, m)
			w.must(w.has(m), "seed %d: L1: %s is not updated: %+v", seed, m.name, m)
		}
		w.must(len(w.slots) == 0, "seed %d: slots are left: %v", seed, w.slots)
		w.must(!slices.ContainsFunc(w.pods, func(p *pod) bool { return !p.Over() }), "seed %d: pods are left", seed)
		for range 60 {
			w.round(time.Minute)
		}
		before := w.writes
		for range 30 {
			w.round(time.Minute)
		}
		w.must(w.writes == before, "seed %d: L4: %d writes at rest", seed, w.writes-before)
		for k, n := range w.seen {
			seen[k] += n
		}
	}
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[k], k)
	}
}
