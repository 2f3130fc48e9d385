package plugin

import (
	"context"
	"io"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// watchAgain is how often a watch looks whether anything is to be printed: Nodes of a large fleet change all the time.
const watchAgain = time.Second

// gone stands in the column of phases when a node has left the operator's care.
const gone = "Gone"

// watchStatus prints all nodes, and then each one that looks different, until ctx ends.
func (p *plugin) watchStatus(ctx context.Context, client kubernetes.Interface, o *statusOptions) error {
	w := newWatched(client, p.namespace())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.run(ctx); err != nil {
		return err
	}
	show := &shown{plugin: p, o: o, before: map[string]Status{}}
	for ctx.Err() == nil {
		if err := show.changes(w.snapshot(p.now())); err != nil {
			return err
		}
		again := time.NewTimer(p.again)
		select {
		case <-ctx.Done():
		case <-again.C:
		case err := <-w.failed:
			// What is shown may be old until it is tried again.
			warn(p.ErrOut, []string{"watching: " + err.Error()})
		}
		again.Stop()
	}
	return nil
}

// watched is the fleet kept up to date.
type watched struct {
	nodes, agents, policy cache.SharedIndexInformer

	failed chan error
}

func newWatched(client kubernetes.Interface, namespace string) *watched {
	w := &watched{
		nodes: kube.NodeInformer(client), agents: kube.AgentInformer(client, namespace, kube.AgentSelector),
		policy: kube.ConfigMapInformer(client, namespace, kube.PolicyConfigMap), failed: make(chan error, 1),
	}
	for _, i := range w.all() {
		// Only one that runs already refuses this.
		_ = i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			if usual(err) {
				return
			}
			select {
			case w.failed <- err:
			default:
			}
		})
	}
	return w
}

// usual reports whether a watch ended as watches do: it begins anew.
func usual(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (w *watched) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{w.nodes, w.agents, w.policy}
}

// run watches until ctx ends, and returns when everything was seen once. What is refused at the beginning is an
// error; later on it is tried again.
func (w *watched) run(ctx context.Context) error {
	var synced []cache.InformerSynced
	for _, i := range w.all() {
		go i.RunWithContext(ctx)
		synced = append(synced, i.HasSynced)
	}
	seen := make(chan bool, 1)
	go func() { seen <- cache.WaitForCacheSync(ctx.Done(), synced...) }()
	select {
	case <-seen:
		return nil
	case err := <-w.failed:
		return errors.WithMessage(err, "watching")
	}
}

func (w *watched) snapshot(now time.Time) *snapshot {
	o := &kube.Objects{}
	for _, obj := range w.nodes.GetStore().List() {
		if n, ok := obj.(*corev1.Node); ok {
			o.Nodes = append(o.Nodes, n)
		}
	}
	for _, obj := range w.agents.GetStore().List() {
		if pod, ok := obj.(*corev1.Pod); ok {
			o.Agents = append(o.Agents, pod)
		}
	}
	var config *corev1.ConfigMap
	for _, obj := range w.policy.GetStore().List() {
		config, _ = obj.(*corev1.ConfigMap)
	}
	return newSnapshot(now, o, config)
}
