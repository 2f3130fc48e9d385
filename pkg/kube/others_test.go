package kube

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Of annotations that are not the operator's, only those for autoscalers are kept.
func TestMarksForOthersAreKept(t *testing.T) {
	n := nodeAt("5")
	n.Annotations = map[string]string{marker.AnnotationDisrupt: "true", marker.AnnotationScaleDown: "", "example.com/large": "x", string(marker.KeyPaused): "p"}
	stripped := stripNode(n)
	assert.Equal(t, len(stripped.Annotations), 3)
	want := map[string]string{marker.AnnotationDisrupt: "true", marker.AnnotationScaleDown: ""}
	assert.DeepEqual(t, View(n).Autoscalers, want)
	assert.DeepEqual(t, View(stripped).Autoscalers, want)
	assert.Assert(t, View(nodeAt("5")).Autoscalers == nil)
}

// Cordon, record and marks for others are one patch (S5).
func TestMarksForOthersAreInThePatch(t *testing.T) {
	body, err := patch(&corev1.Node{}, &plan.Change{ResourceVersion: "5", Unschedulable: new(true),
		Labels: map[string]*string{marker.LabelExcluded: new("true")}, Annotations: map[string]*string{marker.AnnotationDisrupt: nil}})
	assert.NilError(t, err)
	assert.Equal(t, string(body), `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null},`+
		`"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"},"resourceVersion":"5"},"spec":{"unschedulable":true}}`)
	body, err = patch(&corev1.Node{}, &plan.Change{ResourceVersion: "5", Labels: map[string]*string{marker.LabelExcluded: nil}})
	assert.NilError(t, err)
	assert.Assert(t, body != nil, "a label alone is something to write")
}

// A node that another controller is about to remove is known by its taint (brupop_798).
func TestLeaving(t *testing.T) {
	for key, want := range map[string]string{
		"ToBeDeletedByClusterAutoscaler": "it is being removed by the cluster autoscaler", "karpenter.sh/disrupted": "it is being removed by Karpenter",
		"aws-node-termination-handler/spot-itn": "it is being removed by the AWS node termination handler", "medik8s.io/drain": "it is being removed by the node maintenance operator",
		"node.kubernetes.io/out-of-service":        "it is being removed by an administrator who marked it out of service",
		"DeletionCandidateOfClusterAutoscaler":     "",
		"node.kubernetes.io/unschedulable":         "",
		"cluster.x-k8s.io/not-known-to-this-build": "",
	} {
		n := nodeAt("5")
		n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
		assert.Equal(t, View(stripNode(n)).Leaving, want, key)
	}
	n := nodeAt("5")
	n.DeletionTimestamp = new(metav1.Now())
	assert.Equal(t, View(stripNode(n)).Leaving, "it is being deleted")
}

// What is kept of hooks is their answers to the id that stands, whichever hooks a policy has.
func TestHooksAnswersAreKept(t *testing.T) {
	n := nodeAt("5")
	n.Annotations = map[string]string{string(marker.KeyHookID): "after-drain.5-x", "example.com/b": "after-drain.5-x", "example.com/a": "after-drain.5-x",
		"example.com/old": "after-drain.4-x", "example.com/none": "", string(marker.KeyMessage): "after-drain.5-x"}
	stripped := stripNode(n)
	assert.Equal(t, len(stripped.Annotations), 4)
	for _, n := range []*corev1.Node{n, stripped} {
		assert.DeepEqual(t, View(n).HooksAnswered, []string{"example.com/a", "example.com/b"})
	}
	delete(n.Annotations, string(marker.KeyHookID))
	assert.Assert(t, View(n).HooksAnswered == nil)
	assert.Equal(t, len(stripNode(n).Annotations), 1)
}
