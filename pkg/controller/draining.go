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

// disruptedSince identifies the disruption of a step's node.
func disruptedSince(s fleet.Snapshot, step plan.Step) time.Time {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.UID == step.UID && n.Marks.Disruption != nil {
			return n.Marks.Disruption.Since
		}
	}
	return time.Time{}
}

// drain begins one eviction pass.
func (t *Term) drain(ctx context.Context, s fleet.Snapshot, step plan.Step) {
	since := disruptedSince(s, step)
	begin(t, t.drains, step.UID, since, func() func(*work[fleet.Drain]) {
		ours, err := t.stillDisrupted(ctx, step, since)
		if err == nil && !ours {
			// The next pass decides on what was seen instead.
			return func(*work[fleet.Drain]) {}
		}
		var r drain.Result
		if err == nil {
			r, err = t.c.Drainer.Pass(ctx, step.Node, *step.Eviction, step.Force, step.Most)
			t.noteEvicted(step.UID, r.Gone)
			t.c.Metrics.evicted(r)
		}
		found := &fleet.Drain{Remaining: r.Remaining(), Blocked: r.BlockedBy, Unevictable: r.Unevictable, Forced: step.Force, Awaited: r.Awaited, Waiting: r.Goes}
		if err != nil {
			found.Failed = err.Error()
		}
		return func(d *work[fleet.Drain]) { t.drained(step.UID, d, found, r.Evicted > 0) }
	})
}

// stillDisrupted looks live: a watch that lags shows nodes as drained by the operator that were uncordoned since, or
// made again under the same name, and whose pods must not be evicted any more.
func (t *Term) stillDisrupted(ctx context.Context, step plan.Step, since time.Time) (bool, error) {
	n, ok, err := t.c.Cluster.Live(ctx, step.Node)
	if err != nil {
		return false, err
	}
	return ok && n.UID == step.UID && n.Unschedulable && n.Disrupted() && n.Marks.Disruption.Since.Equal(since), nil
}

// drained takes in what is left on a node. The caller holds t.mu.
func (t *Term) drained(uid string, d *work[fleet.Drain], found *fleet.Drain, headway bool) {
	if before := d.found; headway || before == nil || found.Failed == "" && found.Remaining < before.Remaining {
		d.pause = 0
	}
	d.backOff(drainSoon, drainLate)
	found.Next = t.c.Now().Add(d.pause)
	if found.Waiting != "" && found.Remaining > 1 {
		found.Waiting = fmt.Sprintf("%s, %d pods to go", found.Waiting, found.Remaining)
	}
	d.found = found
	if volumes := t.checks[uid]; found.Remaining > 0 && volumes != nil && volumes.found != nil && volumes.found.For == fleet.CheckVolumes {
		// They are looked at anew: the pods that are left may have brought some.
		volumes.found = nil
	}
}

// stillEmpty lists live, just before a reboot is asked for, that nothing is left to evict.
func (t *Term) stillEmpty(ctx context.Context, step plan.Step) (bool, error) {
	pods, err := t.c.Drainer.Pods(ctx, step.Node, *step.Eviction)
	if err != nil || len(pods) == 0 {
		return err == nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d := t.drains[step.UID]; d != nil {
		t.drained(step.UID, d, &fleet.Drain{Remaining: len(pods), Waiting: fmt.Sprintf("pod %s/%s came after the drain", pods[0].Namespace, pods[0].Name)}, true)
		t.Changed()
	}
	return false, nil
}
