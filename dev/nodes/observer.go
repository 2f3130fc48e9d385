package nodes

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Observer watches all Nodes and remembers what must not have happened.
type Observer struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	nodes    map[string]seenNode
	cordoned int // most at the same time
	notReady int
}

type seenNode struct{ cordoned, notReady bool }

// Observe starts watching the Nodes; Close ends it.
func Observe(ctx context.Context, client kubernetes.Interface) *Observer {
	ctx, cancel := context.WithCancel(ctx)
	o := &Observer{cancel: cancel, nodes: map[string]seenNode{}}
	watch(ctx, &o.wg, client.CoreV1().RESTClient(), "nodes", "", nil, o.see)
	return o
}

func (o *Observer) see(_, node *corev1.Node, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if gone {
		delete(o.nodes, node.Name)
		return
	}
	o.nodes[node.Name] = seenNode{cordoned: node.Spec.Unschedulable, notReady: !Ready(node)}
	cordoned, notReady := 0, 0
	for _, n := range o.nodes {
		if n.cordoned {
			cordoned++
		}
		if n.notReady {
			notReady++
		}
	}
	o.cordoned = max(o.cordoned, cordoned)
	o.notReady = max(o.notReady, notReady)
}

// MaxUnschedulable is the most nodes that were unschedulable at one moment.
func (o *Observer) MaxUnschedulable() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cordoned
}

// MaxNotReady is the most nodes that weren't Ready at one moment, those that
// were new included.
func (o *Observer) MaxNotReady() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notReady
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
