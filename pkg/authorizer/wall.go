package authorizer

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

const (
	// wallAgain is when the wall is asked for again once it stood, and wallMissing when it did not, or that could not be
	// found out. wallDoubt is after the first time that it did not stand: an API server takes a policy that was just
	// applied into force some seconds later.
	wallDoubt   = 10 * time.Second
	wallAgain   = time.Hour
	wallMissing = 5 * time.Minute
)

// wall finds out whether an admission policy holds the proxy's account to what agents may write. The proxy judges every
// write itself; the wall is for the case that it is the proxy that was taken over. One without walled asks nothing.
type wall struct {
	walled  func(ctx context.Context, node string) (bool, error)
	missing prometheus.Gauge
	log     logrus.FieldLogger
	now     func() time.Time

	mu      sync.Mutex
	next    time.Time
	doubted bool
}

// ask begins the question, if it is time for it, on a node that is known to be there.
func (w *wall) ask(ctx context.Context, node string) {
	if w.walled == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Before(w.next) {
		return
	}
	w.next = now.Add(wallMissing)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		stands, err := w.walled(ctx, node)
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
		w.next, w.doubted = now.Add(wallAgain), false
	}()
}

// doubt reports whether it is the first time that the wall does not stand, and has it asked for again soon.
func (w *wall) doubt() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubted {
		return false
	}
	w.doubted, w.next = true, w.now().Add(wallDoubt)
	return true
}
