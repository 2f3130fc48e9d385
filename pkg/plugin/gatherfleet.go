package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

// maxNames limits how many objects of a kind are kept to be named and counted.
const maxNames = 100_000

// fleet reads the nodes, and then what runs on those that are, or could be, updated. Of each page is kept what checks
// need: a whole Node is 10 KiB and more, a pod half of that.
func (g *gathering) fleet(ctx context.Context) {
	plans, err := g.upgradePlans(ctx)
	here, nodesErr := g.nodes(ctx, plans)
	g.s.Nodes = readOf(g.s.Nodes.Value, nodesErr)
	var upgrades []preflight.UpgradePlan
	for _, p := range plans {
		upgrades = append(upgrades, p.UpgradePlan)
	}
	g.s.UpgradePlans = readOf(upgrades, err)
	w := &workloads{g: g, here: here, owners: map[string]bool{}}
	budgets := w.readBudgets(ctx)
	var singles []string
	var singlesErr, podsErr error
	together(
		func() { singles, singlesErr = g.singles(ctx) },
		func() { podsErr = w.readPods(ctx) },
	)
	looked := make([]preflight.Budget, len(w.budgets))
	for i := range w.budgets {
		looked[i] = w.budgets[i].Budget
	}
	singles = slices.DeleteFunc(singles, func(name string) bool { return !w.owners[name] })
	g.s.Budgets = readOf(looked, firstErr(budgets, podsErr))
	g.s.Overlapping = readOf(w.overlapping, firstErr(budgets, podsErr))
	g.s.Singles = readOf(singles, firstErr(singlesErr, podsErr))
	g.s.Bare = readOf(w.bare, podsErr)
}

func firstErr(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// firstLabels are those that the 0.1.x operator wrote on nodes.
var firstLabels = []string{"bottlerocket.aws/update-available", "bottlerocket.aws/action-wanted",
	"bottlerocket.aws/action-active", "bottlerocket.aws/action-state"}

// nodes reads all nodes, and returns the names of those that are, or could be, updated.
func (g *gathering) nodes(ctx context.Context, plans []*upgradePlan) (map[string]bool, error) {
	here := map[string]bool{}
	more, err := each(ctx, "nodes", metav1.ListOptions{}, g.client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for i := range page.Items {
			n := &page.Items[i]
			out := preflight.Node{Node: kube.View(n), OSImage: n.Status.NodeInfo.OSImage,
				Kubelet: n.Status.NodeInfo.KubeletVersion}
			_, out.Excluded = n.Labels[marker.LabelExcluded]
			for _, l := range firstLabels {
				if _, there := n.Labels[l]; there {
					out.OldLabels = append(out.OldLabels, l)
				}
			}
			if out.Concerned() {
				here[n.Name] = true
				for _, p := range plans {
					if p.selector.Matches(labels.Set(n.Labels)) && out.Interface != fleet.InterfacePlan {
						p.Nodes = append(p.Nodes, n.Name)
					}
				}
			}
			out.Labels = nil
			g.s.Nodes.Value = append(g.s.Nodes.Value, out)
		}
	})
	g.cut(more, "nodes")
	return here, err
}

// upgradePlan is a Plan of system-upgrade-controller, with what it selects nodes by.
type upgradePlan struct {
	preflight.UpgradePlan
	selector labels.Selector
}

