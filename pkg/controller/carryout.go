package controller

import (
	"context"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// carryOut does what the plan says, in the order of plan.Work. It returns the first error that isn't one node's; tasks
// after a failed one were done all the same.
func (t *Term) carryOut(ctx context.Context, s fleet.Snapshot, out plan.Plan) error {
	var first error
	slow := 0
	work := plan.NewWork(out)
	for task, more := work.Next(); more; task, more = work.Next() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if writes(task.Step) && t.troubled(task.Step.UID) {
			t.writeAside(ctx, task)
			work.Did(false)
			continue
		}
		if writes(task.Step) && slow == slowWrites {
			work.Did(false)
			t.Changed()
			continue
		}
		done, err := t.do(ctx, s, task)
		work.Did(done && err == nil)
		switch {
		case err != nil && writes(task.Step) && t.failed(task.Step, err, writeTime):
			if kube.Slow(err) {
				slow++
			}
		case errors.Is(err, kube.ErrConflict):
			// Another writer was faster, which is no trouble: look again.
			t.Changed()
		case err != nil && first == nil:
			first = err
		}
	}
	return first
}

// do carries out one task and reports whether its answer is yes.
func (t *Term) do(ctx context.Context, s fleet.Snapshot, task plan.Task) (bool, error) {
	step := task.Step
	switch task.Kind {
	case plan.TaskTakeSlots, plan.TaskFreeSlots:
		if len(task.Take) > 0 && t.c.Leading != nil && !t.c.Leading() {
			// What was planned from may be old: another leader may have brought back a node whose slot is lent here.
			t.Changed()
			return false, nil
		}
		err := t.c.Cluster.ChangeSlots(ctx, task.Take, task.Free)
		if err != nil {
			// What is not freed here the next pass finds without a disruption, and fences.
			t.c.Cluster.ForgetSlots()
		}
		if task.Kind == plan.TaskFreeSlots {
			t.Changed()
		}
		return err == nil, err
	case plan.TaskRecordPolicy:
		return t.recorded(t.c.Cluster.RecordPolicy(ctx, s.Now))
	case plan.TaskRecordVersions:
		return t.recorded(t.c.Cluster.RecordVersions(ctx, task.Saw, task.Named, s.Now))
	case plan.TaskDrain:
		t.drain(ctx, s, step)
		return true, nil
	case plan.TaskLookAhead:
		t.look(ctx, step)
		return true, nil
	case plan.TaskAskAlerts:
		t.askAlerts(ctx)
		return true, nil
	case plan.TaskCheck:
		t.check(ctx, s, step)
		return true, nil
	case plan.TaskLook, plan.TaskWrite:
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if task.Kind != plan.TaskWrite {
		return t.lookBefore(ctx, task)
	}
	if err := t.c.Cluster.Write(ctx, step.Node, step.Change); err != nil {
		return false, err
	}
	t.mu.Lock()
	delete(t.conflicts, step.UID)
	t.mu.Unlock()
	if step.Act == intent.ActCordon {
		t.noteTakenOut(step.UID, s.Now)
	}
	t.Changed()
	t.announceWrite(step)
	return true, nil
}

// recorded takes in how a write to the controller's own object went.
func (t *Term) recorded(err error) (bool, error) {
	if err != nil {
		t.c.Cluster.ForgetSlots()
	}
	return err == nil, err
}
