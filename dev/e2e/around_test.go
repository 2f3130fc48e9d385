package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// around is what happens to a node of plans and around it, as any client sees it.
type around struct {
	w    *world
	node string
	// before are the containers of all pods elsewhere, by the pods' UIDs, as they were at the start.
	before map[string]string

	mu sync.Mutex
	// seen are what happened, by the revision of the store that each belongs to.
	seen map[uint64]string
	// cordoned are other nodes that were.
	cordoned []string
}

// watchAround begins to watch.
func (w *world) watchAround(t *testing.T, n *realcluster.Node) *around {
	t.Helper()
	a := &around{w: w, node: n.Name(), seen: map[uint64]string{}}
	a.before = a.elsewhere(t)
	ctx, cancel := context.WithCancel(t.Context())
	f := informers.NewSharedInformerFactory(w.Client, 0)
	nodes, err := f.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, now any) {
		a.changed(before.(*corev1.Node), now.(*corev1.Node))
	}})
	assert.NilError(t, err)
	pods, err := f.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj any, _ bool) {
		if p := obj.(*corev1.Pod); p.Namespace == kube.PlansNamespace && p.Spec.NodeName == a.node {
			a.note(p.ResourceVersion, fmt.Sprintf("pod of %s made", p.Labels[kube.PlanLabel]))
		}
	}, DeleteFunc: func(obj any) {
		if p, ok := obj.(*corev1.Pod); ok && p.Labels["app"] == "guest" && p.Spec.NodeName == a.node {
			a.note(p.ResourceVersion, "guest gone")
		}
	}})
	assert.NilError(t, err)
	f.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		f.Shutdown()
	})
	assert.Assert(t, cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced))
	return a
}

// elsewhere are the containers of pods on other nodes, but for the runner's.
func (a *around) elsewhere(t *testing.T) map[string]string {
	t.Helper()
	list, err := a.w.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	out := map[string]string{}
	for _, p := range list.Items {
		if p.Spec.NodeName == a.node || p.DeletionTimestamp != nil || p.Namespace == kube.PlansNamespace || p.Labels[manifest.LabelComponent] == manifest.Runner {
			continue
		}
		for _, c := range p.Status.ContainerStatuses {
			out[string(p.UID)] += fmt.Sprintf("%s/%s on %s: %s %s", p.Namespace, p.Name, p.Spec.NodeName, c.Name, c.ContainerID)
		}
	}
	return out
}

func (a *around) changed(before, now *corev1.Node) {
	if now.Name != a.node {
		if now.Spec.Unschedulable && !before.Spec.Unschedulable {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.cordoned = append(a.cordoned, now.Name)
		}
		return
	}
	if is, was := now.Spec.Unschedulable, before.Spec.Unschedulable; is && !was {
		a.note(now.ResourceVersion, "cordoned")
	} else if was && !is {
		a.note(now.ResourceVersion, "uncordoned")
	}
	if is := now.Status.NodeInfo.KubeletVersion; is != before.Status.NodeInfo.KubeletVersion {
		a.note(now.ResourceVersion, "kubelet "+is)
	}
	if now.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID {
		a.note(now.ResourceVersion, "new boot")
	}
}

func (a *around) note(revision, what string) {
	at, err := strconv.ParseUint(revision, 10, 64)
	if err != nil {
		what = err.Error()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[at] = what
}

// check compares what happened, in its order, and that nothing happened to other nodes and the pods on them.
func (a *around) check(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	await(t, fmt.Sprintf("%v were seen", want), func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		got = nil
		var order []uint64
		for at := range a.seen {
			order = append(order, at)
		}
		slices.Sort(order)
		for _, at := range order {
			got = append(got, a.seen[at])
		}
		return len(got) >= len(want), fmt.Errorf("%v", got)
	})
	assert.DeepEqual(t, got, want)
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.Equal(t, len(a.cordoned), 0, "other nodes were cordoned: %v", a.cordoned)
	now := a.elsewhere(t)
	for uid, was := range a.before {
		assert.Equal(t, now[uid], was)
	}
}
