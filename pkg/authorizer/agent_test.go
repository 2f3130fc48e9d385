package authorizer

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// liveIntent is intentOf for an hour from now.
func liveIntent(action marker.Action) map[string]string {
	return with(intentOf(action), string(marker.KeyIntentTime), time.Now().UTC().Format(time.RFC3339),
		string(marker.KeyIntentUntil), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

// TestAgentWorks lets client-go's own informer and client do an agent's work through the proxy.
func TestAgentWorks(t *testing.T) {
	c := newCluster(t)
	p := c.proxy()
	c.node("own-1", nil)
	c.node("other-1", nil)
	_, token := c.agentToken("own-1")

	config := c.config(p, token)
	var mu sync.Mutex
	watchList := false
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			watchList = watchList || r.URL.Query().Get("sendInitialEvents") == "true"
			mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	client, err := metadata.NewForConfig(config)
	assert.NilError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	informer := metadatainformer.NewFilteredMetadataInformer(client, nodesResource, "", 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = "metadata.name=own-1"
	}).Informer()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { informer.RunWithContext(ctx) })
	seen := func(check func(m *metav1.PartialObjectMetadata) bool) {
		t.Helper()
		until(t, func() error {
			objs := informer.GetStore().List()
			if len(objs) != 1 {
				return errors.Errorf("%d nodes", len(objs))
			}
			if m, ok := objs[0].(*metav1.PartialObjectMetadata); !ok || !check(m) {
				return errUnlike
			}
			return nil
		})
	}
	seen(func(m *metav1.PartialObjectMetadata) bool { return m.Name == "own-1" })
	mu.Lock()
	assert.Assert(t, watchList, "the informer opened with WatchList")
	mu.Unlock()

	nodes := client.Resource(nodesResource)
	got, err := nodes.Get(ctx, "own-1", metav1.GetOptions{})
	assert.NilError(t, err)
	list, err := nodes.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=own-1"})
	assert.NilError(t, err)
	assert.Equal(t, len(list.Items), 1)

	// Facts before any intent; the answer is the Node's metadata, its new resourceVersion among them.
	after, err := patchNode(ctx, nodes, "own-1", factOf(got.ResourceVersion, marker.KeyBootID, oldBoot))
	assert.NilError(t, err)
	assert.Equal(t, after.Annotations[string(marker.KeyBootID)], oldBoot)
	assert.Assert(t, after.ResourceVersion != got.ResourceVersion)
	seen(func(m *metav1.PartialObjectMetadata) bool { return m.ResourceVersion == after.ResourceVersion })

	// The controller asks for a reboot: the old look is a conflict, the new one is accepted.
	c.annotate("own-1", with(liveIntent(marker.ActionRebootUpdate), string(marker.KeyBootID), oldBoot))
	busy := answer(intentID, marker.StateBusy, nil)
	_, err = patchNode(ctx, nodes, "own-1", reportOf(after.ResourceVersion, busy))
	assert.Assert(t, apierrors.IsConflict(err), "%v", err)
	seen(func(m *metav1.PartialObjectMetadata) bool {
		return m.Annotations[string(marker.KeyIntentID)] == intentID
	})
	now, err := nodes.Get(ctx, "own-1", metav1.GetOptions{})
	assert.NilError(t, err)
	now, err = patchNode(ctx, nodes, "own-1", reportOf(now.ResourceVersion, busy))
	assert.NilError(t, err)
	// Busy affirmed changes nothing and is accepted, and from a stale look it isn't.
	again, err := patchNode(ctx, nodes, "own-1", reportOf(now.ResourceVersion, busy))
	assert.NilError(t, err)
	assert.Equal(t, again.ResourceVersion, now.ResourceVersion)
	c.annotate("own-1", with(now.Annotations, string(marker.KeyPaused), "stop"))
	_, err = patchNode(ctx, nodes, "own-1", reportOf(now.ResourceVersion, busy))
	assert.Assert(t, apierrors.IsConflict(err), "%v", err)
	now, err = nodes.Get(ctx, "own-1", metav1.GetOptions{})
	assert.NilError(t, err)
	_, err = patchNode(ctx, nodes, "own-1", reportOf(now.ResourceVersion, busy))
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "the node is paused")
	_, err = patchNode(ctx, nodes, "own-1", reportOf(now.ResourceVersion, answer(intentID, marker.StateReady, map[marker.Key]string{marker.KeyBootID: newBoot})))
	assert.NilError(t, err)

	// Other nodes are not to be seen or written.
	_, err = nodes.Get(ctx, "other-1", metav1.GetOptions{})
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	_, err = nodes.List(ctx, metav1.ListOptions{})
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	_, err = nodes.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=other-1"})
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	_, err = patchNode(ctx, nodes, "other-1", factOf(c.live("other-1").ResourceVersion, marker.KeyBootID, "b"))
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `not the agent's own, "own-1"`)
}

