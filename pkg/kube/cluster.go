package kube

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// cacheBehind is how long a watch may lag behind a write of this process before the node is read live: after an
// etcd restore it never catches up.
const cacheBehind = 30 * time.Second

// requestTime bounds each request that isn't a watch: a server that accepts and never answers must not
// hold a pass.
const requestTime = 30 * time.Second

// ErrConflict means that the object was written to since it was read: read it again.
var ErrConflict = errors.New("the object changed since it was read")

// Informer keeps the objects of one kind as a watch shows them; a cache.SharedIndexInformer is one.
type Informer interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	GetIndexer() cache.Indexer
	HasSynced() bool
	RunWithContext(ctx context.Context)
}

// ClusterConfig is what a Cluster is made from.
type ClusterConfig struct {
	Client kubernetes.Interface
	// Namespace is the operator's own.
	Namespace string
	// Nodes and Agents are as NodeInformer and AgentInformer return them, not yet running.
	Nodes, Agents Informer
	// Changed is called, on any goroutine, when the fleet looks different. It must not block.
	Changed func()
	Now     func() time.Time
	Log     logrus.FieldLogger
}

// Cluster is the fleet as the API server shows it.
type Cluster struct {
	c     ClusterConfig
	slots slots

	mu sync.Mutex
	// written are Nodes as the API server returned them for writes of this process, until the watch shows them.
	written map[string]write
	// views by name are made anew only when the resourceVersion changes.
	views map[string]fleet.Node
	// nodesSynced reports whether all nodes of the first list are in views; that the informer has them comes before that.
	nodesSynced func() bool
}

type write struct {
	node *corev1.Node
	at   time.Time
}

// NewCluster returns a Cluster that watches nothing yet.
func NewCluster(c ClusterConfig) (*Cluster, error) {
	k := &Cluster{
		c:       c,
		slots:   slots{client: c.Client, namespace: c.Namespace},
		written: map[string]write{},
		views:   map[string]fleet.Node{},
	}
	nodes, err := k.c.Nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.observe(obj) },
		UpdateFunc: func(_, obj any) { k.observe(obj) },
		DeleteFunc: func(obj any) { k.gone(obj) },
	})
	if err != nil {
		return nil, errors.Wrap(err, "watching nodes")
	}
	k.nodesSynced = nodes.HasSynced
	changed := func() { c.Changed() }
	if _, err := k.c.Agents.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(old, obj any) {
			if !samePod(old, obj) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	}); err != nil {
		return nil, errors.Wrap(err, "watching agent pods")
	}
	return k, nil
}

func samePod(a, b any) bool {
	p, ok := a.(*corev1.Pod)
	q, also := b.(*corev1.Pod)
	return ok && also && p.UID == q.UID && p.Spec.NodeName == q.Spec.NodeName && podReady(p) == podReady(q)
}

func podReady(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// seeAgent notes an agent's pod on its node.
func seeAgent(n *fleet.Node, p *corev1.Pod) {
	n.AgentPod = true
	n.AgentReady = n.AgentReady || podReady(p)
}

// Run watches until ctx ends.
func (k *Cluster) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { k.c.Nodes.RunWithContext(ctx) })
	wg.Go(func() { k.c.Agents.RunWithContext(ctx) })
	wg.Wait()
}

// Synced reports whether everything has been seen once.
func (k *Cluster) Synced() bool { return k.nodesSynced() && k.c.Agents.HasSynced() }

// WaitForSync waits until everything has been seen once, or ctx ends.
func (k *Cluster) WaitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), k.nodesSynced, k.c.Agents.HasSynced)
}

func (k *Cluster) observe(obj any) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	k.mu.Lock()
	if w, ok := k.written[n.Name]; ok && (w.node.UID != n.UID || !newer(w.node.ResourceVersion, n.ResourceVersion)) {
		delete(k.written, n.Name)
	}
	old, had := k.views[n.Name]
	_, ahead := k.written[n.Name]
	different := false
	if !ahead {
		v := View(n)
		different = !had || !sameView(old, v)
		k.views[n.Name] = v
	}
	k.mu.Unlock()
	if different {
		k.c.Changed()
	}
}

func (k *Cluster) gone(obj any) {
	if n, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		k.forget(n.Name)
		k.c.Changed()
	}
}

func (k *Cluster) forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.written, name)
	delete(k.views, name)
}

