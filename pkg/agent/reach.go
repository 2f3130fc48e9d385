package agent

import (
	"sync"
	"time"

	"github.com/pkg/errors"
)

const (
	// deafAfter is how long a watch may fail to begin again before the agent counts as deaf. A proxy that is replaced is
	// away for less.
	deafAfter = 30 * time.Second
	// silentAfter is longer than any watch lasts: the API server ends each after ten minutes at most.
	silentAfter = 11 * time.Minute
)

// reach keeps account of whether the agent would hear of a new intent: whether its watch of the node stands, by what came
// through it last.
type reach struct {
	now func() time.Time

	mu sync.Mutex
	// heard is when something came through the watch last, failing since when none could be begun, and why the last
	// reason.
	heard, failing time.Time
	why            error
}

func (r *reach) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard, r.failing, r.why = r.now(), time.Time{}, nil
}

func (r *reach) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing.IsZero() {
		r.failing = r.now()
	}
	r.why = err
}

// err says why a new intent would not be heard; nil if it would.
func (r *reach) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	switch {
	case r.why != nil && (r.heard.IsZero() || now.Sub(r.failing) >= deafAfter):
		return errors.WithMessage(r.why, "the node can't be watched through the proxy")
	case !r.heard.IsZero() && now.Sub(r.heard) >= silentAfter:
		return errors.Errorf("nothing has come through the watch of the node for %s", now.Sub(r.heard).Round(time.Second))
	}
	return nil
}
