package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// writeTime is how long a pass waits for the write to one node, and for the look right before it: far more than a
	// loaded API server takes, and little enough for all the others to wait for it.
	writeTime = 5 * time.Second
	// asideTime bounds a write that no pass waits for. An API server that is slow with every request gets on by these.
	asideTime = 30 * time.Second
	// slowWrites is how many writes one pass waits for that take too long. What is left to write then the next pass does,
	// which waits for none of those nodes. So a pass takes slowWrites times writeTime longer, however many nodes are slow.
	slowWrites = 3
	// writeSoon is for how long a node is left alone after a write that failed, doubled by each further one up to
	// writeLate.
	writeSoon = 5 * time.Second
	writeLate = 5 * time.Minute
	// calmAfter is how long after that without another failure a node is written to as any other is.
	calmAfter = 5 * time.Minute
	// conflictRow is how many conflicts in a row are trouble. One or two are met wherever a kubelet, an agent or another
	// leader writes to the node at the same moment; so many only where something doesn't stop writing to it.
	conflictRow = 10
)

// conflicts is a row of writes to one node that each met a conflict, with no success in between.
type conflicts struct {
	count       int
	first, last time.Time
}

// troubleAt returns the trouble with the writes to a node as it is now; nil if it is over. No time of it is further
// away than it was when it was set: the clock may have run ahead then.
func troubleAt(w *work[fleet.WriteTrouble], now time.Time) *fleet.WriteTrouble {
	if w == nil || !w.running && !now.Before(w.found.ClearAt) {
		return nil
	}
	for _, t := range []struct {
		at   *time.Time
		away time.Duration
	}{{&w.found.Since, 0}, {&w.found.Until, w.pause}, {&w.found.ClearAt, w.pause + calmAfter}} {
		if latest := now.Add(t.away); t.at.After(latest) {
			*t.at = latest
		}
	}
	trouble := *w.found
	trouble.InFlight = w.running
	return &trouble
}

// writes reports whether carrying out the step writes to its node.
func writes(step plan.Step) bool { return step.Change != nil }

// troubled reports whether writes to a node had trouble lately.
func (t *Term) troubled(uid string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writing[uid] != nil
}

// failed notes that a write, or the look right before it, failed for this node, in the time that it was given. It
// reports whether that is trouble of this one node: that the API server can't be reached, or has too much to do, is
// not, nor is a conflict before there are conflictRow of them.
func (t *Term) failed(step plan.Step, err error, within time.Duration) bool {
	now := t.c.Now()
	message, since := "", now
	if errors.Is(err, kube.ErrConflict) {
		row := t.conflicted(step.UID, now)
		if row.count < conflictRow {
			return false
		}
		message = fmt.Sprintf("something writes to the Node all the time: %d writes in a row met a conflict", conflictRow)
		since = row.first
	} else if kube.Slow(err) {
		message = fmt.Sprintf("the API server has not answered within %s", within)
	} else if said := kube.Answer(err); said != "" {
		message = "the API server refuses a write: " + said
	}
	if message == "" {
		return false
	}
	t.mu.Lock()
	w := t.writing.on(step.UID, time.Time{})
	if w.found == nil {
		w.found = &fleet.WriteTrouble{}
	}
	w.backOff(writeSoon, writeLate)
	w.found.Message, w.found.Until = message, now.Add(w.pause)
	w.found.ClearAt = w.found.Until.Add(calmAfter)
	if w.found.Since.IsZero() {
		w.found.Since = since
	}
	t.mu.Unlock()
	t.log(step).WithError(err).Warn("A write to a node failed and will be repeated")
	t.Changed()
	return true
}

// conflicted counts a conflict and returns the row that it belongs to.
func (t *Term) conflicted(uid string, now time.Time) conflicts {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.conflicts[uid]
	if row == nil {
		row = &conflicts{first: now}
		t.conflicts[uid] = row
	}
	row.count++
	row.last = now
	return *row
}

