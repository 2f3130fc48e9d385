package nodesim

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Observer watches all Nodes and remembers what must not have happened.
type Observer struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	nodes    map[string]bool // whether it is cordoned
	cordoned int             // most at the same time
}

// Observe starts watching the Nodes; Close ends it. While the API server is away it sees nothing, and then goes on
// with what it finds.
func Observe(ctx context.Context, client kubernetes.Interface) *Observer {
	ctx, cancel := context.WithCancel(ctx)
	o := &Observer{cancel: cancel}
	o.wg.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { o.follow(ctx, client) }, 100*time.Millisecond)
	})
	return o
}

// follow lists and then watches until that ends. A list is taken as one, which an informer doesn't: told of it node
// by node, one sees a cordon that came before the uncordon that it had waited for.
func (o *Observer) follow(ctx context.Context, client kubernetes.Interface) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	o.mu.Lock()
	o.nodes = map[string]bool{}
	for i := range list.Items {
		o.nodes[list.Items[i].Name] = list.Items[i].Spec.Unschedulable
	}
	o.count()
	o.mu.Unlock()
	events, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			return
		}
		o.mu.Lock()
		if e.Type == apiwatch.Deleted {
			delete(o.nodes, node.Name)
		} else {
			o.nodes[node.Name] = node.Spec.Unschedulable
		}
		o.count()
		o.mu.Unlock()
	}
}

func (o *Observer) count() {
	cordoned := 0
	for _, is := range o.nodes {
		if is {
			cordoned++
		}
	}
	o.cordoned = max(o.cordoned, cordoned)
}

// MaxUnschedulable is the most nodes that were unschedulable at one moment.
func (o *Observer) MaxUnschedulable() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cordoned
}

// Close ends the watch.
func (o *Observer) Close() {
	o.cancel()
	o.wg.Wait()
}

// Ready tells whether a node says that it is ready.
func Ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