// Nodes returns what all nodes look like now, sorted by name. A node that we wrote to looks as the API
// server returned it until the watch has caught up; if that takes too long it is read live.
func (k *Cluster) Nodes(ctx context.Context) ([]fleet.Node, error) {
	if err := k.catchUp(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	out := slices.AppendSeq(make([]fleet.Node, 0, len(k.views)), maps.Values(k.views))
	k.mu.Unlock()
	for i := range out {
		at := out[i].Name
		if out[i].Interface == fleet.InterfacePlan {
			at = runners
		}
		pods, err := k.c.Agents.GetIndexer().ByIndex(byNode, at)
		if err != nil {
			return nil, errors.Wrap(err, "looking up agent pods")
		}
		for _, obj := range pods {
			if p, ok := obj.(*corev1.Pod); ok {
				seeAgent(&out[i], p)
			}
		}
	}
	slices.SortFunc(out, func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// catchUp reads live what the watch should have shown long ago.
func (k *Cluster) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	now := k.c.Now()
	k.mu.Lock()
	var late []string
	for name, w := range k.written {
		if now.Sub(w.at) > cacheBehind {
			late = append(late, name)
		}
	}
	k.mu.Unlock()
	slices.Sort(late)
	for _, name := range late {
		if err := k.readLive(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// readLive makes what a node is right now what it looks like until the watch shows something newer.
func (k *Cluster) readLive(ctx context.Context, name string) error {
	_, _, err := k.live(ctx, name)
	return err
}

// Live looks at a node as it is right now; false: it is gone. Later looks show nothing older.
func (k *Cluster) Live(ctx context.Context, name string) (fleet.Node, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return k.live(ctx, name)
}

func (k *Cluster) live(ctx context.Context, name string) (fleet.Node, bool, error) {
	n, err := k.c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		k.forget(name)
		return fleet.Node{}, false, nil
	}
	if err != nil {
		return fleet.Node{}, false, errors.Wrapf(err, "reading node %q", name)
	}
	n = stripNode(n)
	k.keep(n)
	return View(n), true, nil
}

// keep makes n what its node looks like until the watch shows something newer.
func (k *Cluster) keep(n *corev1.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.views[n.Name] = View(n)
	obj, ok, err := k.c.Nodes.GetIndexer().GetByKey(n.Name)
	if cached, is := obj.(*corev1.Node); err == nil && ok && is && cached.UID == n.UID && !newer(n.ResourceVersion, cached.ResourceVersion) {
		// The watch was faster than the answer to the write.
		k.views[n.Name] = View(cached)
		delete(k.written, n.Name)
		return
	}
	k.written[n.Name] = write{node: n, at: k.c.Now()}
}

// Write carries out a change of one node. ErrConflict means that the node was written to, or replaced,
// since the change was computed. After any other error it isn't known whether the change was made, or will be, unless
// the API server refused it: a further one, which is computed from the same resourceVersion, conflicts if so.
func (k *Cluster) Write(ctx context.Context, name string, c *plan.Change) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	read, err := k.readAt(name, c.ResourceVersion)
	if err != nil {
		return err
	}
	body, err := patch(read, c)
	if err != nil {
		return errors.Wrapf(err, "composing the change of node %q", name)
	}
	if body == nil {
		return k.stands(ctx, name, c.ResourceVersion)
	}
	n, err := k.c.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "bottlerocket-update-operator"})
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The watch may be behind for long, after an outage for example. The next look must not find
		// what was refused just now, and be refused again at once.
		if err := k.readLive(ctx, name); err != nil {
			return err
		}
		return errors.WithMessagef(ErrConflict, "writing node %q", name)
	case err != nil:
		return errors.Wrapf(err, "writing node %q", name)
	case n.UID != read.UID:
		return errors.WithMessagef(ErrConflict, "writing node %q", name)
	}
	k.keep(stripNode(n))
	return nil
}

// stands looks live that a node is as it was when there was found to be nothing to write to it: a slot may be freed
// after that.
func (k *Cluster) stands(ctx context.Context, name, version string) error {
	n, there, err := k.live(ctx, name)
	if err == nil && (!there || n.ResourceVersion != version) {
		err = errors.WithMessagef(ErrConflict, "looking at node %q, to which there is nothing to write", name)
	}
	return err
}

// readAt returns what was read of the node at this very resourceVersion.
func (k *Cluster) readAt(name, version string) (*corev1.Node, error) {
	k.mu.Lock()
	w, ok := k.written[name]
	k.mu.Unlock()
	if ok && w.node.ResourceVersion == version {
		return w.node, nil
	}
	obj, ok, err := k.c.Nodes.GetIndexer().GetByKey(name)
	if err != nil {
		return nil, errors.Wrapf(err, "looking up node %q", name)
	}
	if n, is := obj.(*corev1.Node); ok && is && n.ResourceVersion == version {
		return n, nil
	}
	return nil, errors.WithMessagef(ErrConflict, "writing node %q", name)
}

// Exists looks live if the node with this UID is still there.
func (k *Cluster) Exists(ctx context.Context, name, uid string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	n, err := k.c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, errors.Wrapf(err, "reading node %q", name)
	}
	return string(n.UID) == uid, nil
}

// Alone looks live if the node with this UID is the only one of its cluster, but for those that are on their way out.
func (k *Cluster) Alone(ctx context.Context, uid string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	here, others := false, 0
	_, err := inPages(ctx, pageSize, metav1.ListOptions{}, k.c.Client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for i := range page.Items {
			switch n := &page.Items[i]; {
			case string(n.UID) == uid:
				here = true
			case leaving(n) == "":
				others++
			}
		}
	})
	return here && others == 0, errors.Wrap(err, "listing nodes")
}

// newer reports whether a was certainly written after b. Versions that aren't numbers are never newer.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
