package simcluster_test

import (
	"context"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// moment is a phase, but that a reboot has two: asked for, and past the point of no return.
type moment string

const (
	preparing       = moment(intent.PhasePreparing)
	prepared        = moment(intent.PhasePrepared)
	draining        = moment(intent.PhaseDraining)
	rebooting       = moment(intent.PhaseRebooting)
	pointOfNoReturn = moment("point of no return")
	returning       = moment(intent.PhaseReturning)
	verifying       = moment(intent.PhaseVerifying)
	resetting       = moment(intent.PhaseResetting)
)

func momentOf(n *corev1.Node) moment {
	m, problems := marker.Decode(n.Annotations)
	if len(problems) > 0 {
		return moment(intent.PhaseUnreadable)
	}
	phase := intent.PhaseOf(m)
	if phase == intent.PhaseRebooting && intent.PointOfNoReturn(m) {
		return pointOfNoReturn
	}
	return moment(phase)
}

// reached is a node that has just come to a moment.
type reached struct {
	node   string
	moment moment
}

// follow calls seen, one call at a time, whenever a node comes to another moment, until the test ends or
// the returned function is called.
func (w *world) follow(t *testing.T, seen func(reached)) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	last := map[string]moment{}
	look := func(obj any) {
		if n, ok := obj.(*corev1.Node); ok {
			if m := momentOf(n); last[n.Name] != m {
				last[n.Name] = m
				seen(reached{n.Name, m})
			}
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(w.Client.CoreV1().RESTClient(), "nodes", "", fields.Everything()),
		ObjectType:    &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    look,
			UpdateFunc: func(_, obj any) { look(obj) },
		},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	stop := func() { cancel(); <-ended }
	t.Cleanup(stop)
	assert.Assert(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	return stop
}

// moment looks live where a node is.
func (w *world) moment(ctx context.Context, node string) (moment, error) {
	n, err := w.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return momentOf(n), nil
}
