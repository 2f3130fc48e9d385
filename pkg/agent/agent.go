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

// ErrSocketReplaced ends Run: the socket that was mounted into this pod leads nowhere any more. A
// restart of the pod mounts the one that the host made since.
var ErrSocketReplaced = errors.New("the host has replaced its API socket, only a restart mounts the new one")

// Agent is the loop of one node. Turn and Run are for one goroutine; See, Ready and Healthy for any.
type Agent struct {
	cfg Config
	log logrus.FieldLogger

	mu sync.Mutex
	// newest is the latest version of the node that is known; nil when there is none.
	newest *Seen
	// arrivals counts what See took over.
	arrivals int
	probes   probes

	wake chan struct{}

	// The rest belongs to Turn.

	memory next.Memory
	// mustLook: what is known of the node was found to be old, or a write's fate is open.
	mustLook bool
	// lookAt is when the node is to be read live.
	lookAt time.Time
	// written is the answer that was accepted last.
	written string
	// factsSince is since when the facts on the node have been wrong.
	factsSince time.Time
	// unreadable is what couldn't be read of the intent, as logged last.
	unreadable string

	looking, writing, hosting pace
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
	watch.Go(func() { a.cfg.Node.Watch(ctx, a.See) })
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

// Woken returns the channel that asks for a turn before the last one's pause is over.
func (a *Agent) Woken() <-chan struct{} { return a.wake }

// See takes in what a watch saw of the node; nil means that it is gone. It wakes Run if the marks are
// others than before. What is older than what is known is dropped.
func (a *Agent) See(s *Seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.newest
	if s != nil && old != nil && s.UID == old.UID && !s.newerThan(old) {
		return
	}
	a.newest = s
	a.arrivals++
	if s == nil && old == nil || s != nil && s.sameMarks(old) {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// look returns the newest version of the node: what is known, or a live one if that is due.
func (a *Agent) look(ctx context.Context, now time.Time) (*Seen, error) {
	a.mu.Lock()
	known, arrivals := a.newest, a.arrivals
	a.mu.Unlock()
	if known != nil && !a.mustLook && now.Before(a.lookAt) {
		return known, nil
	}
	got, err := a.cfg.Node.Get(ctx)
	if err != nil {
		// What this process has begun goes on by what is known: the controller takes it back no more, and the node serves
		// nothing meanwhile.
		if known == nil || a.mustLook && !a.begun(known) {
			return nil, err
		}
		// This was only to make sure, so it can wait until the proxy answers again.
		a.log.WithField(telemetry.FieldError, err).Debug("Could not read the node live")
		a.lookAt = now.Add(paceMost)
		return known, nil
	}
	a.looking.over()
	a.mustLook = false
	a.lookAt = now.Add(jitter(a.cfg.LiveEvery, 0.1, a.cfg.Rand()))
	a.mu.Lock()
	defer a.mu.Unlock()
	// A live read counts even if its resource version is lower: a restored etcd counts from the past.
	// Only what arrived during the read may be newer.
	if a.newest == nil || a.arrivals == arrivals || a.newest.UID == got.UID && got.newerThan(a.newest) {
		a.newest = got
	}
	a.probes.node = true
	return a.newest, nil
}

// begun reports whether this process wrote busy for the intent that stands there.
func (a *Agent) begun(known *Seen) bool {
	id := known.Annotations[string(marker.KeyIntentID)]
	return id != "" && a.memory.IsAffirmed(id)
}

// adopt takes in the answer to an own write.
func (a *Agent) adopt(s *Seen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest == nil || s.newerThan(a.newest) {
		a.newest = s
	}
}
