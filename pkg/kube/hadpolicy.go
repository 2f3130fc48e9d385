package kube

import (
	"context"
	"time"
)

// hadPolicyKey holds the time when the controller first saw a policy. It outlives every process, so that the absence of
// a policy that a cluster has had differs from that of one that it never had.
const hadPolicyKey = "policy"

// RecordPolicy notes that there is a policy, by compare-and-swap.
func (k *Cluster) RecordPolicy(ctx context.Context, now time.Time) error {
	return k.slots.record(ctx, "recording that there is a policy", hadPolicyKey, func(string) (string, error) {
		return now.UTC().Format(time.RFC3339), nil
	})
}
