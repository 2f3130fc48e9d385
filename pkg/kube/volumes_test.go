package kube

import (
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

func attachment(name, node, volume string, attached bool) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a.Spec.NodeName, a.Spec.Source.PersistentVolumeName, a.Status.Attached = node, &volume, attached
	return a
}

func claim(name, volume string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.VolumeName = volume
	return c
}

// What is waited for are volumes that are attached to this node, or half so, and belong to no pod that stays on it.
func TestAttachedVolumes(t *testing.T) {
	daemon := podOf("daemon", "DaemonSet", "daemon", true)
	daemon.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "kept"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "gone", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "gone"}}},
	}
	stays := []runtime.Object{daemon, claim("kept", "v-kept"), claim("daemon-scratch", "v-scratch"),
		attachment("csi-kept", "a", "v-kept", true), attachment("csi-scratch", "a", "v-scratch", true),
		attachment("csi-elsewhere", "b", "v-b", true)}
	look := func(objects []runtime.Object, before ...string) fleet.Checked {
		k := &Cluster{c: ClusterConfig{Client: fake.NewClientset(objects...)}}
		l, err := k.Check(t.Context(), "a", plan.LiveCheck{For: fleet.CheckVolumes, Attachments: before})
		assert.NilError(t, err)
		return l
	}
	assert.Assert(t, new(look(stays)).Passed())
	l := look(append(stays, attachment("csi-1", "a", "v-1", true)))
	assert.Equal(t, l.Problem, "volume v-1 is still attached to the node, by VolumeAttachment csi-1")
	assert.DeepEqual(t, l.Attachments, []string{"csi-1"})
	l = look(append(stays, attachment("csi-1", "a", "v-1", false)))
	assert.Equal(t, l.Problem, "volume v-1 is being attached to the node or detached from it, by VolumeAttachment csi-1")
	assert.Equal(t, look([]runtime.Object{attachment("csi-1", "a", "v-1", false)}, l.Attachments...).Problem, l.Problem)
	inline := attachment("csi-2", "a", "", true)
	inline.Spec.Source.PersistentVolumeName = nil
	assert.Equal(t, look([]runtime.Object{inline}).Problem, "a volume is still attached to the node, by VolumeAttachment csi-2")
}
