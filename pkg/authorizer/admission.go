package authorizer

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

const (
	// The next test comes after admissionAgain if the policy is in force, and after admissionMissing if it is not or the
	// test failed. It comes after admissionDoubt when it is missing for the first time: an API server enforces a policy
	// some seconds after it was applied.
	admissionDoubt   = 10 * time.Second
	admissionAgain   = time.Hour
	admissionMissing = 5 * time.Minute
)

// admission tests whether an admission policy restricts the proxy's account to what agents may write. The proxy judges
// every write itself; the policy is for the case that the proxy was taken over. Without restricted nothing is tested.
type admission struct {
	restricted func(ctx context.Context, node string) (bool, error)
	missing    prometheus.Gauge
	log        logrus.FieldLogger
	now        func() time.Time

	mu      sync.Mutex
	next    time.Time
	doubted bool
}

// ask begins a test, if it is time for one, on a node that is known to exist.
func (w *admission) ask(ctx context.Context, node string) {
	if w.restricted == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Before(w.next) {
		return
	}
	w.next = now.Add(admissionMissing)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		stands, err := w.restricted(ctx, node)
		switch {
		case err != nil:
			w.log.WithError(err).Debug("Could not find out whether the admission policy stands")
			return
		case !stands && w.doubt():
			return
		case !stands:
			w.missing.Set(1)
			w.log.Error("No admission policy holds the proxy's account to what agents may write: apply update-operator.yaml whole, " +
				"and see that the policy update-operator-proxy matches this account")
			return
		}
		w.missing.Set(0)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.next, w.doubted = now.Add(admissionAgain), false
	}()
}

// doubt reports whether the policy is missing for the first time, and sets the next test soon.
func (w *admission) doubt() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubted {
		return false
	}
	w.doubted, w.next = true, w.now().Add(admissionDoubt)
	return true
}
