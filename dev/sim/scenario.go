package sim

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Scenario is all that a run depends on. Its text form can be kept, read and replayed.
type Scenario struct {
	// Seed decides on every order and every delay.
	Seed  uint64
	Nodes int
	// Controllers is how many replicas of the controller there are.
	Controllers int
	// The limits and times of the policy, see policy.Settings.
	MaxUnavailable, MaxLost, MaxStaging int
	Soak                                time.Duration
	// Refresh and Live are the agents' intervals.
	Refresh, Live time.Duration
	// Trouble is how long things go wrong; after it all but the operator leave the fleet in peace.
	Trouble time.Duration
	Faults  []Fault
	// Zones is how many zones the nodes are in, in turn, and Canaries how many of them, the first ones, are labelled
	// as canaries.
	Zones, Canaries int
	// Blind: by their flags, controllers don't look at a node's pods before its cordon.
	Blind bool
	// Policies are policy files: the first stands from the beginning, the last once everything is put right, and
	// users write any of them meanwhile. Without one there is no ConfigMap.
	Policies []Rules
	// PlanNodes is how many of the nodes, the last ones, are nodes of plans, and Runners how many replicas of the runner
	// there are. Walls: the admission policies for what runners do are in force.
	PlanNodes, Runners int
	Walls              bool
	// Fresh is how many of the machines, the last ones before those of plans, join late, with the taint of new nodes.
	Fresh int
}

// Fault is one thing that goes wrong, or that a user does.
type Fault struct {
	At   time.Duration
	Kind Kind
	// On is the number of the machine, or of the controller.
	On int
	// For is how long it lasts, where it lasts.
	For time.Duration
	// N refines some kinds: a variant, one request in so many.
	N int
	// When puts the fault off to the next such moment of any node after At, and lets it hit that node's
	// machine; empty: at At.
	When Moment
}

// Moment is a write after which much depends on what acts next.
type Moment string

// The moments of a node's way.
const (
	AtPrepare Moment = "prepare"
	AtConfirm Moment = "confirm"
	AtCordon  Moment = "cordon"
	AtReboot  Moment = "reboot"
	AtBusy    Moment = "busy"
	AtAnswer  Moment = "answer"
	AtReturn  Moment = "return"
	AtEnd     Moment = "end"
	// AtPod is when the pod of a plan was made.
	AtPod Moment = "pod"
)

var moments = []Moment{AtPrepare, AtConfirm, AtCordon, AtReboot, AtBusy, AtAnswer, AtReturn, AtEnd}

// String is a line of the text form.
func (f Fault) String() string {
	s := fmt.Sprintf("%s %s on=%d for=%s n=%d", f.At, f.Kind, f.On, f.For, f.N)
	if f.When != "" {
		s += " when=" + string(f.When)
	}
	return s
}

