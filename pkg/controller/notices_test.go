package controller_test

import (
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// Messages are kept in the object that has the slots, and are written while passes are under way. No such write has a
// process take a slot by another list than it planned by (S1), and none makes a write of slots fail that would have
// succeeded.
func TestNoticesLeaveSlotsAsTheyAre(t *testing.T) {
	f := newFleet(t)
	leader := func() *kube.Cluster {
		c, err := kube.NewCluster(kube.ClusterConfig{Client: f.client, Namespace: f.namespace, Now: time.Now, Log: f.log, Changed: func() {},
			Nodes: kube.NodeInformer(f.client), Agents: kube.AgentInformer(f.client, f.namespace, "a=b")})
		assert.NilError(t, err)
		return c
	}
	ctx, one, two := t.Context(), leader(), leader()
	look := func(c *kube.Cluster) kube.State {
		t.Helper()
		s, err := c.State(ctx)
		assert.NilError(t, err)
		return s
	}
	look(one)
	assert.NilError(t, one.RecordNotices(ctx, "", "first"))
	assert.Equal(t, look(one).Notices, "first")
	assert.NilError(t, one.ChangeSlots(ctx, map[string]string{"uid-a": "a"}, nil), "its own message is no other's write")

	// Both plan by the same list. The other one takes the last slot, and then a message is told.
	look(two)
	assert.NilError(t, two.ChangeSlots(ctx, map[string]string{"uid-b": "b"}, nil))
	assert.NilError(t, one.RecordNotices(ctx, "first", "second"))
	_, err := one.State(ctx)
	assert.NilError(t, err)
	err = one.ChangeSlots(ctx, map[string]string{"uid-c": "c"}, nil)
	assert.Assert(t, errors.Is(err, kube.ErrConflict), "%v", err)

	// What is kept by now is not what a process knew.
	one.ForgetSlots()
	look(one)
	assert.NilError(t, two.RecordNotices(ctx, "second", "third"))
	assert.Assert(t, errors.Is(one.RecordNotices(ctx, "second", "other"), kube.ErrConflict))
	assert.Equal(t, look(one).Notices, "second", "the pass that is under way goes by what it planned by")
	one.ForgetSlots()
	assert.Equal(t, look(one).Notices, "third")
	assert.DeepEqual(t, look(one).Slots, map[string]string{"uid-a": "a", "uid-b": "b"})
	assert.NilError(t, one.RecordNotices(ctx, "third", ""))
	assert.Equal(t, look(one).Notices, "")
}
