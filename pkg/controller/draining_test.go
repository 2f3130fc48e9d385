package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A list of pods that never comes holds the nodes after this one up for a bounded time (S8).
func TestTheLastLookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := &Term{c: TermConfig{Drainer: mute{}}}
		began := time.Now()
		step := plan.Step{Node: "a", Eviction: new(policy.DefaultSettings().Eviction), Change: &plan.Change{}, Before: plan.LookEmpty}
		empty, err := term.do(t.Context(), fleet.Snapshot{}, plan.Task{Kind: plan.TaskLook, Step: step})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Assert(t, !empty)
		assert.Equal(t, time.Since(began), writeTime)
	})
}

// mute answers nothing.
type mute struct{ Drainer }

func (mute) Pods(ctx context.Context, _ string, _ policy.Eviction) ([]corev1.Pod, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
