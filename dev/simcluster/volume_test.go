package simcluster_test

import (
	"context"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// holdVolume attaches a volume to a node that no pod there claims, beside a pod which stays and has a claim. What it
// returns detaches the volume once the node waits for that.
func (w *world) holdVolume(t *testing.T) func() {
	t.Helper()
	node, ctx := w.Fleet.Machines()[0].Name(), context.Background()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stays", Labels: map[string]string{"app.kubernetes.io/name": "bottlerocket-update-operator"}}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "workload"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}}}
	pods := w.Client.CoreV1().Pods(simcluster.Namespace)
	_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	assert.NilError(t, err)
	t.Cleanup(func() {
		assert.Check(t, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	})
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "held"}}
	a.Spec.Attacher, a.Spec.NodeName, a.Spec.Source.PersistentVolumeName = "example.com", node, new("held")
	attachments := w.Client.StorageV1().VolumeAttachments()
	_, err = attachments.Create(ctx, a, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = attachments.Patch(ctx, a.Name, types.MergePatchType, []byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status")
	assert.NilError(t, err)
	return func() {
		assert.Check(t, simcluster.Await(ctx, "the volume is waited for", bound, func() (bool, error) {
			n, err := w.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			return err == nil && strings.HasPrefix(n.Annotations[string(marker.KeyWaitingFor)], string(plan.ReasonVolumesAttached)), err
		}))
		assert.NilError(t, attachments.Delete(ctx, a.Name, metav1.DeleteOptions{}))
	}
}
