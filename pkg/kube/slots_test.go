package kube

import (
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Taking a slot that is held already changes the object, so that a leader which is about to free it from
// an older look meets a conflict. An update that changes nothing would leave the resourceVersion as it is.
func TestTakingASlotAlwaysWrites(t *testing.T) {
	ctx := t.Context()
	held := map[string]string{"uid-a": "a"}
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap},
		Data: map[string]string{slotsKey: `{"uid-a":"a"}`}})
	k := &Cluster{slots: slots{client: client, namespace: "ns"}}
	data := func() map[string]string {
		t.Helper()
		m, err := client.CoreV1().ConfigMaps("ns").Get(ctx, StateConfigMap, metav1.GetOptions{})
		assert.NilError(t, err)
		return m.Data
	}
	seen := []map[string]string{data()}
	for range 2 {
		state, err := k.State(ctx)
		got := state.Slots
		assert.NilError(t, err)
		assert.DeepEqual(t, got, held)
		assert.NilError(t, k.ChangeSlots(ctx, held, nil))
		seen = append(seen, data())
	}
	assert.Assert(t, seen[0][takesKey] != seen[1][takesKey] && seen[1][takesKey] != seen[2][takesKey])
	assert.NilError(t, k.ChangeSlots(ctx, nil, []string{"uid-b"}))
	assert.DeepEqual(t, data(), seen[2])
}

// A list that is gone is rebuilt with all nodes that may have stood in it: those that are disrupted, and those that are
// staged, of which one may be cordoned at any moment by a leader that was held up after it took the slot (S1).
func TestRebuiltSlots(t *testing.T) {
	node := func(name string, action marker.Action, more ...map[marker.Key]string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}}}
		if action != "" {
			at := time.Unix(60, 0)
			more = append(more, marker.Encode(marker.Marks{Intent: marker.Intent{ID: "i", Action: action, Target: "1.2.0", Time: at, Until: at}}))
		}
		for _, annotations := range more {
			for k, v := range annotations {
				n.Annotations[string(k)] = v
			}
		}
		return n
	}
	ready := marker.EncodeReport(marker.Report{ActiveID: "i", State: marker.StateReady, Current: "1.1.0", BootID: "b", Protocol: 1})
	held := map[marker.Key]string{marker.KeyDisruption: marker.Encode(marker.Marks{Disruption: &marker.Disruption{Since: time.Unix(60, 0)}})[marker.KeyDisruption]}
	client := fake.NewClientset(node("new", ""), node("idle", marker.ActionStabilize, ready), node("staging", marker.ActionPrepareUpdate),
		node("staged", marker.ActionPrepareUpdate, ready), node("held", marker.ActionPrepareUpdate, ready, held),
		node("unreadable", "", map[marker.Key]string{marker.KeyDisruption: "?"}))
	k := &Cluster{slots: slots{client: client, namespace: "ns"}}
	state, err := k.State(t.Context())
	got := state.Slots
	assert.NilError(t, err)
	assert.DeepEqual(t, got, map[string]string{"uid-staged": "staged", "uid-held": "held", "uid-unreadable": "unreadable"})
}

// What the object says beside a list that can't be read stands all the same, and a look that comes in between takes
// nothing of it away: that there was a policy must not be forgotten (issue 14, F1).
func TestStateBesideAListThatCantBeRead(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap},
		Data: map[string]string{slotsKey: "{", hadPolicyKey: "2026-11-01T00:00:00Z", seenKey: `{"1.27.0":"2026-11-01T00:00:00Z"}`}})
	k := &Cluster{slots: slots{client: client, namespace: "ns"}}
	state, err := k.State(t.Context())
	k.ForgetSlots()
	var unreadable *SlotsUnreadableError
	assert.Assert(t, errors.As(err, &unreadable), "%v", err)
	assert.Assert(t, state.HadPolicy)
	assert.DeepEqual(t, state.FirstSeen, map[string]time.Time{"1.27.0": at})
}
