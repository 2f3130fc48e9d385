package agent

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// ErrSocketReplaced ends Run: the socket that was mounted into this pod is not the host's any more. A restart of the
// pod mounts the new one.
var ErrSocketReplaced = errors.New("the host has replaced its API socket, only a restart mounts the new one")

// Agent is the loop of one node. Turn and Run are for one goroutine; Update, Ready and Healthy for any.
type Agent struct {
	cfg Config
	log logrus.FieldLogger

	mu sync.Mutex
	// newest is the latest known state of the node; nil when there is none.
	newest *Snapshot
	// updates counts what Update took over.
	updates int
	probes  probes

	wake chan struct{}

	// What follows belongs to Turn.

	memory next.Memory
	// mustLook: the known state of the node is old, or a write may not have happened, so the node must be read live.
	mustLook bool
	// lookAt is when the node is read live next.
	lookAt time.Time
	// written is the last answer that was accepted.
	written string
	// factsSince is when the facts on the node were first found to be wrong; zero if they are right.
	factsSince time.Time
	// leavesOut: the optional facts were refused when they were written last.
	leavesOut bool
	// unreadable is what could not be read of the intent, as it was logged last.
	unreadable string

	looking, writing, hosting backoff
	goneSince                 time.Time
	goneLooks                 int
}

// New returns an agent that has looked at nothing yet.
func New(cfg Config) (*Agent, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, log: cfg.Log, wake: make(chan struct{}, 1)}
	a.memory = next.NewMemory(cfg.Now(), jitter(cfg.RefreshEvery, 0.1, cfg.Rand()))
	return a, nil
}

// Run takes turns until ctx ends, then returns nil. The only error is ErrSocketReplaced.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { a.cfg.Node.Watch(ctx, a.Update) })
	defer watch.Wait()
	defer cancel()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		case <-timer.C:
		}
		pause, err := a.Turn(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		timer.Reset(pause)
	}
}

// Woken returns the channel that asks for a turn before the pause of the last one is over.
func (a *Agent) Woken() <-chan struct{} { return a.wake }

// Update takes over the node's state from a watch; nil means that the node is gone. It wakes Run if the marks changed,
// and drops a state that is older than the known one.
func (a *Agent) Update(s *Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.newest
	if s != nil && old != nil && s.UID == old.UID && !s.newerThan(old) {
		return
	}
	a.newest = s
	a.updates++
	if s == nil && old == nil || s != nil && s.sameMarks(old) {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// look returns the newest state of the node: the known one, or a live one if that is due.
func (a *Agent) look(ctx context.Context, now time.Time) (*Snapshot, error) {
	a.mu.Lock()
	known, updates := a.newest, a.updates
	a.mu.Unlock()
	if known != nil && !a.mustLook && now.Before(a.lookAt) {
		return known, nil
	}
	got, err := a.cfg.Node.Get(ctx)
	if err != nil {
		// An intent that this process has begun goes on without a live read: the controller doesn't cancel it any more, and
		// the node is out of service meanwhile.
		if known == nil || a.mustLook && !a.begun(known) {
			return nil, err
		}
		// The read was only a precaution, so it can wait until the proxy answers again.
		a.log.WithField(telemetry.FieldError, err).Debug("Could not read the node live")
		a.lookAt = now.Add(backoffMost)
		return known, nil
	}
	a.looking.over()
	a.mustLook = false
	a.lookAt = now.Add(jitter(a.cfg.LiveEvery, 0.1, a.cfg.Rand()))
	a.mu.Lock()
	defer a.mu.Unlock()
	// A live read counts even if its resource version is lower: those of a restored etcd begin in the past. Only an update
	// during the read may be newer.
	if a.newest == nil || a.updates == updates || a.newest.UID == got.UID && got.newerThan(a.newest) {
		a.newest = got
	}
	a.probes.node = true
	return a.newest, nil
}

// begun reports whether this process wrote busy for the intent on the node.
func (a *Agent) begun(known *Snapshot) bool {
	id := known.Annotations[string(marker.KeyIntentID)]
	return id != "" && a.memory.IsAffirmed(id)
}

// adopt takes over the answer to a write of this agent.
func (a *Agent) adopt(s *Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest == nil || s.newerThan(a.newest) {
		a.newest = s
	}
}
