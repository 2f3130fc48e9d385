package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// A baseline is bounded: it stands in an annotation, and is looked at again one by one.
const (
	baselineSize   = 20
	baselineLength = 1536
)

// Check looks live at what a node carries.
func (k *Cluster) Check(ctx context.Context, node string, q plan.LiveCheck) (fleet.Checked, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	l := fleet.Checked{For: q.For, Digest: q.Digest}
	var err error
	switch q.For {
	case fleet.CheckBaseline:
		l.Workloads, err = baseline(ctx, k.c.Client, k.c.Namespace, node)
	case fleet.CheckVolumes:
		l.Attachments, l.Problem, err = attachedVolumes(ctx, k.c.Client, node, q.Attachments)
	case fleet.CheckPods:
		if q.Digest != "" {
			l.Problem, err = unapplied(ctx, k.c.Client, node, q)
		}
		if err == nil && l.Problem == "" {
			l.Problem, err = unwellPods(ctx, k.c.Client, node, q.Pods)
		}
	case fleet.CheckWorkloads:
		l.Problem, err = unwellWorkloads(ctx, k.c.Client, q.Workloads)
	case fleet.CheckApplied:
		l.Problem, err = unapplied(ctx, k.c.Client, node, q)
	default:
		err = errors.Errorf("no check is known for %q", q.For)
	}
	return l, err
}

// podsOf lists the pods of a node that aren't on their way out, by namespace and name.
func podsOf(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, errors.Wrapf(err, "listing pods of node %q", node)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

// unwellPods is a sentence on the first selector whose pods on the node aren't all Ready, or that finds none.
func unwellPods(ctx context.Context, client kubernetes.Interface, node string, want []policy.PodSelector) (string, error) {
	pods, err := podsOf(ctx, client, node)
	if err != nil {
		return "", err
	}
	for _, s := range want {
		found := false
		for i := range pods {
			p := &pods[i]
			if s.Namespace != "" && p.Namespace != s.Namespace || !s.Selector.Matches(p.Labels) {
				continue
			}
			found = true
			if !podReady(p) {
				return fmt.Sprintf("pod %s/%s is not Ready, and %s must be", p.Namespace, p.Name, s), nil
			}
		}
		if !found {
			return fmt.Sprintf("no pod of %s is there, and one must be Ready", s), nil
		}
	}
	return "", nil
}

// baseline finds the Deployments, ReplicaSets and StatefulSets that have Ready pods on the node, with how many Ready
// pods each has in the whole cluster, the operator's own in its namespace left out. Of too many it takes those whose
// pods come first by name.
func baseline(ctx context.Context, client kubernetes.Interface, own, node string) (map[string]int, error) {
	pods, err := podsOf(ctx, client, node)
	if err != nil {
		return nil, err
	}
	found, asked, length := map[string]int{}, map[string]bool{}, 0
	for i := range pods {
		p := &pods[i]
		owner := metav1.GetControllerOf(p)
		if owner == nil || !podReady(p) || OwnPod(own, p) {
			continue
		}
		first := workload{owner.Kind, p.Namespace, owner.Name}
		if !first.known() || asked[first.String()] {
			continue
		}
		asked[first.String()] = true
		w, state, err := first.top(ctx, client)
		if err != nil {
			return nil, err
		}
		if _, there := found[w.String()]; there || state.ready == 0 {
			continue
		}
		if length += len(w.String()); len(found) == baselineSize || length > baselineLength {
			break
		}
		found[w.String()] = state.ready
	}
	return found, nil
}

// unwellWorkloads is a sentence on the first workload that has less Ready pods than it had, and than it should have
// now.
func unwellWorkloads(ctx context.Context, client kubernetes.Interface, before map[string]int) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		w := workloadNamed(name)
		if !w.known() {
			// Written by a newer build.
			continue
		}
		s, err := w.state(ctx, client)
		if err != nil {
			return "", err
		}
		if s.there && s.ready < min(before[name], s.wanted) {
			return fmt.Sprintf("%s %s/%s has %d Ready pods, and had %d before the drain", w.kind, w.namespace, w.name, s.ready, before[name]), nil
		}
	}
	return "", nil
}

type workload struct{ kind, namespace, name string }

const (
	deployment  = "Deployment"
	replicaSet  = "ReplicaSet"
	statefulSet = "StatefulSet"
)

func workloadNamed(s string) workload {
	kind, rest, _ := strings.Cut(s, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	return workload{kind, namespace, name}
}

func (w workload) String() string { return w.kind + "/" + w.namespace + "/" + w.name }

// known reports whether its kind says how many Ready pods it has. A Job's pods end, and a DaemonSet's are the node's
// own.
func (w workload) known() bool {
	return (w.kind == deployment || w.kind == replicaSet || w.kind == statefulSet) && w.namespace != "" && w.name != ""
}

// workloadState is how a workload is; one that is gone, or going, is not awaited.
type workloadState struct {
	there         bool
	ready, wanted int
	owner         *metav1.OwnerReference
}

func (w workload) state(ctx context.Context, client kubernetes.Interface) (workloadState, error) {
	var meta *metav1.ObjectMeta
	var wanted *int32
	var ready int32
	var err error
	switch w.kind {
	case deployment:
		var d *appsv1.Deployment
		if d, err = client.AppsV1().Deployments(w.namespace).Get(ctx, w.name, metav1.GetOptions{}); err == nil {
			meta, wanted, ready = &d.ObjectMeta, d.Spec.Replicas, d.Status.ReadyReplicas
		}
	case replicaSet:
		var r *appsv1.ReplicaSet
		if r, err = client.AppsV1().ReplicaSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{}); err == nil {
			meta, wanted, ready = &r.ObjectMeta, r.Spec.Replicas, r.Status.ReadyReplicas
		}
	case statefulSet:
		var s *appsv1.StatefulSet
		if s, err = client.AppsV1().StatefulSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{}); err == nil {
			meta, wanted, ready = &s.ObjectMeta, s.Spec.Replicas, s.Status.ReadyReplicas
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return workloadState{}, nil
	case err != nil:
		return workloadState{}, errors.Wrapf(err, "reading %s %s/%s", w.kind, w.namespace, w.name)
	case meta.DeletionTimestamp != nil:
		return workloadState{}, nil
	}
	return workloadState{there: true, ready: int(ready), wanted: int(ptr.Deref(wanted, 1)), owner: metav1.GetControllerOf(meta)}, nil
}

// top is the workload that a user made: a ReplicaSet's Deployment, which another ReplicaSet may serve tomorrow.
func (w workload) top(ctx context.Context, client kubernetes.Interface) (workload, workloadState, error) {
	s, err := w.state(ctx, client)
	if err != nil || w.kind != replicaSet || s.owner == nil || s.owner.Kind != deployment {
		return w, s, err
	}
	w.kind, w.name = deployment, s.owner.Name
	s, err = w.state(ctx, client)
	return w, s, err
}
