package controller

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const (
	// checkSoon is the pause after a look that didn't find all well, doubled by each further one up to checkLate.
	checkSoon = time.Second
	checkLate = 10 * time.Second
)

// checking is what this process has seen of what one node carries.
type checking struct {
	// since tells one disruption of a node from the next.
	since   time.Time
	running bool
	found   *fleet.Checked
	pause   time.Duration
}

// check starts one live look, unless one is under way. Its end asks for another pass of the term.
func (t *Term) check(ctx context.Context, s fleet.Snapshot, step plan.Step) {
	since := disruptedSince(s, step)
	t.mu.Lock()
	l := t.checks[step.UID]
	if l == nil || !l.since.Equal(since) && !l.running {
		l = &checking{since: since}
		t.checks[step.UID] = l
	}
	if l.running {
		t.mu.Unlock()
		return
	}
	l.running = true
	t.mu.Unlock()
	t.c.Spawn(func() {
		found, err := t.c.Cluster.Check(ctx, step.Node, *step.Check)
		if err != nil {
			found.Failed = err.Error()
		}
		found.For = step.Check.For
		t.mu.Lock()
		defer t.mu.Unlock()
		l.running = false
		if l.found == nil || l.found.For != found.For {
			l.pause = 0
		}
		l.pause = min(max(2*l.pause, checkSoon), checkLate)
		found.At = t.c.Now()
		found.Next = found.At.Add(l.pause)
		l.found = &found
		t.Changed()
	})
}

// forgetVolumes makes volumes be looked at anew: pods that were found late may have brought some.
func (t *Term) forgetVolumes(uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.checks[uid]; l != nil && l.found != nil && l.found.For == fleet.CheckVolumes {
		l.found = nil
	}
}
