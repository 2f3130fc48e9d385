package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeName is that of a pod's volume.
const volumeName = "data"

// forcedDetach is how long the controller that detaches volumes waits for a kubelet that is down.
const forcedDetach = 6 * time.Minute

// claim gives a pod that is to come a volume that lives as long as it does.
func (k *cluster) claim(p *corev1.Pod) {
	name := p.Name + "-" + volumeName
	must(k.client.CoreV1().PersistentVolumeClaims(p.Namespace).Create(background, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + p.Name},
	}, metav1.CreateOptions{}))
	p.Spec.Volumes = []corev1.Volume{{Name: volumeName, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
}

// attach attaches a pod's volume to its node, if it has one.
func (k *cluster) attach(p *corev1.Pod) {
	if len(p.Spec.Volumes) == 0 {
		return
	}
	k.w.after(k.w.between(0, 2*time.Second), func() {
		if now := k.w.server.Pod(p.Namespace, p.Name); now == nil || now.UID != p.UID {
			return
		}
		volume := "pv-" + p.Name
		a := must(k.client.StorageV1().VolumeAttachments().Create(background, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "va-" + p.Name},
			Spec: storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: p.Spec.NodeName,
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		}, metav1.CreateOptions{}))
		a.Status.Attached = true
		must(k.client.StorageV1().VolumeAttachments().UpdateStatus(background, a, metav1.UpdateOptions{}))
	})
}

// podGone is called once a pod has ended.
func (k *cluster) podGone(p *corev1.Pod) {
	if len(p.Spec.Volumes) > 0 {
		_ = k.client.CoreV1().PersistentVolumeClaims(p.Namespace).Delete(background, p.Name+"-"+volumeName, metav1.DeleteOptions{})
		since := k.w.now
		k.w.after(k.w.between(0, 10*time.Second), func() { k.detach(p, since) })
	}
}

// detach detaches the volume of a pod that is gone: once its kubelet has unmounted it, or was given up.
func (k *cluster) detach(p *corev1.Pod, since time.Time) {
	w := k.w
	m := k.machineOf(p.Spec.NodeName)
	if w.now.Before(k.detaching) || m != nil && !m.up && w.now.Sub(since) < forcedDetach {
		w.after(5*time.Second, func() { k.detach(p, since) })
		return
	}
	if w.server.VolumeAttachment("va-"+p.Name) != nil {
		must(struct{}{}, k.client.StorageV1().VolumeAttachments().Delete(background, "va-"+p.Name, metav1.DeleteOptions{}))
	}
}
