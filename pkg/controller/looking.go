package controller

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	// lookSoon is the pause after a look that found something in the way, doubled by each further one up to lookLate.
	lookSoon = 5 * time.Second
	lookLate = 5 * time.Minute
)

// looking is what this process knows of what stands in the way of one node's drain.
type looking struct {
	running bool
	found   *fleet.Forecast
	pause   time.Duration
}

// look begins a look ahead, unless one is under way. Its end asks for another pass of the term.
func (t *Term) look(ctx context.Context, step policy.Step) {
	t.mu.Lock()
	l := t.looks[step.UID]
	if l == nil {
		l = &looking{}
		t.looks[step.UID] = l
	}
	if l.running {
		t.mu.Unlock()
		return
	}
	l.running = true
	t.mu.Unlock()
	t.c.Spawn(func() {
		obstacle, message, err := t.c.Drainer.Forecast(ctx, step.Node, *step.Eviction)
		if err != nil {
			obstacle, message = fleet.ObstacleUnknown, err.Error()
		}
		t.foreseen(l, obstacle, message)
	})
}

func (t *Term) foreseen(l *looking, o fleet.Obstacle, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.running = false
	switch {
	case o == fleet.ObstacleNone:
		l.pause = 0
	case l.pause == 0:
		l.pause = lookSoon
	default:
		l.pause = min(2*l.pause, lookLate)
	}
	now := t.c.Now()
	l.found = &fleet.Forecast{At: now, Next: now.Add(l.pause), Obstacle: o, Message: message}
	t.Changed()
}
