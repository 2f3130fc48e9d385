package kube

import (
	"fmt"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A version's age outlives every process, and no later one begins it anew.
func TestVersionsAreRecordedOnce(t *testing.T) {
	ctx, first := t.Context(), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap},
		Data: map[string]string{slotsKey: `{"uid-a":"a"}`, seenKey: `{"1.26.0": 5}`}})
	record := func(at time.Time, versions ...string) map[string]time.Time {
		k := &Cluster{slots: slots{client: client, namespace: "ns"}}
		state, err := k.State(ctx)
		assert.NilError(t, err)
		assert.Equal(t, state.Slots["uid-a"], "a")
		assert.NilError(t, k.RecordVersions(ctx, versions, versions, at))
		state, err = k.State(ctx)
		assert.NilError(t, err)
		return state.FirstSeen
	}
	// What could not be read is no age.
	assert.DeepEqual(t, record(first, "1.27.0"), map[string]time.Time{"1.27.0": first})
	later := first.Add(time.Hour)
	assert.DeepEqual(t, record(later, "1.27.0", "1.28.0"), map[string]time.Time{"1.27.0": first, "1.28.0": later})
	for i := range maxSeen {
		record(later.Add(time.Duration(i+1)*time.Minute), fmt.Sprintf("2.0.%d", i))
	}
	known := record(later, "1.28.0")
	_, forgotten := known["1.27.0"]
	assert.Assert(t, !forgotten && len(known) <= maxSeen, "%d are known", len(known))
	_, latest := known[fmt.Sprintf("2.0.%d", maxSeen-1)]
	assert.Assert(t, latest)
}

func TestRecordingVersionsMeetsAConflict(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap}})
	k := &Cluster{slots: slots{client: client, namespace: "ns"}}
	// Nothing was looked at yet.
	assert.Assert(t, errors.Is(k.RecordVersions(ctx, []string{"1.27.0"}, nil, time.Now()), ErrConflict))
	_, err := k.State(ctx)
	assert.NilError(t, err)
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, StateConfigMap, nil)
	})
	assert.Assert(t, errors.Is(k.RecordVersions(ctx, []string{"1.27.0"}, nil, time.Now()), ErrConflict))
	state, err := k.State(ctx)
	assert.NilError(t, err)
	assert.Equal(t, len(state.FirstSeen), 0)
}

// Made-up versions push none out that a node of the cluster names (S6).
func TestAttackForgetting(t *testing.T) {
	known, at := map[string]time.Time{"1.27.0": {}}, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range 2 * maxSeen {
		known[fmt.Sprintf("2.0.%d", i)] = at.Add(time.Duration(i) * time.Second)
	}
	forget(known, []string{"1.27.0", "2.0.0"})
	assert.Equal(t, len(known), maxSeen)
	for _, v := range []string{"1.27.0", "2.0.0", fmt.Sprintf("2.0.%d", 2*maxSeen-1)} {
		_, stands := known[v]
		assert.Check(t, stands, v)
	}
}
