package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
)

// watcher looks at the cluster as a monitoring system would, all the time: at the operator's pods, and at
// how many nodes are out of service.
type watcher struct {
	mu    sync.Mutex
	found []string
	// unready is since when a pod on a node with power hasn't been Ready, backOff since when its container
	// isn't started again, by its UID.
	unready, backOff map[string]time.Time
}

const (
	look = 250 * time.Millisecond
	// unreadyFor is how long a pod of the operator may not be Ready while its node has power: it starts
	// with the node, and its probes look every 5 seconds.
	unreadyFor = time.Minute
	// backOffFor is more than a kubelet's first back-off. It counts a boot as an exit, so the first exit after
	// one meets it: an agent whose host's socket was replaced ends to get the new one.
	backOffFor = 15 * time.Second
)

func watch(w *world) *watcher {
	x := &watcher{unready: map[string]time.Time{}, backOff: map[string]time.Time{}}
	go func() {
		for range time.Tick(look) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			x.pods(ctx, w)
			x.nodes(ctx, w)
			cancel()
		}
	}()
	return x
}

func (x *watcher) wrong(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if !slices.Contains(x.found, what) {
		x.found = append(x.found, what)
	}
}

// wrongs returns what was found since the last call.
func (x *watcher) wrongs() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := x.found
	x.found = nil
	return found
}

func (x *watcher) pods(ctx context.Context, w *world) {
	list, err := w.Client.CoreV1().Pods(manifest.Namespace).List(ctx, metav1.ListOptions{LabelSelector: manifest.LabelName + "=" + manifest.Name})
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range list.Items {
		p := &list.Items[i]
		for _, c := range p.Status.ContainerStatuses {
			s := c.State.Waiting
			if lasts(x.backOff, string(p.UID), s != nil && s.Reason == "CrashLoopBackOff", backOffFor) {
				x.wrong("%s is in CrashLoopBackOff: %s", p.Name, ended(c.LastTerminationState.Terminated))
			}
			for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if end != nil && end.Reason == "OOMKilled" {
					x.wrong("%s was killed for its memory", p.Name)
				}
			}
		}
		node := w.Node(p.Spec.NodeName)
		away := p.DeletionTimestamp != nil || node != nil && !node.Up()
		if lasts(x.unready, string(p.UID), !podReady(p) && !away, unreadyFor) {
			x.wrong("%s on %s has not been Ready for more than %s", p.Name, p.Spec.NodeName, unreadyFor)
		}
	}
}

// lasts reports whether something has been so for longer than d.
func lasts(since map[string]time.Time, uid string, is bool, d time.Duration) bool {
	if !is {
		delete(since, uid)
		return false
	}
	began, known := since[uid]
	if !known {
		since[uid] = time.Now()
	}
	return known && time.Since(began) > d
}

func ended(end *corev1.ContainerStateTerminated) string {
	if end == nil {
		return "no end is known"
	}
	return fmt.Sprintf("exit status %d, %s %s", end.ExitCode, end.Reason, end.Message)
}

// nodes: S1, by what any client can see.
func (x *watcher) nodes(ctx context.Context, w *world) {
	nodes, err := w.views(ctx)
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var held []string
	for _, n := range nodes {
		lost := n.Marks.Waiting != nil && n.Marks.Waiting.Reason == "Lost"
		if n.Disrupted() && !lost {
			held = append(held, n.Name)
		}
		if len(n.Problems) > 0 {
			x.wrong("the marks of %s can't be read: %v", n.Name, n.Problems)
		}
	}
	if len(held) > 1 {
		x.wrong("S1: %v are out of service at once, more than 1", held)
	}

}
