package agent

import (
	"sync"
	"time"

	"github.com/pkg/errors"
)

const (
	// failedAfter is how long a watch may fail to begin again before it counts as failed. The replacement of a proxy takes
	// less.
	failedAfter = 30 * time.Second
	// silentAfter is longer than any watch lasts: the API server ends each after ten minutes at most.
	silentAfter = 11 * time.Minute
)

// watchState is whether a new intent would reach the agent: whether its watch of the node works, by the last events.
type watchState struct {
	now func() time.Time

	mu sync.Mutex
	// last is when the last event came through the watch.
	last time.Time
	// failing is since when no watch could be begun; zero if one could. why is the last error.
	failing time.Time
	why     error
}

func (w *watchState) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.failing, w.why = w.now(), time.Time{}, nil
}

func (w *watchState) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing.IsZero() {
		w.failing = w.now()
	}
	w.why = err
}

// err returns why a new intent would not reach the agent; nil if it would.
func (w *watchState) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	switch {
	case w.why != nil && (w.last.IsZero() || now.Sub(w.failing) >= failedAfter):
		return errors.WithMessage(w.why, "the node can't be watched through the proxy")
	case !w.last.IsZero() && now.Sub(w.last) >= silentAfter:
		return errors.Errorf("nothing has come through the watch of the node for %s", now.Sub(w.last).Round(time.Second))
	}
	return nil
}
