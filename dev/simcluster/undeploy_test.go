package simcluster_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// make undeploy in the middle of a rollout leaves every Node as it was before the operator came, to the byte but for
// its status, resourceVersion and managedFields (S5), and nothing of the operator in the cluster, also where the policy
// has the controller label nodes. Installed again, it goes on.
func TestUndeployedDuringARollout(t *testing.T) {
	w := inWorld(t)
	w.letLabel(t)
	from := time.Now()
	w.release(t)
	assert.NilError(t, simcluster.Await(t.Context(), "a node is out of service", bound, func() (bool, error) {
		list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		for i := range list.Items {
			m, _ := marker.Decode(list.Items[i].Annotations)
			if p := intent.PhaseOf(m); p == intent.PhaseDraining || p == intent.PhaseRebooting {
				return true, err
			}
		}
		return false, err
	}))
	// Interrupted in the deletion it is run again.
	for range 2 {
		w.undeploy(t)
	}
	w.gone = append(w.gone, span{from, time.Now()})
	list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for i := range list.Items {
		n := &list.Items[i]
		assert.Check(t, bare(n) == w.before[n.Name], "before:\n%s\nnow:\n%s", w.before[n.Name], bare(n))
	}
	_, err = w.Client.CoreV1().Namespaces().Get(t.Context(), simcluster.Namespace, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
	_, err = w.Client.RbacV1().ClusterRoles().Get(t.Context(), "update-operator-controller", metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)

	assert.NilError(t, w.Install(t.Context()))
	assert.NilError(t, w.Label(t.Context()))
}

// letLabel has the controller label a node, under its account and past the admission policies.
func (w *world) letLabel(t *testing.T) {
	t.Helper()
	var name string
	for name = range w.before {
		break
	}
	until := func(what string, is func(n *corev1.Node) bool) {
		t.Helper()
		assert.NilError(t, simcluster.Await(t.Context(), what, bound, func() (bool, error) {
			n, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && is(n), err
		}))
	}
	_, err := w.Kubectl(t.Context(), "label", "node", name, string(marker.KeyInterfaceVersion)+"-")
	assert.NilError(t, err)
	until("the node is let go", func(n *corev1.Node) bool { return bare(n) == w.before[name] })
	w.setPolicy(t, quick+"autoLabel: true\n")
	until("the controller has labelled the node", func(n *corev1.Node) bool {
		m, _ := marker.Decode(n.Annotations)
		return n.Labels[string(marker.KeyInterfaceVersion)] == "2.0.0" && m.AutoLabelled != nil && m.Intent.ID != ""
	})
	assert.NilError(t, simcluster.Await(t.Context(), "an Event says so", bound, func() (bool, error) {
		events, err := w.Client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=AutoLabelled,involvedObject.name=" + name})
		return err == nil && len(events.Items) == 1, err
	}))
	assert.NilError(t, w.awaitRest(t.Context()))
}

// undeploy runs the script of make undeploy.
func (w *world) undeploy(t *testing.T) {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join("dev", "undeploy.sh"))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Plane.Kubeconfig(), "KUBECTL="+w.Plane.Binaries().Kubectl)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	assert.NilError(t, err)
}

// bare is a Node but for what changes by itself.
func bare(n *corev1.Node) string {
	n = n.DeepCopy()
	n.ResourceVersion, n.ManagedFields, n.Status = "", nil, corev1.NodeStatus{}
	text, err := json.MarshalIndent(n, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
