package kube

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// unapplied is a sentence on why it isn't seen that the apply pod of an intent brought its content; empty if it is. The
// pod is found by what the runner wrote on it, and the admission policies let no other pod have that.
func unapplied(ctx context.Context, client kubernetes.Interface, node string, q plan.LiveCheck) (string, error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + node + ",metadata.namespace=" + PlansNamespace, LabelSelector: PlanLabel})
	if err != nil {
		return "", errors.Wrapf(err, "listing the pods of plans on node %q", node)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Annotations[PlanIntent] != q.Intent {
			continue
		}
		if p.Status.Phase != corev1.PodSucceeded {
			return fmt.Sprintf("pod %s/%s has not succeeded", p.Namespace, p.Name), nil
		}
		if said, _, _ := strings.Cut(TerminationMessage(p), " "); said != q.Digest {
			return fmt.Sprintf("pod %s/%s ended without the message %s", p.Namespace, p.Name, q.Digest), nil
		}
		return "", nil
	}
	return "the pod of the plan is not there any more", nil
}

// TerminationMessage is what the first container of a pod said as it ended, without the space around it.
func TerminationMessage(p *corev1.Pod) string {
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if len(p.Spec.Containers) > 0 && s.Name == p.Spec.Containers[0].Name && s.State.Terminated != nil {
			return strings.TrimSpace(s.State.Terminated.Message)
		}
	}
	return ""
}
