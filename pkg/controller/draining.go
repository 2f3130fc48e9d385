package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const (
	// drainSoon is the pause after a pass that made headway, doubled by each that made none up to drainLate.
	drainSoon = 200 * time.Millisecond
	drainLate = 5 * time.Second
)

// draining is what this process knows of one node's drain.
type draining struct {
	// since tells one disruption of a node from the next.
	since   time.Time
	running bool
	found   *fleet.Drain
	pause   time.Duration
}

// disruptedSince tells the disruption of a step's node from the next.
func disruptedSince(s fleet.Snapshot, step plan.Step) time.Time {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.UID == step.UID && n.Marks.Disruption != nil {
			return n.Marks.Disruption.Since
		}
	}
	return time.Time{}
}

// drain starts one eviction pass, unless one is under way. Its end asks for another pass of the term.
func (t *Term) drain(ctx context.Context, s fleet.Snapshot, step plan.Step) {
	since := disruptedSince(s, step)
	t.mu.Lock()
	d := t.drains[step.UID]
	if d == nil || !d.since.Equal(since) && !d.running {
		d = &draining{since: since}
		t.drains[step.UID] = d
	}
	if d.running {
		t.mu.Unlock()
		return
	}
	d.running = true
	t.mu.Unlock()
	t.c.Spawn(func() {
		ours, err := t.inOurHands(ctx, step, since)
		if err == nil && !ours {
			t.forgo(d)
			return
		}
		var r drain.Result
		if err == nil {
			r, err = t.c.Drainer.Pass(ctx, step.Node, *step.Eviction, step.Force, step.Most)
			t.noteEvicted(step.UID, r.Gone)
		}
		found := &fleet.Drain{Remaining: r.Remaining(), Blocked: r.BlockedBy, Hopeless: r.Hopeless, Forced: step.Force, Awaited: r.Awaited, Waiting: r.Goes}
		if err != nil {
			found.Failed = err.Error()
		}
		t.found(d, found, r.Evicted > 0)
		if found.Remaining > 0 {
			t.forgetVolumes(step.UID)
		}
	})
}

// inOurHands looks live: a watch that is late shows nodes as drained by us that were given back, freed by
// somebody, or made again under the same name, and whose pods are no business of ours any more.
func (t *Term) inOurHands(ctx context.Context, step plan.Step, since time.Time) (bool, error) {
	n, ok, err := t.c.Cluster.Live(ctx, step.Node)
	if err != nil {
		return false, err
	}
	return ok && n.UID == step.UID && n.Unschedulable && n.Disrupted() && n.Marks.Disruption.Since.Equal(since), nil
}

// forgo ends a pass that wasn't made: the next pass of the term decides on what was seen instead.
func (t *Term) forgo(d *draining) {
	t.mu.Lock()
	d.running = false
	t.mu.Unlock()
	t.Changed()
}

func (t *Term) found(d *draining, found *fleet.Drain, headway bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.running = false
	before := d.found
	switch {
	case headway || before == nil || found.Failed == "" && found.Remaining < before.Remaining:
		d.pause = drainSoon
	default:
		d.pause = min(2*d.pause, drainLate)
	}
	found.Next = t.c.Now().Add(d.pause)
	if found.Waiting != "" && found.Remaining > 1 {
		found.Waiting = fmt.Sprintf("%s, %d pods to go", found.Waiting, found.Remaining)
	}
	d.found = found
	t.Changed()
}

// stillEmpty lists live, just before a reboot is asked for, that nothing is left to evict.
func (t *Term) stillEmpty(ctx context.Context, step plan.Step) (bool, error) {
	pods, err := t.c.Drainer.Pods(ctx, step.Node, *step.Eviction)
	if err != nil {
		return false, err
	}
	if len(pods) == 0 {
		return true, nil
	}
	t.mu.Lock()
	d := t.drains[step.UID]
	t.mu.Unlock()
	t.forgetVolumes(step.UID)
	if d != nil {
		t.found(d, &fleet.Drain{Remaining: len(pods), Waiting: fmt.Sprintf("pod %s/%s came late", pods[0].Namespace, pods[0].Name)}, true)
	}
	return false, nil
}
