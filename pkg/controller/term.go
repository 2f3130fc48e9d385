package controller

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// TermConfig is what a term is made from.
type TermConfig struct {
	Cluster  Cluster
	Drainer  Drainer
	Events   Events
	Policies Policies
	// Alerts may be nil where no policy asks for any.
	Alerts Alerts
	// Sender may be nil where no policy wants messages.
	Sender Sender
	// NodeName is the node that this process runs on; it is updated last. Empty if unknown.
	NodeName string
	Now      func() time.Time
	// Leading reports whether this process certainly leads; in doubt no slot is taken. Nil: it does.
	Leading func() bool
	// Restricted tests on a node whether admission policies restrict the controller's account; nil: it isn't tested.
	Restricted func(ctx context.Context, node string) (bool, error)
	// Spawn starts work that a pass doesn't wait for; nil is a goroutine.
	Spawn   func(func())
	Metrics *Metrics
	Log     logrus.FieldLogger
}

// Term is one leader's time in office. What it remembers only refines what is derived from the Nodes:
// losing it costs time and no safety.
type Term struct {
	c TermConfig
	// changed asks for another pass.
	changed chan struct{}

	mu     sync.Mutex
	drains works[fleet.Drain]
	looks  works[fleet.Forecast]
	checks works[fleet.Checked]
	alerts works[fleet.Alerts]
	// admission is what this process knows of the admission policies for its account.
	admission works[access.Enforcement]
	// messages is how the last work on them went.
	messages works[told]
	// rollouts is the account of them.
	rollouts rollouts
	borne    map[string]*borne
	// began is when the pass under way began; zero if there is none.
	began time.Time
	// passed holds, by UID, the phase and intent in which the last pass saw a node.
	passed map[string]passedOver
	// away is since when this process has seen a node out of service that the operator didn't take out, by UID.
	away map[string]time.Time
	// writing is the trouble with the writes to nodes, by UID, conflicts the rows of conflicts that they meet, and wrote
	// what was written to them since the last pass.
	writing   works[fleet.WriteTrouble]
	conflicts map[string]*conflicts
	wrote     []plan.Step
	// agentLost is since when it has seen no Ready agent on a node that the operator holds, by UID.
	agentLost map[string]time.Time

	// announced are the last Events about what nodes wait for, by UID, and retry is the pause after a pass that
	// could not be finished. Only the passing goroutine touches them.
	announced map[string]announced
	// shown are the steps on Nodes that this process has announced lately, with when they were taken.
	shown map[string]time.Time
	// problem, unknown and stopped are what was last announced of the policy, of alerts and of versions.
	problem       string
	unknown       bool
	notRestricted bool
	warnings      []plan.Warning
	stopped       map[string]bool
	retry         time.Duration
	// read is which policy the last pass went by.
	read policyRead
	// messageFailing: the last message could not be sent. Only the work on messages touches it.
	messageFailing bool
}

// NewTerm begins a term: nothing that an earlier one read counts any more.
func NewTerm(c TermConfig) *Term {
	if c.Spawn == nil {
		c.Spawn = func(f func()) { go f() }
	}
	c.Cluster.ForgetSlots()
	return &Term{
		c:         c,
		changed:   make(chan struct{}, 1),
		drains:    works[fleet.Drain]{},
		looks:     works[fleet.Forecast]{},
		checks:    works[fleet.Checked]{},
		alerts:    works[fleet.Alerts]{},
		admission: works[access.Enforcement]{},
		messages:  works[told]{},
		borne:     map[string]*borne{},
		writing:   works[fleet.WriteTrouble]{},
		conflicts: map[string]*conflicts{},
		passed:    map[string]passedOver{},
		announced: map[string]announced{},
		shown:     map[string]time.Time{},
		retry:     retryMin,
	}
}

// Changed asks for another pass; many calls before it begins are one.
func (t *Term) Changed() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

const (
	// passPause bounds how often passes follow each other, so that a burst of changes is one pass.
	passPause = 20 * time.Millisecond
	retryMin  = 500 * time.Millisecond
	retryMax  = 30 * time.Second
)

// Woken returns the channel that asks for a turn before the last one's pause is over.
func (t *Term) Woken() <-chan struct{} { return t.changed }

// Run takes turns whenever something changed or is due, until ctx ends.
func (t *Term) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-timer.C:
		}
		pause := t.Turn(ctx)
		timer.Reset(pause)
		rest(ctx, passPause)
	}
}

// forever is longer than any process lives.
const forever = time.Duration(1<<62 - 1)

// Turn makes one pass and returns how long none is needed unless something changes.
func (t *Term) Turn(ctx context.Context) time.Duration {
	wake, err := t.Pass(ctx)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		t.c.Log.WithError(err).Warn("A pass could not be finished and will be repeated")
		t.c.Metrics.passErrors.Inc()
		pause := t.retry
		t.retry = min(2*t.retry, retryMax)
		return pause
	}
	t.retry = retryMin
	if wake.IsZero() {
		return forever
	}
	return max(wake.Sub(t.c.Now()), passPause)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Pass gathers, plans and carries out once. It returns when the clock alone makes another pass worth
// while (zero: never), and the first error that isn't one node's; steps after a failed one were carried out all the
// same.
func (t *Term) Pass(ctx context.Context) (time.Time, error) {
	began := t.c.Now()
	t.under(began)
	defer t.under(time.Time{})
	t.refresh()
	s, set, err := t.gather(ctx)
	if err != nil {
		return time.Time{}, err
	}
	out := planner.Plan(s, set)
	if v := t.c.Policies.Current().ResourceVersion; v != t.read.resourceVersion || t.read.at.IsZero() {
		t.read = policyRead{v, began}
	}
	if len(s.Nodes) > 0 {
		if again := t.askForAdmission(ctx, s.Nodes[0].Name, s.Now); !again.IsZero() && (out.Wake.IsZero() || again.Before(out.Wake)) {
			out.Wake = again
		}
	}
	t.remember(s, out)
	t.announceWrites()
	t.announcePolicy(s, out)
	t.announceSteps(s)
	t.announceWaits(out, s.Now)
	err = t.carryOut(ctx, s, out)
	if again := t.notify(ctx, s, out, &set.Notify); !again.IsZero() {
		out.Wake = plan.Earliest(s.Now, out.Wake, again)
	}
	if again := t.account(ctx, &s, &out); !again.IsZero() {
		out.Wake = plan.Earliest(s.Now, out.Wake, again)
	}
	now := t.c.Now()
	t.c.Metrics.pass(seen{now, s, set, out, t.read, t.longest(), t.c.Now}, now.Sub(began))
	return out.Wake, err
}

func (t *Term) under(began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = began
}

// stuckAfter is far beyond what a pass can take: each of its requests has a limit of its own, and it waits for no more
// than slowWrites writes that take too long.
const stuckAfter = 10 * time.Minute

// stuckFor returns how long the pass under way has taken.
func (t *Term) stuckFor() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began.IsZero() {
		return 0
	}
	return t.c.Now().Sub(t.began)
}

// log names the node, its phase, and the intent that stands after the step.
func (t *Term) log(s plan.Step) logrus.FieldLogger {
	log := t.c.Log.WithFields(logrus.Fields{
		telemetry.FieldNode:   s.Node,
		telemetry.FieldPhase:  string(s.Phase),
		telemetry.FieldAct:    string(s.Act),
		telemetry.FieldReason: string(s.Reason),
	})
	if s.Change != nil {
		log = log.WithField(telemetry.FieldIntent, s.Change.Marks.Intent.ID)
	}
	return log
}