// Generate makes the scenario of a seed.
func Generate(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Scenario{Seed: seed, Nodes: 3 + r.IntN(10), Controllers: 2, MaxUnavailable: 1 + r.IntN(3), MaxLost: r.IntN(3), MaxStaging: 1 + r.IntN(6),
		Soak: time.Duration(2+r.IntN(30)) * time.Second, Refresh: time.Duration(4+r.IntN(7)) * time.Minute, Live: time.Duration(3+r.IntN(4)) * time.Minute,
		Trouble: time.Duration(3+r.IntN(15)) * time.Minute}
	// A few kinds, often: what goes wrong together once is found sooner than by drawing from all of them.
	some := make([]Kind, 1+r.IntN(8))
	for i := range some {
		some[i] = always[r.IntN(len(always))]
	}
	for range 1 + r.IntN(3*len(some)+6) {
		f := Fault{
			At:   time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond),
			Kind: some[r.IntN(len(some))],
			On:   r.IntN(s.Nodes),
			For:  time.Duration(r.Int64N(int64(1<<r.IntN(9)) * int64(2*time.Second))).Truncate(time.Millisecond),
			N:    r.IntN(16),
		}
		if r.IntN(2) == 0 {
			f.When = moments[r.IntN(len(moments))]
		}
		s.Faults = append(s.Faults, f)
	}
	// And pairs: what others do at a moment in which one of ours is hindered.
	for range r.IntN(4) {
		at, when := time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), moments[r.IntN(len(moments))]
		for _, kind := range []Kind{hindrances[r.IntN(len(hindrances))], doings[r.IntN(len(doings))]} {
			s.Faults = append(s.Faults, Fault{At: at, Kind: kind, On: r.IntN(s.Nodes), When: when, N: r.IntN(16),
				For: time.Duration(r.Int64N(int64(1<<r.IntN(7)) * int64(time.Second))).Truncate(time.Millisecond)})
		}
	}
	// From numbers of their own, so that a seed's other troubles are what they were before there were policies.
	s.govern(rand.New(rand.NewPCG(seed, 3)))
	s.drain(rand.New(rand.NewPCG(seed, 4)))
	s.surround(rand.New(rand.NewPCG(seed, 5)))
	s.unwrite(rand.New(rand.NewPCG(seed, 6)))
	s.plan(rand.New(rand.NewPCG(seed, 7)))
	s.enrol(rand.New(rand.NewPCG(seed, 8)))
	s.cycle(rand.New(rand.NewPCG(seed, 9)))
	s.lock(rand.New(rand.NewPCG(seed, 10)))
	s.freshen(rand.New(rand.NewPCG(seed, 11)))
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return s
}

// hindrances keep a process of the operator from its work, doings are what hosts and users do meanwhile.
var (
	hindrances = []Kind{CrashController, FreezeController, FreezeController, CrashAgent, FreezeAgent, APIServerDown, ProxyDown, LostAnswer, LostRequest, WatchLag,
		SlowRequest, SlowAnswer}
	doings = []Kind{PowerCut, SlowBoot, NodeFlaps, NodeUnwell, NodeDeleted, AgentPodReplaced, PersonCordons, PersonUncordons, PersonPauses,
		PersonUnlabels, PersonEditsSlots, CrashController, Withdrawn, NewRelease, ControllerClock, "F8", "F14", "F15", "F16", "F17", "F18", "F19", "F20", "F21"}
)

// settings of the policy; the deadlines are short, so that runs are, but in the same order as the defaults.
func (s Scenario) settings() policy.Settings {
	set := policy.DefaultSettings()
	set.MaxUnavailable, set.MaxLost, set.MaxFailed = policy.Count(s.MaxUnavailable), policy.Count(s.MaxLost), policy.Unlimited
	set.MaxStaging, set.Soak = s.MaxStaging, s.Soak
	set.Deadlines = policy.Deadlines{Staging: 30 * time.Minute, Reboot: 12 * time.Minute, Return: 4 * time.Minute}
	set.Drain, set.IgnoreAfter = 4*time.Minute, 20*time.Minute
	set.RetryBase, set.RetryMax = time.Minute, 10*time.Minute
	set.PauseAfterUncordon = 2 * time.Minute
	set.FreshNodes = s.freshNodes(set.FreshNodes)
	set.Eviction.Predict = !s.Blind
	set.Volumes.Wait, set.Verify.Deadline = time.Minute, 2*time.Minute
	return set
}

// Write writes the text form.
func (s Scenario) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "seed %d\nnodes %d\ncontrollers %d\nmax-unavailable %d\nmax-lost %d\nmax-staging %d\nsoak %s\nrefresh %s\nlive %s\ntrouble %s\n",
		s.Seed, s.Nodes, s.Controllers, s.MaxUnavailable, s.MaxLost, s.MaxStaging, s.Soak, s.Refresh, s.Live, s.Trouble)
	write := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	if s.Zones > 0 {
		write("zones %d\n", s.Zones)
	}
	if s.Blind {
		write("blind true\n")
	}
	if s.Canaries > 0 {
		write("canaries %d\n", s.Canaries)
	}
	if s.PlanNodes > 0 {
		write("plan-nodes %d\nrunners %d\nwalls %t\n", s.PlanNodes, s.Runners, s.Walls)
	}
	if s.Fresh > 0 {
		write("fresh %d\n", s.Fresh)
	}
	for i, p := range s.Policies {
		write("policy %d\n", i)
		for _, rule := range p {
			write("policy %d %s\n", i, rule)
		}
	}
	for _, f := range s.Faults {
		write("fault %s\n", f)
	}
	return errors.Wrap(err, "writing scenario")
}

