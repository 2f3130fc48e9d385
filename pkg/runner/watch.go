package runner

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// planNodes selects the nodes of plans.
const planNodes = string(marker.KeyInterfaceVersion) + "=" + string(fleet.InterfacePlan)

// byNode indexes pods by the node that they are on.
const byNode = "node"

// Source says what an informer watches: objects of a namespace, or one of them by its name.
type Source struct {
	Resource, Namespace, Name, Selector string
	Indexers                            cache.Indexers
	// Strip is what is kept of an object.
	Strip func(any) any
	kind  runtime.Object
}

// informer returns one that keeps of each object what Strip leaves.
func (s Source) informer(client kubernetes.Interface) kube.Informer {
	if s.Name != "" {
		return kube.ConfigMapInformer(client, s.Namespace, s.Name)
	}
	lw := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), s.Resource, s.Namespace, func(o *metav1.ListOptions) { o.LabelSelector = s.Selector })
	i := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), s.kind,
		cache.SharedIndexInformerOptions{ObjectDescription: s.Resource, Indexers: s.Indexers})
	// Only an informer that runs already refuses a transform.
	_ = i.SetTransform(func(obj any) (any, error) { return s.Strip(obj), nil })
	return i
}

// watches are all that a runner watches.
type watches struct {
	nodes, pods, templates, configMaps, secrets, policy, targets kube.Informer
}

func newWatches(informer func(Source) kube.Informer, o Options) watches {
	asItIs := func(obj any) any { return obj }
	return watches{
		nodes: informer(Source{Resource: "nodes", Selector: planNodes, kind: &corev1.Node{}, Strip: stripNode}),
		pods: informer(Source{Resource: "pods", Namespace: o.PlansNamespace, Selector: kube.PlanLabel, kind: &corev1.Pod{}, Strip: stripPod,
			Indexers: cache.Indexers{byNode: nodeOfPod}}),
		templates:  informer(Source{Resource: "podtemplates", Namespace: o.PlansNamespace, kind: &corev1.PodTemplate{}, Strip: stripContent}),
		configMaps: informer(Source{Resource: "configmaps", Namespace: o.PlansNamespace, kind: &corev1.ConfigMap{}, Strip: stripContent}),
		secrets:    informer(Source{Resource: "secrets", Namespace: o.PlansNamespace, kind: &corev1.Secret{}, Strip: stripContent}),
		policy:     informer(Source{Resource: "configmaps", Namespace: o.Namespace, Name: kube.PolicyConfigMap, Strip: asItIs}),
		targets:    informer(Source{Resource: "configmaps", Namespace: o.Namespace, Name: kube.PlanTargetsConfigMap, Strip: asItIs}),
	}
}

func (w *watches) all() []kube.Informer {
	return []kube.Informer{w.nodes, w.pods, w.templates, w.configMaps, w.secrets, w.policy, w.targets}
}

func (w *watches) synced() bool {
	for _, i := range w.all() {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

func nodeOfPod(obj any) ([]string, error) {
	if p, ok := obj.(*corev1.Pod); ok {
		return []string{p.Spec.NodeName}, nil
	}
	return nil, nil
}

// stripNode keeps of a Node what a step is decided from.
func stripNode(obj any) any {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj
	}
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Annotations: own(n.Annotations),
		Labels: map[string]string{string(marker.KeyInterfaceVersion): n.Labels[string(marker.KeyInterfaceVersion)]}}}
	out.Spec.Unschedulable = n.Spec.Unschedulable
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	i := n.Status.NodeInfo
	out.Status.NodeInfo = corev1.NodeSystemInfo{BootID: i.BootID, KubeletVersion: i.KubeletVersion, OSImage: i.OSImage,
		KernelVersion: i.KernelVersion, ContainerRuntimeVersion: i.ContainerRuntimeVersion}
	return out
}

// own are the operator's annotations.
func own(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		if strings.HasPrefix(k, marker.Prefix) {
			out[k] = strings.Clone(v)
		}
	}
	return out
}

// stripPod keeps of a pod what podOf reads.
func stripPod(obj any) any {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		Annotations: own(p.Annotations), Labels: map[string]string{kube.PlanLabel: p.Labels[kube.PlanLabel]}, Finalizers: p.Finalizers,
		CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp}}
	out.Spec.NodeName = p.Spec.NodeName
	if len(p.Spec.Containers) > 0 {
		out.Spec.Containers = []corev1.Container{{Name: p.Spec.Containers[0].Name}}
	}
	s := p.Status
	out.Status = corev1.PodStatus{Phase: s.Phase, Reason: s.Reason, StartTime: s.StartTime, InitContainerStatuses: stripStatuses(s.InitContainerStatuses),
		ContainerStatuses: stripStatuses(s.ContainerStatuses)}
	for _, c := range s.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{Type: c.Type, LastTransitionTime: c.LastTransitionTime})
	}
	return out
}

func stripStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range all {
		out = append(out, corev1.ContainerStatus{Name: s.Name, State: s.State, RestartCount: s.RestartCount})
	}
	return out
}

// stripContent keeps of a PodTemplate, a ConfigMap or a Secret its name and what is in it.
func stripContent(obj any) any {
	meta := func(m metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	switch o := obj.(type) {
	case *corev1.PodTemplate:
		return &corev1.PodTemplate{ObjectMeta: meta(o.ObjectMeta), Template: o.Template}
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: meta(o.ObjectMeta), Data: o.Data, BinaryData: o.BinaryData}
	case *corev1.Secret:
		return &corev1.Secret{ObjectMeta: meta(o.ObjectMeta), Data: o.Data}
	}
	return obj
}
