package authorizer

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

// wall finds out, once in a process, whether an admission policy holds the proxy's account to what agents may write.
// The proxy judges every write itself; the wall is for the case that it is the proxy that was taken over. Its zero
// value asks nothing.
type wall struct {
	walled  func(ctx context.Context, node string) (bool, error)
	missing prometheus.Gauge
	log     logrus.FieldLogger
	asked   atomic.Bool
}

// ask begins the question on a node that is known to be there, unless it was asked. An error leaves it to the next
// request.
func (w *wall) ask(ctx context.Context, node string) {
	if w.walled == nil || !w.asked.CompareAndSwap(false, true) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		walled, err := w.walled(ctx, node)
		switch {
		case err != nil:
			w.log.WithError(err).Debug("Could not find out whether the admission policy stands")
			w.asked.Store(false)
		case !walled:
			w.missing.Set(1)
			w.log.Error("No admission policy holds the proxy's account to what agents may write: apply update-operator.yaml whole, " +
				"and see that the policy update-operator-proxy matches this account")
		}
	}()
}
