package controller

import (
	"context"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

// recordAgain is the pause after what is remembered of rollouts could not be written.
const recordAgain = 10 * time.Second

// rollouts is what a term remembers of them. Only the passing goroutine writes to it.
type rollouts struct {
	log rollout.Log
	// kept is what stands in the controller's own object, as far as this process knows.
	kept string
	// again is when to try to write, after that failed.
	again time.Time
}

// account takes into the account of rollouts what a pass has planned, and writes it down where that is due. It returns
// when to try again.
func (t *Term) account(ctx context.Context, s *fleet.Snapshot, out *plan.Plan) time.Time {
	r := t.rollouts
	if s.Rollouts != r.kept {
		// Another leader has written since, or this one has not looked yet.
		r.log, r.kept = rollout.Decode(s.Rollouts), s.Rollouts
	}
	if r.log.Idle() && !rollout.Moves(out) && !r.log.Due() {
		t.keep(r)
		return time.Time{}
	}
	census := rollout.Count(s, out)
	r.log = r.log.Next(&census, s.Now)
	switch {
	case !r.log.Due():
		r.again = time.Time{}
	case s.Now.Before(r.again):
	default:
		text := r.log.Encode()
		if err := t.c.Cluster.RecordRollouts(ctx, text); err != nil {
			t.c.Log.WithError(err).Debug("What is remembered of rollouts could not be recorded")
			t.c.Cluster.ForgetSlots()
			r.again = s.Now.Add(recordAgain)
			break
		}
		r.log, r.kept, r.again = r.log.Written(), text, time.Time{}
	}
	t.keep(r)
	return r.again
}

func (t *Term) keep(r rollouts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollouts = r
}

// remembered returns the rollouts that are remembered.
func (t *Term) remembered() []plan.Rollout {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.rollouts.log.Rollouts)
}
