package kube

import (
	"context"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

func nodeAt(version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: version}}
}

const namespace = "bottlerocket"

// running is a cluster that watches until the test ends.
func running(t *testing.T, client *fake.Clientset, nodes Informer) *Cluster {
	t.Helper()
	log, _ := test.NewNullLogger()
	k, err := NewCluster(ClusterConfig{Client: client, Namespace: namespace, Nodes: nodes, Agents: AgentInformer(client, namespace, ""),
		Changed: func() {}, Now: time.Now, Log: log})
	assert.NilError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

// watching is one that has seen all there is.
func watching(t *testing.T, client *fake.Clientset) *Cluster {
	t.Helper()
	k := running(t, client, NodeInformer(client))
	assert.Assert(t, k.WaitForSync(t.Context()))
	return k
}

// slow is an informer that has its nodes before it tells its handlers of them.
type slow struct {
	Informer
	ctx  context.Context
	tell chan struct{}
}

func (s slow) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		select {
		case <-s.tell:
			h.OnAdd(obj, true)
		case <-s.ctx.Done():
		}
	}})
}

// A controller that begins counts no fleet of which it has not seen all: its budgets are shares of it (S1).
func TestSyncedOnlyWithAllNodes(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset(nodeAt("5"))
	nodes := slow{NodeInformer(client), ctx, make(chan struct{})}
	k := running(t, client, nodes)
	assert.Assert(t, cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced))
	assert.Assert(t, !k.Synced(), "it has seen nothing yet")
	close(nodes.tell)
	assert.Assert(t, k.WaitForSync(ctx))
	seen, err := k.Nodes(ctx)
	assert.NilError(t, err)
	assert.Equal(t, len(seen), 1)
}

// A watch that is behind shows what was refused already. Without a live look the controller would plan the
// same write again and again, as fast as it can, until the watch has caught up.
func TestRefusedWriteIsFollowedByALiveLook(t *testing.T) {
	for _, tc := range []struct {
		name     string
		refusal  error
		live     *corev1.Node
		getErr   error
		want     []string
		conflict bool
	}{
		{"changed by another client", apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "a", nil), nodeAt("7"), nil, []string{"7"}, true},
		{"gone", apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "a"), nil, nil, nil, true},
		{"unknown", apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "a", nil), nil, apierrors.NewServiceUnavailable("away"), []string{"5"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, client := t.Context(), fake.NewClientset(nodeAt("5"))
			k := watching(t, client)

			client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refusal })
			client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				switch {
				case tc.getErr != nil:
					return true, nil, tc.getErr
				case tc.live == nil:
					return true, nil, tc.refusal
				}
				return true, tc.live, nil
			})
			err := k.Write(ctx, "a", &plan.Change{ResourceVersion: "5", Unschedulable: new(true)})
			assert.Equal(t, errors.Is(err, ErrConflict), tc.conflict, "%v", err)
			assert.Assert(t, err != nil)
			nodes, err := k.Nodes(ctx)
			assert.NilError(t, err)
			var versions []string
			for _, n := range nodes {
				versions = append(versions, n.ResourceVersion)
			}
			assert.DeepEqual(t, versions, tc.want)
		})
	}
}

// A change that writes nothing is no fence against a write of another client since: without a live look a slot
// would be freed by an old view of its node.
func TestNothingToWriteIsLookedAtLive(t *testing.T) {
	for _, tc := range []struct {
		name     string
		live     *corev1.Node
		conflict bool
	}{
		{"as it was seen", nodeAt("5"), false},
		{"changed by another client since", nodeAt("7"), true},
		{"gone", nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, client := t.Context(), fake.NewClientset(nodeAt("5"))
			k := watching(t, client)
			client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.live == nil {
					return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "a")
				}
				return true, tc.live, nil
			})
			err := k.Write(ctx, "a", &plan.Change{ResourceVersion: "5", RemoveAll: true})
			assert.Equal(t, errors.Is(err, ErrConflict), tc.conflict, "%v", err)
			assert.Equal(t, err != nil, tc.conflict)
		})
	}
}
