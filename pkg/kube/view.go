package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// View turns a Node into what decisions are made from. Agent pods and what a process remembers are
// not in it.
func View(n *corev1.Node) fleet.Node {
	v := fleet.Node{
		Name:            n.Name,
		UID:             string(n.UID),
		ResourceVersion: n.ResourceVersion,
		Interface:       fleet.InterfaceOf(n.Labels),
		Unschedulable:   n.Spec.Unschedulable,
		BootID:          n.Status.NodeInfo.BootID,
		OSVersion:       fleet.OSVersion(n.Status.NodeInfo.OSImage),
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			v.Ready = c.Status == corev1.ConditionTrue
			v.ReadySince = c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	v.Marks, v.Problems = marker.Decode(n.Annotations)
	return v
}
