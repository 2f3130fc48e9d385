package kube

import (
	"encoding/json"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Who reads once sees what a Cluster sees, in whatever state the ConfigMap is, and writes nothing.
func TestObjectsShowWhatAClusterShows(t *testing.T) {
	now := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	disruption, err := json.Marshal(marker.Disruption{Since: now})
	assert.NilError(t, err)
	for _, tc := range []struct {
		name  string
		state map[string]string
	}{
		{"no ConfigMap", nil},
		{"no list", map[string]string{"versions": `{"1.2.0":"2026-01-01T00:00:00Z"}`}},
		{"a list", map[string]string{"slots": `{"uid-b":"b","gone":"z"}`}},
		{"no list of anything", map[string]string{"slots": `[]`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset(
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid-b", Labels: map[string]string{string(marker.KeyInterfaceVersion): "2.0.0"}}},
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Annotations: map[string]string{
					string(marker.KeyDisruption): string(disruption), "foreign": "x"}}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: corev1.PodSpec{NodeName: "b"},
					Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: corev1.PodSpec{NodeName: "nowhere"}},
			)
			if tc.state != nil {
				_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: StateConfigMap}, Data: tc.state}, metav1.CreateOptions{})
				assert.NilError(t, err)
			}
			client.ClearActions()
			objects, err := ReadObjects(t.Context(), client, namespace, "")
			assert.NilError(t, err)
			got, set := objects.Snapshot(now, policy.DefaultSettings())
			for _, a := range client.Actions() {
				assert.Assert(t, a.GetVerb() == "get" || a.GetVerb() == "list", "%v", a)
			}
			assert.Equal(t, set.MaxStaging, policy.DefaultSettings().MaxStaging)

			ctx, k := t.Context(), watching(t, client)
			nodes, err := k.Nodes(ctx)
			assert.NilError(t, err)
			state, err := k.State(ctx)
			slots := state.Slots
			if err != nil {
				assert.Equal(t, got.SlotsProblem, err.Error())
				slots = map[string]string{}
			}
			assert.Equal(t, len(got.Nodes), len(nodes))
			for i := range nodes {
				assert.Assert(t, !got.Nodes[i].Disrupted() || got.Nodes[i].UnavailableSince.IsZero())
				assert.Assert(t, sameView(got.Nodes[i], nodes[i]), "%+v\n%+v", got.Nodes[i], nodes[i])
			}
			assert.DeepEqual(t, got.Slots, slots)
			if err == nil && tc.state != nil {
				assert.DeepEqual(t, got.Seen, state.Seen)
			}
		})
	}
}

// The policy is read like the controller's, and what can't be read lets nothing start.
func TestObjectsPolicy(t *testing.T) {
	o := &Objects{
		Policy:       &corev1.ConfigMap{Data: map[string]string{PolicyKey: "version: 1\nmaxStaging: 3\n"}},
		Acknowledged: &corev1.ConfigMap{Data: map[string]string{"1.2.0": ""}},
	}
	s, set := o.Snapshot(time.Time{}, policy.DefaultSettings())
	assert.Equal(t, set.MaxStaging, 3)
	assert.Assert(t, s.Acknowledged["1.2.0"] && !s.NoPolicy && s.PolicyProblem == "")
	o.Policy.Data[PolicyKey] = "version: 2\npause: {reason: moving}\n"
	s, set = o.Snapshot(time.Time{}, policy.DefaultSettings())
	assert.Assert(t, s.NoPolicy)
	assert.Equal(t, set.Pause.Reason, "moving")
	o.Policy.Data = nil
	s, set = o.Snapshot(time.Time{}, policy.DefaultSettings())
	assert.Assert(t, s.NoPolicy)
	assert.Equal(t, s.PolicyProblem, "ConfigMap update-policy: it has no key policy.yaml")
	assert.Equal(t, set.MaxStaging, policy.DefaultSettings().MaxStaging)
}

// Since when a node has been out of service is what its taint and its condition say, also after it was stripped.
func TestUnavailableSince(t *testing.T) {
	at := func(h int) metav1.Time { return metav1.NewTime(time.Date(2026, 9, 20, h, 0, 0, 0, time.UTC)) }
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(at(3))}
	ready := func(s corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: s, LastTransitionTime: at(5)}
	}
	for _, tc := range []struct {
		name     string
		cordoned bool
		taints   []corev1.Taint
		ready    corev1.ConditionStatus
		want     time.Time
	}{
		{"in service", false, nil, corev1.ConditionTrue, time.Time{}},
		{"cordoned", true, []corev1.Taint{taint}, corev1.ConditionTrue, at(3).Time},
		{"cordoned, and nobody says when", true, nil, corev1.ConditionTrue, time.Time{}},
		{"uncordoned, its taint still there", false, []corev1.Taint{taint}, corev1.ConditionTrue, time.Time{}},
		{"not Ready", false, nil, corev1.ConditionUnknown, at(5).Time},
		{"both", true, []corev1.Taint{taint}, corev1.ConditionFalse, at(3).Time},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID("a")}, Spec: corev1.NodeSpec{Unschedulable: tc.cordoned, Taints: tc.taints},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready(tc.ready)}}}
			s, _ := (&Objects{Nodes: []*corev1.Node{stripNode(n)}}).Snapshot(at(9).Time, policy.DefaultSettings())
			assert.Assert(t, s.Nodes[0].UnavailableSince.Equal(tc.want), "%s", s.Nodes[0].UnavailableSince)
		})
	}
}
