package kube

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// attachedVolumes finds the volumes that are attached to a node and belong to no pod on it, and is a sentence on the
// first. A VolumeAttachment that says that nothing is attached counts too: attaching or detaching is under way, and
// when a volume is off, its VolumeAttachment is gone. The API server can't choose attachments by node, so those of the
// whole cluster are read, page by page; those that were found before are then looked at by their names.
func attachedVolumes(ctx context.Context, client kubernetes.Interface, node string, before []string) ([]string, string, error) {
	attached, err := attachmentsOf(ctx, client, node, before)
	if err != nil || len(attached) == 0 {
		return nil, "", err
	}
	staying := map[string]bool{}
	if len(before) == 0 {
		// Pods don't come to a cordoned node, so a volume that no pod there uses at first is used by none later.
		if staying, err = volumesOfPods(ctx, client, node); err != nil {
			return nil, "", err
		}
	}
	var names []string
	unwell := ""
	for i := range attached {
		a := &attached[i]
		volume := a.Spec.Source.PersistentVolumeName
		if volume != nil && staying[*volume] {
			continue
		}
		if names = append(names, a.Name); unwell == "" {
			of := "a volume"
			if volume != nil {
				of = "volume " + *volume
			}
			state := "still attached to the node"
			if !a.Status.Attached {
				state = "being attached to the node or detached from it"
			}
			unwell = fmt.Sprintf("%s is %s, by VolumeAttachment %s", of, state, a.Name)
		}
	}
	return names, unwell, nil
}

func attachmentsOf(ctx context.Context, client kubernetes.Interface, node string, names []string) ([]storagev1.VolumeAttachment, error) {
	selectors := []string{""}
	if len(names) > 0 {
		selectors = nil
		for _, name := range names {
			selectors = append(selectors, "metadata.name="+name)
		}
	}
	var found []storagev1.VolumeAttachment
	for _, s := range selectors {
		_, err := inPages(ctx, pageSize, metav1.ListOptions{FieldSelector: s}, client.StorageV1().VolumeAttachments().List, func(page *storagev1.VolumeAttachmentList) {
			found = append(found, slices.DeleteFunc(page.Items, func(a storagev1.VolumeAttachment) bool {
				return a.Spec.NodeName != node
			})...)
		})
		if err != nil {
			return nil, errors.Wrap(err, "listing volume attachments")
		}
	}
	return found, nil
}

// volumesOfPods are the names of the volumes that pods which stay on the node have claimed.
func volumesOfPods(ctx context.Context, client kubernetes.Interface, node string) (map[string]bool, error) {
	pods, err := podsOf(ctx, client, node)
	if err != nil {
		return nil, err
	}
	volumes := map[string]bool{}
	for i := range pods {
		for _, name := range claims(&pods[i]) {
			c, err := client.CoreV1().PersistentVolumeClaims(pods[i].Namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, errors.Wrapf(err, "reading claim %s/%s", pods[i].Namespace, name)
			}
			volumes[c.Spec.VolumeName] = true
		}
	}
	return volumes, nil
}

// claims are the names of a pod's volume claims; that of an ephemeral volume is made of both names.
func claims(p *corev1.Pod) []string {
	var names []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}
