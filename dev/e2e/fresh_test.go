package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// A machine with an old image joins with the taint of new nodes: it is updated by one reboot while no workload is on it,
// then the taint goes, and the workload of each node comes.
func TestFreshNode(t *testing.T) {
	w := inWorld(t)
	w.release(t)
	w.awaitRest(t)
	assert.NilError(t, w.Apply(t.Context(), fmt.Sprintf(lodger, realcluster.WebImage)))
	t.Cleanup(func() {
		_, err := w.Kubectl(context.WithoutCancel(t.Context()), "-n", "shop", "delete", "daemonset", "lodger")
		assert.Check(t, err)
	})

	began := time.Now()
	n, err := w.AddBottlerocket(t.Context(), version(0), marker.TaintFresh, w.archive)
	assert.NilError(t, err)
	t.Cleanup(func() { assert.Check(t, w.Remove(context.WithoutCancel(t.Context()), n)) })
	_, err = w.Kubectl(t.Context(), "label", "node", n.Name(), labelled)
	assert.NilError(t, err)
	await(t, n.Name()+" rests on "+w.newest(), func() (bool, error) {
		lodgers, err := w.Client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=lodger", FieldSelector: "spec.nodeName=" + n.Name()})
		if err != nil {
			return false, err
		}
		node, err := w.Client.CoreV1().Nodes().Get(t.Context(), n.Name(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		view, came := kube.View(node), len(lodgers.Items) > 0
		assert.Assert(t, !came || !view.FreshTaint, "a workload is on a node that has the taint still")
		assert.Assert(t, !came || n.Host.Snapshot().Version == w.newest(), "a workload is on %s, which runs %s", n.Name(), n.Host.Snapshot().Version)
		return came && podReady(&lodgers.Items[0]) && w.rests(view), nil
	})
	t.Logf("a new node was updated and had its workload after %s", time.Since(began).Round(time.Second))
	assert.Equal(t, n.Host.Snapshot().Counters.RebootsAsked, 1)
}

// lodger is a workload of each node that tolerates no taint.
const lodger = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: lodger, namespace: shop}
spec:
  selector: {matchLabels: {app: lodger}}
  template:
    metadata: {labels: {app: lodger}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: %q, args: [serve]}]
`