// Read reads the text form. Lines that begin with # are comments. An error names the line.
func Read(r io.Reader) (Scenario, error) {
	var s Scenario
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := s.line(words); err != nil {
			return s, errors.WithMessagef(err, "scenario, line %d: %s", n, lines.Text())
		}
	}
	if s.Nodes < 1 || s.Controllers < 1 || s.Trouble <= 0 || s.Refresh <= 0 || s.Live <= 0 {
		return s, errors.New("scenario: nodes, controllers, trouble, refresh and live must be given and positive")
	}
	return s, errors.Wrap(lines.Err(), "reading scenario")
}

func (s *Scenario) line(words []string) error {
	switch words[0] {
	case "fault":
		return s.fault(words[1:])
	case "policy":
		return s.policy(words[1:])
	}
	if len(words) != 2 {
		return errors.New("a name and a value are needed")
	}
	var err error
	number, duration := func(into *int) { *into, err = strconv.Atoi(words[1]) }, func(into *time.Duration) { *into, err = time.ParseDuration(words[1]) }
	switch words[0] {
	case "seed":
		s.Seed, err = strconv.ParseUint(words[1], 10, 64)
	case "nodes":
		number(&s.Nodes)
	case "controllers":
		number(&s.Controllers)
	case "max-unavailable":
		number(&s.MaxUnavailable)
	case "max-lost":
		number(&s.MaxLost)
	case "max-staging":
		number(&s.MaxStaging)
	case "zones":
		number(&s.Zones)
	case "blind":
		s.Blind, err = strconv.ParseBool(words[1])
	case "canaries":
		number(&s.Canaries)
	case "plan-nodes":
		number(&s.PlanNodes)
	case "fresh":
		number(&s.Fresh)
	case "runners":
		number(&s.Runners)
	case "walls":
		s.Walls, err = strconv.ParseBool(words[1])
	case "soak":
		duration(&s.Soak)
	case "refresh":
		duration(&s.Refresh)
	case "live":
		duration(&s.Live)
	case "trouble":
		duration(&s.Trouble)
	default:
		return errors.New("no such name")
	}
	return errors.Wrap(err, "reading the value")
}

// policy reads a line of a policy file, by the file's number. They come in their order.
func (s *Scenario) policy(words []string) error {
	if len(words) == 0 {
		return errors.New("a policy's number is needed")
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 0 || n > len(s.Policies) || n < len(s.Policies)-1 {
		return errors.New("policies are numbered from 0 on, and come in their order")
	}
	if n == len(s.Policies) {
		s.Policies = append(s.Policies, nil)
	}
	if len(words) > 1 {
		s.Policies[n] = append(s.Policies[n], strings.Join(words[1:], " "))
	}
	return nil
}

func (s *Scenario) fault(words []string) error {
	if len(words) < 2 {
		return errors.New("a time and a kind are needed")
	}
	at, err := time.ParseDuration(words[0])
	if err != nil {
		return errors.Wrap(err, "reading the time")
	}
	f := Fault{At: at, Kind: Kind(words[1])}
	if !slices.Contains(kinds, f.Kind) {
		return errors.New("no such kind")
	}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "on":
			f.On, err = strconv.Atoi(value)
		case "for":
			f.For, err = time.ParseDuration(value)
		case "n":
			f.N, err = strconv.Atoi(value)
		case "when":
			if f.When = Moment(value); !slices.Contains(slices.Concat(moments, planMoments), f.When) {
				err = errors.New("no such moment")
			}
		default:
			err = errors.New("no such refinement")
		}
		if err != nil {
			return errors.Wrapf(err, "reading %q", word)
		}
	}
	s.Faults = append(s.Faults, f)
	return nil
}