// upgradePlans reads the Plans of system-upgrade-controller. Without its CRD there are none.
func (g *gathering) upgradePlans(ctx context.Context) ([]*upgradePlan, error) {
	body, err := g.client.Discovery().RESTClient().Get().AbsPath("/apis/upgrade.cattle.io/v1/plans").
		Param("limit", "500").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, refusedTo("list", "plans.upgrade.cattle.io", err)
	}
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				NodeSelector *metav1.LabelSelector `json:"nodeSelector"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, refusedTo("list", "plans.upgrade.cattle.io", err)
	}
	var all []*upgradePlan
	for _, item := range list.Items {
		// Without a selector it is for all nodes.
		selector, err := metav1.LabelSelectorAsSelector(cmp.Or(item.Spec.NodeSelector, &metav1.LabelSelector{}))
		if err != nil {
			continue
		}
		all = append(all, &upgradePlan{preflight.UpgradePlan{Name: item.Metadata.Namespace + "/" + item.Metadata.Name},
			selector})
	}
	return all, nil
}

// workloads are what runs on the nodes that are, or could be, updated.
type workloads struct {
	g       *gathering
	here    map[string]bool
	budgets []*budget
	// owners are the workloads that have pods there, as KIND NAMESPACE/NAME.
	owners            map[string]bool
	bare, overlapping []string
}

type budget struct {
	preflight.Budget
	namespace string
	selector  labels.Selector
}

func (w *workloads) readBudgets(ctx context.Context) error {
	more, err := each(ctx, "poddisruptionbudgets", metav1.ListOptions{},
		w.g.client.PolicyV1().PodDisruptionBudgets("").List, func(page *policyv1.PodDisruptionBudgetList) {
			for i := range page.Items {
				b := &page.Items[i]
				// A selector that is empty selects all, one that is not there nothing.
				selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
				if err != nil {
					selector = labels.Nothing()
				}
				out := &budget{namespace: b.Namespace, selector: selector,
					Budget: preflight.Budget{Name: b.Namespace + "/" + b.Name,
						Expected: int(b.Status.ExpectedPods), Healthy: int(b.Status.CurrentHealthy), Allowed: int(b.Status.DisruptionsAllowed)}}
				if b.Spec.MinAvailable != nil {
					out.MinAvailable = b.Spec.MinAvailable.String()
				}
				if b.Spec.MaxUnavailable != nil {
					out.MaxUnavailable = b.Spec.MaxUnavailable.String()
				}
				w.budgets = append(w.budgets, out)
			}
		})
	w.g.cut(more, "poddisruptionbudgets")
	return err
}

// readPods looks at each pod that runs, and keeps none of them.
func (w *workloads) readPods(ctx context.Context) error {
	byNamespace := map[string][]*budget{}
	for _, b := range w.budgets {
		byNamespace[b.namespace] = append(byNamespace[b.namespace], b)
	}
	more, err := each(ctx, "pods", metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"},
		w.g.client.CoreV1().Pods("").List, func(page *corev1.PodList) {
			for i := range page.Items {
				if p := &page.Items[i]; w.here[p.Spec.NodeName] && !kube.OwnPod(w.g.namespace, p) {
					w.look(p, byNamespace[p.Namespace])
				}
			}
		})
	w.g.cut(more, "pods")
	return err
}

func (w *workloads) look(p *corev1.Pod, budgets []*budget) {
	name := p.Namespace + "/" + p.Name
	owner := metav1.GetControllerOf(p)
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror:
		return
	case owner == nil:
		if len(w.bare) < maxNames {
			w.bare = append(w.bare, name)
		}
	case owner.Kind == "DaemonSet":
		// A drain leaves it in place.
		return
	case owner.Kind == "ReplicaSet":
		// Its Deployment's name comes before the hash that both have.
		deployment, _ := strings.CutSuffix(owner.Name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		w.owners[workloadName("Deployment", p.Namespace, deployment)] = true
	case owner.Kind == "StatefulSet":
		w.owners[workloadName(owner.Kind, p.Namespace, owner.Name)] = true
	}
	selecting := 0
	for _, b := range budgets {
		if b.selector.Matches(labels.Set(p.Labels)) {
			b.Here++
			selecting++
		}
	}
	if selecting > 1 && len(w.overlapping) < maxNames {
		w.overlapping = append(w.overlapping, name)
	}
}

func workloadName(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// singles reads which Deployments and StatefulSets have one replica, but for the operator's own.
func (g *gathering) singles(ctx context.Context) ([]string, error) {
	var all []string
	add := func(kind string, o *metav1.ObjectMeta, replicas *int32) {
		if ptr.Deref(replicas, 1) == 1 {
			all = append(all, workloadName(kind, o.Namespace, o.Name))
		}
	}
	more, err := each(ctx, "deployments", metav1.ListOptions{}, g.client.AppsV1().Deployments("").List,
		func(page *appsv1.DeploymentList) {
			for i := range page.Items {
				add("Deployment", &page.Items[i].ObjectMeta, page.Items[i].Spec.Replicas)
			}
		})
	if err != nil {
		return nil, err
	}
	g.cut(more, "deployments")
	more, err = each(ctx, "statefulsets", metav1.ListOptions{}, g.client.AppsV1().StatefulSets("").List,
		func(page *appsv1.StatefulSetList) {
			for i := range page.Items {
				add("StatefulSet", &page.Items[i].ObjectMeta, page.Items[i].Spec.Replicas)
			}
		})
	g.cut(more, "statefulsets")
	return all, err
}
