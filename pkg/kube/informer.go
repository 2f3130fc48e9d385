package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// pageSize bounds how many whole Nodes, or Pods, are in memory at once where the server has no WatchList.
const pageSize = 100

// inPages lists in pages of a size, each of which take strips before the next is asked for. It returns the last
// page's metadata, which is that of the whole list.
func inPages[L metav1.ListInterface](ctx context.Context, size int64, o metav1.ListOptions, list func(context.Context, metav1.ListOptions) (L, error), take func(L)) (metav1.ListMeta, error) {
	// From version 0 a server may answer from its cache, and then it ignores the limit.
	if o.ResourceVersion == "0" {
		o.ResourceVersion = ""
	}
	for o.Limit = size; ; {
		page, err := list(ctx, o)
		if err != nil {
			return metav1.ListMeta{}, err
		}
		take(page)
		if page.GetContinue() == "" {
			return metav1.ListMeta{ResourceVersion: page.GetResourceVersion()}, nil
		}
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = page.GetContinue(), "", ""
	}
}

// NodeInformer watches all nodes, stripped. With WatchList the server streams them one by one; without it
// the list is read in pages, each stripped before the next is asked for.
func NodeInformer(client kubernetes.Interface) cache.SharedIndexInformer {
	nodes := client.CoreV1().Nodes()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			all := &corev1.NodeList{}
			var err error
			all.ListMeta, err = inPages(ctx, pageSize, o, nodes.List, func(page *corev1.NodeList) {
				for i := range page.Items {
					all.Items = append(all.Items, *stripNode(&page.Items[i]))
				}
			})
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
	}
	i := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Node{},
		cache.SharedIndexInformerOptions{ObjectDescription: "nodes"})
	// Only an informer that runs already refuses a transform.
	_ = i.SetTransform(transformNode)
	return i
}

const (
	byNode = "node"
	// runners stands in for the node's name of all runners' pods: one of them serves all nodes of plans.
	runners = "/runners"

	componentLabel  = "app.kubernetes.io/component"
	runnerComponent = "runner"
)

func isRunner(p *corev1.Pod) bool { return p.Labels[componentLabel] == runnerComponent }

// AgentIndexers index agents' pods by the node that they are on, as a Cluster looks them up, and runners' pods beside.
func AgentIndexers() cache.Indexers {
	return cache.Indexers{byNode: func(obj any) ([]string, error) {
		p, ok := obj.(*corev1.Pod)
		switch {
		case !ok:
			return nil, nil
		case isRunner(p):
			return []string{runners}, nil
		}
		return []string{p.Spec.NodeName}, nil
	}}
}

// AgentInformer watches the pods of namespace that selector finds, stripped.
func AgentInformer(client kubernetes.Interface, namespace, selector string) cache.SharedIndexInformer {
	pods := client.CoreV1().Pods(namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			all := &corev1.PodList{}
			var err error
			all.ListMeta, err = inPages(ctx, pageSize, o, pods.List, func(page *corev1.PodList) {
				for i := range page.Items {
					all.Items = append(all.Items, *stripPod(&page.Items[i]))
				}
			})
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return pods.Watch(ctx, o)
		},
	}
	i := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Pod{},
		cache.SharedIndexInformerOptions{ObjectDescription: "agent pods", Indexers: AgentIndexers()})
	_ = i.SetTransform(transformPod)
	return i
}
