package runner

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
)

// imageTag at the end of an image stands for the target.
const imageTag = ":TARGET_VERSION"

// newPod returns the one pod of a node's present intent. It is the template's but for what is set here.
func newPod(t *corev1.PodTemplate, n *next.Node) *corev1.Pod {
	target := marker.PlanTargetOf(n.Intent.Target)
	if n.Plan.Proof == marker.ProofContent {
		target = n.Plan.Digest
	}
	tag := strings.ReplaceAll(target, "+", "-")
	spec := t.Template.Spec.DeepCopy()
	spec.NodeName = n.Name
	spec.NodeSelector = with(spec.NodeSelector, map[string]string{string(marker.KeyInterfaceVersion): string(fleet.InterfacePlan)})
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	if spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = new(bool)
	}
	spec.ActiveDeadlineSeconds = new(int64(n.Plan.Within().Seconds()))
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if image, tagged := strings.CutSuffix(containers[i].Image, imageTag); tagged {
				containers[i].Image = image + ":" + tag
			}
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: kube.PlanPodName(n.Plan.Name, n.UID, n.Intent.ID),
			Labels: with(t.Template.Labels, map[string]string{kube.PlanLabel: n.Plan.Name}),
			Annotations: with(t.Template.Annotations, map[string]string{
				kube.PlanIntent: n.Intent.ID, kube.PlanNodeUID: n.UID, kube.PlanTemplate: t.Name, kube.PlanTarget: target, kube.PlanTag: tag,
			}),
			Finalizers: []string{kube.PlanFinalizer},
		},
		Spec: *spec,
	}
}

// with returns a map with more in it.
func with(m, more map[string]string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
