package kube

import "context"

// rolloutsKey holds what is remembered of rollouts, as pkg/rollout writes it.
const rolloutsKey = "rollouts"

// RecordRollouts replaces what is remembered of rollouts, by compare-and-swap.
func (k *Cluster) RecordRollouts(ctx context.Context, text string) error {
	return k.slots.record(ctx, "recording rollouts", rolloutsKey, func(string) (string, error) { return text, nil })
}
