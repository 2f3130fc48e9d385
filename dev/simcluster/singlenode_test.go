package simcluster_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// startSmall starts a cluster of a few nodes with the operator at work on all of them.
func startSmall(t *testing.T, count int, down time.Duration) *world {
	t.Helper()
	controlplane.SkipIfShort(t)
	ctx := t.Context()
	c, err := simcluster.Start(ctx, simcluster.Config{
		Nodes: count, Version: version(0), Progress: os.Stderr,
		Args: map[string][]string{
			controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=" + renewal.String()},
			agent:      {"-refresh-interval=1s"},
		},
		Policy:  quick,
		Reboot:  nodesim.Reboot{Mode: nodesim.RebootShutdown, Down: down},
		PodStop: 100 * time.Millisecond,
	})
	assert.NilError(t, err)
	t.Cleanup(c.Stop)
	w := &world{Cluster: c}
	t.Cleanup(func() {
		if t.Failed() {
			w.dump(t)
		}
	})
	assert.NilError(t, w.Install(ctx))
	assert.NilError(t, w.Label(ctx))
	assert.NilError(t, w.AwaitOperator(ctx, bound, true))
	w.allAt(t, version(0))
	return w
}

// allAt waits until all nodes are at rest on a version.
func (w *world) allAt(t *testing.T, version string) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), "all nodes are at rest on "+version, bound, func() (bool, error) {
		list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !atRest(&list.Items[i], version) {
				return false, nil
			}
		}
		return true, w.AwaitOperator(t.Context(), time.Second, true)
	}))
}

func (w *world) podsOf(t *testing.T, app string) []corev1.Pod {
	t.Helper()
	list, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	assert.NilError(t, err)
	return list.Items
}

// The only node of a cluster waits and says for what; and once the policy says so it is cordoned, rebooted with its
// workloads left in place, and back in service. The controller and the proxies, which went down with it, went on from
// the marks (S2, L1).
func TestSingleNode_brupop_501_FLUO_123(t *testing.T) {
	w := startSmall(t, 1, 3*time.Second)
	node := w.Fleet.Machines()[0].Name()
	assert.NilError(t, w.pin(t.Context(), node))
	assert.NilError(t, w.budget(t.Context(), node))
	assert.NilError(t, simcluster.Await(t.Context(), "the workload runs", bound, func() (bool, error) { return w.pinnedReady(t.Context()) }))
	workload := w.podsOf(t, "on-"+node)[0].UID

	assert.NilError(t, w.Release(version(1)))
	assert.NilError(t, simcluster.Await(t.Context(), "people read what to do", bound, func() (bool, error) {
		out, err := w.plan(t.Context())
		return err == nil && len(out.Nodes) == 1 && out.Nodes[0].Reason == plan.ReasonOnlySchedulableNode &&
			strings.Contains(out.Nodes[0].Message.String(), "singleNode: allow"), err
	}))
	assert.Equal(t, w.boots()[node], 0)

	seen := nodesim.Observe(t.Context(), w.Client)
	defer seen.Close()
	w.setPolicy(t, quick+"singleNode: allow\n")
	w.allAt(t, version(1))
	assert.Equal(t, w.boots()[node], 1)
	assert.Equal(t, seen.MaxUnschedulable(), 1, "it was cordoned meanwhile")
	for _, r := range w.requests(t, time.Time{}) {
		assert.Check(t, r.resource() != "pods/eviction" || r.dry(), "%s", r)
	}
	pods := w.podsOf(t, "on-"+node)
	assert.Assert(t, len(pods) == 1 && pods[0].UID == workload, "the workload was left in place: %+v", pods)
	assert.NilError(t, simcluster.Await(t.Context(), "the workload runs again", bound, func() (bool, error) { return w.pinnedReady(t.Context()) }))
}

// leader is the node on which the controller runs that leads; empty if nobody does.
func (w *world) leader(t *testing.T) string {
	t.Helper()
	lease, err := w.Client.CoordinationV1().Leases(simcluster.Namespace).Get(t.Context(), "update-operator-controller", metav1.GetOptions{})
	assert.NilError(t, err)
	pods, err := w.Pods(t.Context(), controller)
	assert.NilError(t, err)
	for i := range pods {
		if h := lease.Spec.HolderIdentity; h != nil && strings.HasPrefix(*h, pods[i].Name+"_") {
			return pods[i].Spec.NodeName
		}
	}
	return ""
}

// In a cluster of two the node of the controller that leads goes last, and is drained like any other although the
// policy has singleNode: allow; while it is away the other controller leads.
func TestControllersNodeGoesLast(t *testing.T) {
	w := startSmall(t, 2, 6*time.Second)
	// Nobody goes before both are staged: the leader waits for those that it knows of.
	w.setPolicy(t, quick+"singleNode: allow\nwindows: [{schedule: 0 0 29 2 *, duration: 1h}]\n")
	_, err := w.Kubectl(t.Context(), "-n", simcluster.Namespace, "scale", "deployment/update-operator-controller", "--replicas=2")
	assert.NilError(t, err)
	assert.NilError(t, simcluster.Await(t.Context(), "there are two controllers, on different nodes", bound, func() (bool, error) {
		pods, err := w.Pods(t.Context(), controller)
		if err != nil || len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
			return false, err
		}
		return w.leader(t) != "", w.AwaitOperator(t.Context(), time.Second, true)
	}))
	home := w.leader(t)
	for _, m := range w.Fleet.Machines() {
		assert.NilError(t, w.pin(t.Context(), m.Name()))
	}
	assert.NilError(t, simcluster.Await(t.Context(), "the workloads run", bound, func() (bool, error) { return w.pinnedReady(t.Context()) }))
	var order []string
	stop := w.follow(t, func(r reached) {
		if r.moment == draining {
			order = append(order, r.node)
		}
	})
	assert.NilError(t, w.Release(version(1)))
	for _, m := range w.Fleet.Machines() {
		assert.NilError(t, simcluster.Await(t.Context(), m.Name()+" is staged", bound, func() (bool, error) {
			at, err := w.moment(t.Context(), m.Name())
			return at == prepared, err
		}))
	}
	w.setPolicy(t, quick+"singleNode: allow\n")
	w.allAt(t, version(1))
	stop()
	assert.Assert(t, len(order) == 2 && order[1] == home, "%v, and the leader was on %s", order, home)
	for name, boots := range w.boots() {
		assert.Equal(t, boots, 1, name)
	}
	now := w.leader(t)
	assert.Assert(t, now != "" && now != home, "%q leads now", now)
	evictions := 0
	for _, r := range w.requests(t, time.Time{}) {
		if r.resource() == "pods/eviction" && r.succeeded() {
			evictions++
		}
	}
	assert.Assert(t, evictions >= 2, "%d evictions", evictions)
}