// nextEvent returns the next event of a watch.
func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		assert.Assert(t, ok, "the watch ended")
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event")
		return watch.Event{}
	}
}

// ended waits until a watch ends.
func ended(t *testing.T, w watch.Interface) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case _, ok := <-w.ResultChan():
			if !ok {
				return
			}
		case <-limit:
			t.Fatal("the watch goes on")
		}
	}
}

// TestShutdown holds that an end finishes what is under way, ends watches, and takes no minutes.
func TestShutdown(t *testing.T) {
	c := newCluster(t)
	p := c.proxy()
	c.node("own-4", nil)
	_, token := c.agentToken("own-4")
	nodes := c.client(p, token)
	w, err := nodes.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=own-4"})
	assert.NilError(t, err)
	nextEvent(t, w)
	began := time.Now()
	assert.NilError(t, p.stop())
	ended(t, w)
	assert.Assert(t, time.Since(began) < drainTime)
	_, err = nodes.Get(t.Context(), "own-4", metav1.GetOptions{})
	assert.Assert(t, err != nil)
}

// TestRotation lets two replicas rotate their certificates through a change of the CA while agents write without
// a pause, each on a new connection that trusts what the ConfigMap says then.
func TestRotation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// A third of each life is what a slow machine may be late.
	c.options.CALife, c.options.CertificateLife, c.options.CASettle = 30*time.Second, 12*time.Second, 2*time.Second
	replicas := []*proxy{c.proxy(), c.proxy()}
	a, err := replicas[0].keeper.GetCertificate(nil)
	assert.NilError(t, err)
	b, err := replicas[1].keeper.GetCertificate(nil)
	assert.NilError(t, err)
	assert.Assert(t, a.Leaf.Equal(b.Leaf), "two replicas agree on one certificate")

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	bundles := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	writes := 0
	ctx, done := context.WithCancel(ctx)
	defer done()
	for i := range 3 {
		name := fmt.Sprintf("own-5-%d", i)
		c.node(name, nil)
		_, token := c.agentToken(name)
		wg.Go(func() {
			pace := time.NewTicker(300 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
				bundle, err := c.writeAnew(ctx, replicas[n%2], token, name, fmt.Sprintf("boot-%d", n))
				if ctx.Err() != nil {
					return
				}
				assert.Check(t, err, "write %d of %s", n, name)
				mu.Lock()
				bundles[bundle], writes = true, writes+1
				mu.Unlock()
			}
		})
	}
	until(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		// A whole rotation: one CA, the next beside it, the next in front, the next alone.
		if len(bundles) < 4 {
			return errors.Errorf("%d bundles", len(bundles))
		}
		return nil
	})
	done()
	wg.Wait()
	t.Logf("%d writes while %d bundles were published", writes, len(bundles))
}

func (c *cluster) writeAnew(ctx context.Context, p *proxy, token, name, boot string) (bundle string, err error) {
	config, err := c.admin.CoreV1().ConfigMaps(c.options.Namespace).Get(ctx, c.options.CAName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	agent := c.configWith(p, token, []byte(config.Data["ca.crt"]))
	client, err := metadata.NewForConfig(agent)
	if err != nil {
		return "", err
	}
	nodes := client.Resource(nodesResource)
	n, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	_, err = patchNode(ctx, nodes, name, factOf(n.ResourceVersion, marker.KeyBootID, boot))
	return config.Data["ca.crt"], err
}

// TestMissingRights holds that what the proxy itself may not do is no refusal of the agent.
func TestMissingRights(t *testing.T) {
	c := newCluster(t)
	p := c.proxy()
	c.node("own-6", nil)
	_, token := c.agentToken("own-6")
	assert.NilError(t, c.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), "proxy-"+c.options.Namespace, metav1.DeleteOptions{}))
	until(t, func() error {
		_, err := c.client(p, token).Get(t.Context(), "own-6", metav1.GetOptions{})
		if !apierrors.IsServiceUnavailable(err) {
			return errors.Errorf("got %v", err)
		}
		return nil
	})
}
