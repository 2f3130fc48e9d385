package simcluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// await waits until some node comes to a moment.
func (w *world) await(t *testing.T, wanted moment) (node string) {
	t.Helper()
	found := make(chan string, 1)
	stop := w.follow(t, func(r reached) {
		if r.moment == wanted {
			select {
			case found <- r.node:
			default:
			}
		}
	})
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	select {
	case node := <-found:
		return node
	case <-ctx.Done():
		t.Fatalf("no node came to %q", wanted)
		return ""
	}
}

// outage is from the death of an API server to the readiness of the next.
type outage struct{ from, to time.Time }

func (o outage) covers(t time.Time) bool { return !t.Before(o.from) && !t.After(o.to) }

// restartAPIServer kills the API server and starts another.
func (w *world) restartAPIServer(t *testing.T) {
	t.Helper()
	from := time.Now()
	w.Plane.StopAPIServer()
	assert.NilError(t, w.Plane.StartAPIServer(t.Context()))
	w.outages = append(w.outages, outage{from, time.Now()})
}

// The API server is killed while a node drains, and again while a node reboots.
func TestAPIServerIsKilled(t *testing.T) {
	w := inWorld(t)
	w.rollout(t, func() {
		for _, m := range []moment{draining, pointOfNoReturn} {
			node := w.await(t, m)
			w.restartAPIServer(t)
			t.Logf("killed the API server while %s was at %q", node, m)
		}
	})
}

// With no proxy left agents can't hear of anything: they say so before the next version is there, so that no node has
// begun with it. With the proxies back all of them go on.
func TestNoProxyIsLeft(t *testing.T) {
	w := inWorld(t)
	scale := func(replicas string) {
		t.Helper()
		_, err := w.Kubectl(t.Context(), "-n", simcluster.Namespace, "scale", "deployment/update-operator-proxy", "--replicas="+replicas)
		assert.NilError(t, err)
	}
	scale("0")
	assert.NilError(t, simcluster.Await(t.Context(), "each node waits for its agent", bound, func() (bool, error) {
		out, err := w.plan(t.Context())
		waiting := 0
		for _, n := range out.Nodes {
			if n.Reason == plan.ReasonAgentNotReady {
				waiting++
			}
		}
		return waiting == nodeCount, err
	}))
	w.rollout(t, func() { scale("2") })
}

// The host makes a new socket while it prepares an update. The agent's leads nowhere; it ends, and its next
// container goes on with the new one.
func TestHostReplacesItsSocket(t *testing.T) {
	w := inWorld(t)
	w.rollout(t, func() {
		node := w.await(t, preparing)
		before := w.restarts(t, node)
		assert.NilError(t, w.Fleet.Machine(node).RestartHostAPI())
		assert.NilError(t, simcluster.Await(t.Context(), "the agent of "+node+" ends by itself", bound, func() (bool, error) {
			return w.restarts(t, node) > before, nil
		}))
		log, err := w.log(t.Context(), agent, node)
		assert.NilError(t, err)
		assert.Check(t, strings.Contains(log, "replaced its API socket"), "%s", log)
	})
}

// restarts is how often the agent on a node was started again.
func (w *world) restarts(t *testing.T, node string) int32 {
	t.Helper()
	pods, err := w.Pods(t.Context(), agent)
	assert.NilError(t, err)
	for i := range pods {
		if pods[i].Spec.NodeName == node && len(pods[i].Status.ContainerStatuses) == 1 {
			return pods[i].Status.ContainerStatuses[0].RestartCount
		}
	}
	return 0
}
