package access

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// testTime bounds a test.
const testTime = 20 * time.Second

// Enforcer tests now and then whether admission policies restrict an account. Each program judges its own writes; the
// policies still hold if an attacker controls it.
type Enforcer struct {
	// Test is Restricted, or one of its kind, for the account; nil: nothing is tested.
	Test func(ctx context.Context, node string) (bool, error)
	// Missing is 1 while a policy is missing.
	Missing prometheus.Gauge
	// Say tells of that in the log: which policies, and what to do.
	Say func(log logrus.FieldLogger)
	Log logrus.FieldLogger
	Now func() time.Time

	mu    sync.Mutex
	known Enforcement
}

// Ask begins a test, if one is due, on a node that exists.
func (e *Enforcer) Ask(ctx context.Context, node string) {
	if e.Test == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Now()
	if now.Before(e.known.Next) {
		return
	}
	e.known.Next = now.Add(testTime)
	go e.test(ctx, node)
}

func (e *Enforcer) test(ctx context.Context, node string) {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	inForce, err := e.Test(ctx, node)
	if err != nil {
		e.Log.WithError(err).Debug("Could not find out whether the admission policies are in force")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known = e.known.Tested(e.Now(), inForce, err)
	if !e.known.Missing {
		e.Missing.Set(0)
		return
	}
	e.Missing.Set(1)
	if err == nil {
		e.Say(e.Log)
	}
}
