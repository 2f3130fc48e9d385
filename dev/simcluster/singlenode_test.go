package simcluster_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

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
	controlplane.SkipIfShort(t)
	c, err := simcluster.Start(t.Context(), simcluster.Config{
		Nodes: 1, Version: version(0), Progress: os.Stderr,
		Args: map[string][]string{
			controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=500ms"},
			agent:      {"-refresh-interval=1s"},
		},
		Policy:  quick,
		Reboot:  nodesim.Reboot{Mode: nodesim.RebootShutdown, Down: 3 * time.Second},
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
	assert.NilError(t, w.Install(t.Context()))
	assert.NilError(t, w.Label(t.Context()))
	assert.NilError(t, w.AwaitOperator(t.Context(), bound, true))
	w.allAt(t, version(0))
	node := w.Fleet.Machines()[0].Name()
	assert.NilError(t, w.pin(t.Context(), node))
	_, err = w.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &intstr.IntOrString{}, Selector: &metav1.LabelSelector{}},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	assert.NilError(t, simcluster.Await(t.Context(), "the workload runs", bound, func() (bool, error) { return w.pinnedReady(t.Context()) }))
	workload := w.podsOf(t, "on-"+node)[0].UID

	assert.NilError(t, w.Release(version(1)))
	assert.NilError(t, simcluster.Await(t.Context(), "the plan says what to do", bound, func() (bool, error) {
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
