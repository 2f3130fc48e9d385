package model

import (
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Config is what is searched, and how far.
type Config struct {
	Nodes, Controllers int
	// Budget is how many nodes may be unavailable, Faults how many faults there may be.
	Budget int
	Faults uint8
	// Notes: the writes that only tell users what is waited for count as steps too.
	Notes bool
	// Clock: the clock may jump for all nodes at once, beside the deadlines of one node passing.
	Clock bool
	// Full leaves out the reductions that put steps of different nodes into one order; see doc.go.
	Full bool
	// Defect is a mistake to be found.
	Defect Defect
	// States, Within and Memory (bytes) bound the search; zero is no bound.
	States int
	Within time.Duration
	Memory uint64
}

// Model is one search. It is not for more than one goroutine.
type Model struct {
	config   Config
	settings policy.Settings

	decodings decodings
	columnOf  map[column]uint32
	columns   []*columnInfo

	viewNumber map[string]uint32
	views      []*fleet.Node
	shadows    map[uint32]shadow
	endsOf     map[endKey][]end
	plans      map[planKey]uint32
	workNumber map[string]uint32
	works      []work
	stepNumber map[string]uint32
	steps      []plan.Step
	outcomes   map[appliedKey]outcome
	coverage   *Coverage

	// translated, if there is one, is told of every record and what it is in terms.
	translated func(raw, in record)

	states rows[state]
	index  *index
	// parents lead back to the first state; depths are where each level of the search begins.
	parents rows[uint32]
	levels  []int
	// edges of state i without faults are edges from begin[i] to begin[i+1].
	edges rows[uint32]
	begin rows[uint32]
}

// New returns a search that hasn't begun.
func New(c Config) *Model {
	set := policy.DefaultSettings()
	set.Volumes.Wait, set.Verify.OnWorkloads = 0, policy.IgnoreWorkloads
	set.MaxUnavailable = policy.Count(c.Budget)
	// A person's cordon would hold the other node up for an hour of ignoreAfter, and the model counts no hours: the
	// simulation does.
	set.CountUnavailable = false
	set.RetryMax = time.Hour
	m := &Model{config: c, settings: set, decodings: decodings{}, columnOf: map[column]uint32{}, viewNumber: map[string]uint32{}, shadows: map[uint32]shadow{}, endsOf: map[endKey][]end{},
		plans: map[planKey]uint32{}, workNumber: map[string]uint32{}, works: make([]work, 1), stepNumber: map[string]uint32{},
		outcomes: map[appliedKey]outcome{}, coverage: newCoverage(), index: newIndex()}
	return m
}

// first is the state in which everything begins: new nodes, agents and controllers that know nothing.
func (m *Model) first() state {
	c := column{
		cur:  record{exists: true, labelled: true, ready: true, readySince: fresh, boot: fresh, os: oldVersion},
		host: host{up: true, boot: fresh, version: oldVersion},
		pod:  true,
	}
	m.startAgent(&c)
	var s state
	id := m.intern(c)
	for i := range m.config.Nodes {
		s.columns[i] = id
	}
	return s
}

// Violation is a promise that was broken, and how it came to that.
type Violation struct {
	What  string
	Trace string
}

// Figures are what a search found.
type Figures struct {
	Config
	States, Transitions, Depth int
	Columns, Plans             int
	// Cut says why not everything was searched; empty if everything was.
	Cut        string
	Took       time.Duration
	Used       uint64
	Violations []Violation
	// Stuck are states from which no finished one is reached.
	Stuck    int
	Finished int
	Coverage *Coverage
}

func (f Figures) String() string {
	end := "complete"
	if f.Cut != "" {
		end = "cut at " + f.Cut
	}
	return fmt.Sprintf("nodes=%d controllers=%d budget=%d faults=%d notes=%v: states=%d transitions=%d depth=%d finished=%d stuck=%d columns=%d plans=%d %s in %.1fs, %d MiB, violations=%d",
		f.Nodes, f.Controllers, f.Budget, f.Faults, f.Notes, f.States, f.Transitions, f.Depth, f.Finished, f.Stuck, f.Columns, f.Plans, end,
		f.Took.Seconds(), f.Used>>20, len(f.Violations))
}

// maxViolations is how many are told; the first is the one that matters.
const maxViolations = 3

// Run searches breadth first, so that a violation comes with a shortest trace.
func (m *Model) Run() Figures {
	began := time.Now()
	f := Figures{Config: m.config, Coverage: m.coverage}
	s := m.first()
	m.tidy(&s)
	for _, s.victims = range m.victims() {
		m.insert(s, none)
	}
	m.levels = []int{0}
	told := map[string]bool{}
	for at := 0; at < m.states.n; at++ {
		if at == m.levels[len(m.levels)-1] {
			m.levels = append(m.levels, m.states.n)
		}
		if f.Cut = m.cut(at, began); f.Cut != "" {
			break
		}
		m.begin.add(uint32(m.edges.n))
		from := *m.states.at(at)
		m.expand(&from, func(n *successor) {
			f.Transitions++
			if n.bad != "" {
				if !told[n.bad] && len(f.Violations) < maxViolations {
					told[n.bad] = true
					f.Violations = append(f.Violations, Violation{What: n.bad, Trace: m.trace(uint32(at), n)})
				}
				return
			}
			to := m.insert(n.to, uint32(at))
			if (n.kind == system || n.kind == tick) && to != uint32(at) {
				m.edges.add(to)
			}
		})
		if len(f.Violations) >= maxViolations {
			f.Cut = "the violations"
			break
		}
	}
	f.States, f.Depth = m.states.n, len(m.levels)-1
	f.Columns, f.Plans = len(m.columns), len(m.plans)
	if f.Cut == "" {
		m.liveness(&f)
	}
	f.Took = time.Since(began)
	f.Used = memory()
	return f
}

// memory is what the process has from the system.
func memory() uint64 {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.Sys - mem.HeapReleased
}

// victims are what may meet a fault, one set for each search that is part of this one. As many victims as
// faults are enough.
func (m *Model) victims() []uint8 {
	can := controllersFail | 1<<m.config.Nodes - 1
	if m.config.Clock {
		can |= clockJumps
	}
	switch {
	case m.config.Faults == 0:
		return []uint8{0}
	case m.config.Full:
		return []uint8{can}
	}
	var out []uint8
	for set := range allVictims + 1 {
		if set&^can == 0 && bits.OnesCount8(set) == min(int(m.config.Faults), bits.OnesCount8(can)) {
			out = append(out, set)
		}
	}
	return out
}

func (m *Model) cut(at int, began time.Time) string {
	switch {
	case m.config.States > 0 && m.states.n >= m.config.States:
		return fmt.Sprintf("%d states", m.config.States)
	case m.config.Memory > 0 && at&(1<<16-1) == 0 && memory() > m.config.Memory:
		return fmt.Sprintf("%d MiB", m.config.Memory>>20)
	case m.config.Within > 0 && at&1023 == 0 && time.Since(began) > m.config.Within:
		return m.config.Within.String()
	}
	return ""
}

func (m *Model) insert(s state, from uint32) uint32 {
	id, added := m.index.add(&m.states, s)
	if added {
		m.states.add(s)
		m.parents.add(from)
	}
	return id
}

// liveness finds the states from which no finished one is reached without a fault.
func (m *Model) liveness(f *Figures) {
	n := m.states.n
	m.begin.add(uint32(m.edges.n))
	good := make([]bool, n)
	for i := range n {
		if m.isFinished(m.states.at(i)) {
			good[i] = true
			f.Finished++
		}
	}
	for changed := true; changed; {
		changed = false
		for i := n - 1; i >= 0; i-- {
			if good[i] {
				continue
			}
			for e := *m.begin.at(i); e < *m.begin.at(i + 1); e++ {
				if good[*m.edges.at(int(e))] {
					good[i], changed = true, true
					break
				}
			}
		}
	}
	// Where nothing happens any more tells most; else where it goes on longest.
	worst, dead := none, false
	for i := range good {
		if good[i] {
			continue
		}
		f.Stuck++
		if end := *m.begin.at(i) == *m.begin.at(i + 1); !dead {
			worst, dead = uint32(i), end
		}
	}
	if worst != none {
		f.Violations = append(f.Violations, Violation{What: "L1: no finished state is reached from here", Trace: m.trace(worst, nil)})
	}
}

// trace tells how a state, and the transition from it, was reached.
func (m *Model) trace(at uint32, last *successor) string {
	var path []uint32
	for i := at; i != none; i = *m.parents.at(int(i)) {
		path = append(path, i)
	}
	var b strings.Builder
	step := 0
	tell := func(from *state, n *successor) {
		step++
		fmt.Fprintf(&b, "%3d. %s\n", step, n)
		for i := range m.config.Nodes {
			before, after := m.columns[from.columns[i]].column, m.columns[n.to.columns[i]].column
			if before.cur != after.cur {
				fmt.Fprintf(&b, "     %s %s: %s\n", nodeName(i), phase(m.decodings.of(after.cur.marks)), m.describe(after.cur))
			}
		}
		if n.to.slots != from.slots {
			fmt.Fprintf(&b, "     slots %v\n", n.to.slots.list())
		}
	}
	for i := len(path) - 1; i > 0; i-- {
		from, to := *m.states.at(int(path[i])), *m.states.at(int(path[i-1]))
		found := false
		m.expand(&from, func(n *successor) {
			if !found && n.to == to {
				found = true
				tell(&from, n)
			}
		})
	}
	if last != nil {
		tell(m.states.at(int(at)), last)
	} else {
		s := m.states.at(int(at))
		for i := range m.config.Nodes {
			c := m.columns[s.columns[i]].column
			fmt.Fprintf(&b, "     %s stands at: %s\n     host %+v\n     agent %+v\n", nodeName(i), m.describe(c.cur), c.host, c.agent)
		}
		fmt.Fprintf(&b, "     slots %v, work %v, known %v\n", s.slots.list(), s.work, s.known)
	}
	return b.String()
}

func phase(d *decoded) intent.Phase {
	if len(d.problems) > 0 {
		return intent.PhaseUnreadable
	}
	return intent.PhaseOf(d.marks)
}
