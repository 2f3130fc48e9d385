package controller

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
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
func (t *Term) look(ctx context.Context, step plan.Step) {
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
		// It tells of this moment, however long the process is held up in the middle of it.
		found := fleet.Forecast{At: t.c.Now()}
		var err error
		found.Obstacle, found.Message, err = t.c.Drainer.Forecast(ctx, step.Node, *step.Eviction)
		if err == nil && found.Obstacle == fleet.ObstacleNone && step.Check != nil {
			var checked fleet.Checked
			checked, err = t.c.Cluster.Check(ctx, step.Node, *step.Check)
			found.Workloads = checked.Workloads
		}
		if err != nil {
			found.Obstacle, found.Message = fleet.ObstacleUnknown, err.Error()
		}
		t.foreseen(l, found)
	})
}

func (t *Term) foreseen(l *looking, found fleet.Forecast) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.running = false
	switch {
	case found.Obstacle == fleet.ObstacleNone:
		l.pause = 0
	case l.pause == 0:
		l.pause = lookSoon
	default:
		l.pause = min(2*l.pause, lookLate)
	}
	found.Next = t.c.Now().Add(l.pause)
	l.found = &found
	t.Changed()
}
