package kube

import (
	"context"
	"time"

	"github.com/pkg/errors"
)

// hadPolicyKey holds the time when the controller first saw a policy. It outlives every process, so that the absence of
// a policy that a cluster has had is told from that of one that it never had.
const hadPolicyKey = "policy"

// HadPolicy reports whether this cluster has had a policy, by the same look at the object that Slots returned.
func (k *Cluster) HadPolicy() bool {
	s := &k.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object != nil && s.object.Data[hadPolicyKey] != ""
}

// RecordPolicy notes that there is a policy, by compare-and-swap.
func (k *Cluster) RecordPolicy(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	s := &k.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return errors.WithMessage(ErrConflict, "recording that there is a policy")
	}
	return s.put(ctx, "recording that there is a policy", map[string]string{hadPolicyKey: now.UTC().Format(time.RFC3339)})
}
