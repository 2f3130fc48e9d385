package controller

import (
	"context"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// carryOut does what the plan says: slots are taken before the first cordon and freed after the write
// that ends a disruption, each in one compare-and-swap. It returns the first error.
func (t *Term) carryOut(ctx context.Context, s fleet.Snapshot, out policy.Outcome) error {
	var first error
	failed := func(err error) {
		if errors.Is(err, kube.ErrConflict) {
			// Somebody else was faster, which is no trouble: look again.
			t.Changed()
			return
		}
		if first == nil {
			first = err
		}
	}
	granted, err := t.takeSlots(ctx, s, out)
	if err != nil {
		failed(err)
	}
	var free []string
	for _, step := range out.Steps {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if step.TakesSlot && !granted {
			continue
		}
		done, err := t.step(ctx, s, step)
		if err != nil {
			failed(err)
			continue
		}
		if done && step.FreesSlot {
			free = append(free, step.UID)
		}
	}
	if len(free) > 0 {
		if err := t.c.Cluster.ChangeSlots(ctx, nil, free); err != nil {
			// The next pass finds slots without a disruption and fences them.
			t.c.Cluster.ForgetSlots()
			failed(err)
		}
		t.Changed()
	}
	return first
}

// takeSlots writes all slots that the plan grants, or none.
func (t *Term) takeSlots(ctx context.Context, s fleet.Snapshot, out policy.Outcome) (bool, error) {
	add := map[string]string{}
	for _, step := range out.Steps {
		if _, held := s.Slots[step.UID]; step.TakesSlot && !held {
			add[step.UID] = step.Node
		}
	}
	if len(add) == 0 {
		return true, nil
	}
	if err := t.c.Cluster.ChangeSlots(ctx, add, nil); err != nil {
		t.c.Cluster.ForgetSlots()
		return false, err
	}
	return true, nil
}

// step carries out one step and tells if it was done.
func (t *Term) step(ctx context.Context, s fleet.Snapshot, step policy.Step) (bool, error) {
	switch step.Act {
	case intent.ActDrain:
		t.drain(ctx, s, step)
		return false, nil
	case intent.ActRelease:
		there, err := t.c.Cluster.Exists(ctx, step.Node, step.UID)
		if err != nil {
			return false, err
		}
		return !there, nil
	case intent.ActReboot:
		if step.Reason == policy.ReasonDrained {
			// Between the last pass and now a pod may have been bound to the node all the same.
			empty, err := t.stillEmpty(ctx, step)
			if err != nil || !empty {
				return false, err
			}
		}
	}
	if err := t.c.Cluster.Write(ctx, step.Node, step.Change); err != nil {
		return false, err
	}
	t.Changed()
	t.c.Metrics.step(step)
	t.log(step).WithField(telemetry.FieldMessage, step.Message).Info("Carried out a step")
	if step.Act != intent.ActNote || step.Reason.Troubling() {
		t.c.Events.Event(step.Node, step.UID, step.Reason.Troubling(), string(step.Reason), step.Message)
	}
	return true, nil
}
