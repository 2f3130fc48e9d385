package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// leavingTaints are those that a node gets first when it is taken out of the cluster, with what puts them there.
var leavingTaints = map[string]string{
	// kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go
	"ToBeDeletedByClusterAutoscaler": "the cluster autoscaler",
	// kubernetes-sigs/karpenter, pkg/apis/v1/taints.go; the second name is that of releases before 1.0
	"karpenter.sh/disrupted":  "Karpenter",
	"karpenter.sh/disruption": "Karpenter",
	// aws/aws-node-termination-handler, pkg/node/node.go; its rebalance-recommendation comes true or doesn't
	"aws-node-termination-handler/spot-itn":                  "the AWS node termination handler",
	"aws-node-termination-handler/scheduled-maintenance":     "the AWS node termination handler",
	"aws-node-termination-handler/asg-lifecycle-termination": "the AWS node termination handler",
	"cloud.google.com/impending-node-termination":            "Google Cloud",
	// medik8s/node-maintenance-operator, controllers/taint.go
	"medik8s.io/drain": "the node maintenance operator",
	// kubernetes, staging/src/k8s.io/api/core/v1/well_known_taints.go: put there by a user
	corev1.TaintNodeOutOfService: "an administrator who marked it out of service",
}

func leaving(n *corev1.Node) string {
	if n.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	for _, t := range n.Spec.Taints {
		if remover := leavingTaints[t.Key]; remover != "" {
			return "it is being removed by " + remover
		}
	}
	return ""
}

// isFresh reports whether a taint is that of new nodes. With another effect it is not the operator's to take off.
func isFresh(t corev1.Taint) bool {
	return t.Key == marker.TaintFresh && t.Effect == corev1.TaintEffectNoSchedule
}

// bootID is the boot ID that the kubelet reports; empty if it can't be one, which proves no reboot.
func bootID(said string) string {
	if !marker.ValidToken(said) {
		return ""
	}
	return said
}

// View turns a Node into what decisions are made from. Agent pods and what a process remembers are
// not in it.
func View(n *corev1.Node) fleet.Node {
	v := fleet.Node{
		Name:            n.Name,
		UID:             string(n.UID),
		ResourceVersion: n.ResourceVersion,
		Interface:       fleet.InterfaceOf(n.Labels),
		Labels:          n.Labels,
		Zone:            n.Labels[fleet.ZoneLabel],
		FreshTaint:      slices.ContainsFunc(n.Spec.Taints, isFresh),
		Leaving:         leaving(n),
		Unschedulable:   n.Spec.Unschedulable,
		Created:         n.CreationTimestamp.Time,
		BootID:          bootID(n.Status.NodeInfo.BootID),
		OSVersion:       fleet.OSVersion(n.Status.NodeInfo.OSImage),
	}
	if v.Interface == fleet.InterfacePlan {
		i := &n.Status.NodeInfo
		v.Info = &fleet.NodeInfo{Kubelet: i.KubeletVersion, OSImage: i.OSImage, Kernel: i.KernelVersion, Runtime: i.ContainerRuntimeVersion}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			v.Ready = c.Status == corev1.ConditionTrue
			v.ReadySince = c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
	}
	for _, k := range autoscalerMarks {
		if value, ok := n.Annotations[k]; ok {
			if v.Autoscalers == nil {
				v.Autoscalers = map[string]string{}
			}
			v.Autoscalers[k] = value
		}
	}
	v.HooksAnswered = answered(n.Annotations)
	v.Marks, v.Problems = marker.Decode(n.Annotations)
	return v
}
