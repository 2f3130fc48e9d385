package runner

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the watch keeps of a Node says the same as the Node: with what a step is decided from.
func TestNodeOf(t *testing.T) {
	noon := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"bottlerocket.aws/updater-interface-version": "plan"}}}
	n.Spec.Unschedulable = true
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "b", KubeletVersion: "v1.36.3", OSImage: "an OS", KernelVersion: "6.12", ContainerRuntimeVersion: "containerd://2"}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: noon}, {Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse}}
	for _, of := range []any{n, stripNode(n)} {
		kept, ok := of.(*corev1.Node)
		assert.Assert(t, ok)
		got := nodeOf(kept)
		assert.Assert(t, got.Labelled && got.Unschedulable && got.Ready && got.ReadySince.Equal(noon.Time), "%+v", got)
		assert.Assert(t, got.BootID == "b" && got.Info.Kubelet == "v1.36.3" && got.Info.OSImage == "an OS" && got.Info.Kernel == "6.12" && got.Info.Runtime == "containerd://2")
	}
}