// writeAside begins to carry out a task on a node whose writes had trouble.
func (t *Term) writeAside(ctx context.Context, task plan.Task) {
	begin(t, t.writing, task.Step.UID, time.Time{}, func() func(*work[fleet.WriteTrouble]) {
		ctx, cancel := context.WithTimeout(ctx, asideTime)
		defer cancel()
		wrote, err := t.writeLooking(ctx, task)
		noted := err != nil && t.failed(task.Step, err, asideTime)
		return func(w *work[fleet.WriteTrouble]) {
			switch {
			case wrote:
				w.found.Since, w.pause = time.Time{}, 0
				delete(t.conflicts, task.Step.UID)
				t.wrote = append(t.wrote, task.Step)
			case err != nil && !noted && !errors.Is(err, kube.ErrConflict):
				w.pause = max(w.pause, writeSoon)
				w.found.Until = t.c.Now().Add(w.pause)
			}
		}
	})
}

// writeLooking looks live before it writes: what the last write came to may not be known, and no decision is taken on
// what may be older than that.
func (t *Term) writeLooking(ctx context.Context, task plan.Task) (wrote bool, err error) {
	step := task.Step
	n, there, err := t.c.Cluster.Live(ctx, step.Node)
	if err != nil {
		return false, err
	}
	if !there || n.ResourceVersion != step.Change.ResourceVersion {
		return false, kube.ErrConflict
	}
	if yes, err := t.lookBefore(ctx, task); err != nil || !yes {
		return false, err
	}
	err = t.c.Cluster.Write(ctx, step.Node, step.Change)
	return err == nil, err
}

// fenced looks live that no cordon of the step's node is under way, or was made.
func (t *Term) fenced(ctx context.Context, step plan.Step) (bool, error) {
	n, there, err := t.c.Cluster.Live(ctx, step.Node)
	return there && n.UID == step.UID && !n.Disrupted() && n.Phase() != intent.PhaseStaged, err
}

// lookBefore is the live look that goes before some writes.
func (t *Term) lookBefore(ctx context.Context, task plan.Task) (bool, error) {
	if task.Kind != plan.TaskLook {
		return true, nil
	}
	switch task.Step.Before {
	case plan.LookAlone:
		return t.c.Cluster.Alone(ctx, task.Step.UID)
	case plan.LookEmpty:
		return t.stillEmpty(ctx, task.Step)
	case plan.LookGone:
		there, err := t.c.Cluster.Exists(ctx, task.Step.Node, task.Step.UID)
		return !there, err
	case plan.LookFenced:
		return t.fenced(ctx, task.Step)
	default:
		return true, nil
	}
}

// announceWrites writes the Events of writes that no pass waited for.
func (t *Term) announceWrites() {
	t.mu.Lock()
	wrote := t.wrote
	t.wrote = nil
	t.mu.Unlock()
	for _, step := range wrote {
		t.announceWrite(step)
	}
}

func (t *Term) announceWrite(step plan.Step) {
	t.c.Metrics.step(step)
	t.log(step).WithField(telemetry.FieldMessage, step.Message).Info("Carried out a step")
	t.announceStep(step)
}

// forgetWriting ends what is over, and what is of nodes that are gone. A row of conflicts is over when none was added
// to it for as long as trouble lasts: what was to be written has been done by another, or is not wanted any more.
func (t *Term) forgetWriting(s fleet.Snapshot) {
	here := map[string]bool{}
	for i := range s.Nodes {
		here[s.Nodes[i].UID] = true
	}
	maps.DeleteFunc(t.writing, func(uid string, w *work[fleet.WriteTrouble]) bool {
		return !w.running && (!here[uid] || !s.Now.Before(w.found.ClearAt))
	})
	maps.DeleteFunc(t.conflicts, func(uid string, row *conflicts) bool {
		return !here[uid] || s.Now.Sub(row.last) >= writeLate+calmAfter
	})
}
