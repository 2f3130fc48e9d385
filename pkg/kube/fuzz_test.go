package kube

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// FuzzSlots: whatever stands in the ConfigMap, it is a list of holders or an error that stops everything,
// and what is added to a list takes no other node's slot away.
func FuzzSlots(f *testing.F) {
	for _, s := range []string{`{"uid-1":"node-1","uid-2":"node-2"}`, `{}`, `null`, ``, `[]`, `{"uid-1":null}`, `{"uid-1":7}`, `{"uid-1":"a"`, `{"a":"x"} {}`,
		`{"uid-1":"a","uid-1":"b"}`, `"uid-1"`, `{"<\u2028":"\ud800"}`} {
		f.Add(s, "uid-9")
	}
	f.Fuzz(func(t *testing.T, value, uid string) {
		client := fake.NewClientset(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: StateConfigMap}, Data: map[string]string{"slots": value, "other": "kept"}})
		k, err := NewCluster(ClusterConfig{Client: client, Nodes: NodeInformer(client), Agents: AgentInformer(client, "", ""), Namespace: "ns"})
		assert.NilError(t, err)
		state, err := k.State(context.Background())
		held := state.Slots
		var object map[string]json.RawMessage
		isObject := json.Unmarshal([]byte(value), &object) == nil && object != nil
		if err != nil {
			var unreadable *SlotsUnreadableError
			assert.Assert(t, errors.As(err, &unreadable), "%v", err)
			assert.Assert(t, !isObject || slices.ContainsFunc(slices.Collect(maps.Values(object)), func(v json.RawMessage) bool { return v[0] != '"' }))
			assert.Assert(t, k.ChangeSlots(context.Background(), map[string]string{uid: "n"}, nil) != nil, "written over what can't be read")
			return
		}
		assert.Assert(t, isObject, "%q was taken for an empty list", value)
		assert.Equal(t, len(held), len(object))
		for u := range object {
			_, ok := held[u]
			assert.Assert(t, ok, "%q holds none any more", u)
		}
		if strings.ToValidUTF8(uid, "") != uid {
			return // no UID that an API server gives
		}
		want := maps.Clone(held)
		want[uid] = "n"
		assert.NilError(t, k.ChangeSlots(context.Background(), map[string]string{uid: "n"}, nil))
		k.ForgetSlots()
		state, err = k.State(context.Background())
		got := state.Slots
		assert.NilError(t, err)
		assert.DeepEqual(t, got, want)
		written, err := client.CoreV1().ConfigMaps("ns").Get(context.Background(), StateConfigMap, metav1.GetOptions{})
		assert.NilError(t, err)
		assert.Equal(t, written.Data["other"], "kept")
	})
}

// FuzzView: whatever a Node is, there is a view of it; the cache, which drops what isn't used, changes
// nothing about it; what can't be read makes the node unreadable.
func FuzzView(f *testing.F) {
	at := "2026-09-20T10:00:00Z"
	f.Add("2.0.0", "prepare-update", "17-abc", at, "1.27.0", `{"since":"`+at+`"}`, "ready", "boot-1", "Bottlerocket OS 1.26.1 (aws-k8s-1.31)", "True", int64(1789900000), "bottlerocket.aws/new", true)
	f.Add("1.0.0", "", "", "", "", "", "", "", "Amazon Linux 2023", "Unknown", int64(0), "a", false)
	f.Add("3.0.0", "reboot-update", "17", at, "v1", "{", "busy", "", "Bottlerocket OS 1.26.1", "False", int64(-1<<40), "example.com/a", true)
	f.Fuzz(func(t *testing.T, label, action, id, at, version, disruption, state, bootID, image, ready string, since int64, other string, cordoned bool) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID("uid"), ResourceVersion: "7",
			Labels: map[string]string{string(marker.KeyInterfaceVersion): label, other: "x"}, Annotations: map[string]string{other: action}}}
		for k, v := range map[marker.Key]string{marker.KeyActionWanted: action, marker.KeyIntentID: id, marker.KeyIntentTime: at, marker.KeyIntentUntil: at,
			marker.KeyTargetVersion: version, marker.KeyRebootFrom: bootID, marker.KeyDisruption: disruption, marker.KeyActiveID: id, marker.KeyActionState: state} {
			if v != "" {
				n.Annotations[string(k)] = v
			}
		}
		n.Spec.Unschedulable = cordoned
		n.Status.NodeInfo.BootID, n.Status.NodeInfo.OSImage = bootID, image
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
			{Type: corev1.NodeReady, Status: corev1.ConditionStatus(ready), LastTransitionTime: metav1.NewTime(time.Unix(since%(1<<37), 0))},
		}
		v := View(n)
		assert.Equal(t, v.Ready, ready == "True")
		assert.Equal(t, v.Unschedulable, cordoned)
		assert.Equal(t, v.Interface, fleet.InterfaceOf(n.Labels))
		_, problems := marker.Decode(n.Annotations)
		assert.DeepEqual(t, v.Problems, problems)
		if len(problems) > 0 {
			assert.Equal(t, v.Phase(), intent.PhaseUnreadable)
		}
		stripped, err := transformNode(n)
		assert.NilError(t, err)
		assert.DeepEqual(t, asJSON(t, View(stripped.(*corev1.Node))), asJSON(t, v))
		assert.Equal(t, v.Disrupted(), disruption != "" || other == string(marker.KeyDisruption))
	})
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	assert.NilError(t, err)
	return string(out)
}
