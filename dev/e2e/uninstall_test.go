package e2e_test

import (
	"context"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// stuck is a pod that its budget never lets go, wherever it runs.
const stuck = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{name: web, image: "localhost/realcluster/web:1", args: [serve]}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: stuck, namespace: shop}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: stuck}}
`

// A pod that no eviction gets rid of is deleted where the policy says force and the right is given, and admission lets
// that through.
func TestForcedDrain(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	right, err := manifest.Component("force-drain")
	assert.NilError(t, err)
	assert.NilError(t, w.Apply(t.Context(), string(right)))
	assert.NilError(t, w.Apply(t.Context(), stuck))
	assert.NilError(t, w.setPolicy(t.Context(), quick+"drain: {timeout: 3s, atDeadline: force}\n"))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		assert.Check(t, w.setPolicy(ctx, quick))
		_, err := w.Kubectl(ctx, "delete", "clusterrole,clusterrolebinding", "update-operator-controller-force-drain")
		assert.Check(t, err)
		_, err = w.Kubectl(ctx, "-n", "shop", "delete", "deployment,poddisruptionbudget", "stuck")
		assert.Check(t, err)
	})
	running := func() (*corev1.Pod, error) {
		pods, err := w.Client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=stuck"})
		if err != nil || len(pods.Items) != 1 || !podReady(&pods.Items[0]) {
			return nil, err
		}
		return &pods.Items[0], nil
	}
	var first *corev1.Pod
	await(t, "it runs", func() (_ bool, err error) {
		first, err = running()
		return first != nil, err
	})
	w.release(t)
	w.awaitRest(t)
	w.rebootedOnce(t, boots, asked)
	await(t, "another runs", func() (bool, error) {
		p, err := running()
		return p != nil && p.UID != first.UID, err
	})
	did := w.users(t)["system:serviceaccount:"+manifest.Namespace+":update-operator-controller"]
	assert.Check(t, did["delete pods"] > 0, "%v", did)
	for what := range did {
		// An API server that has just started refuses for other reasons.
		assert.Check(t, !strings.Contains(what, "ValidatingAdmissionPolicy"), what)
	}
}

// untouched fails the test unless every node is in service and carries nothing of the operator, and nothing of it is left
// in the cluster.
func (w *world) untouched(t *testing.T) {
	t.Helper()
	list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	for _, n := range list.Items {
		assert.Check(t, !n.Spec.Unschedulable, "%s is cordoned", n.Name)
		for k := range n.Annotations {
			assert.Check(t, !strings.HasPrefix(k, marker.Prefix), "%s has the annotation %s", n.Name, k)
		}
	}
	for _, p := range w.objects.Policies {
		_, err := w.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), p.Name, metav1.GetOptions{})
		assert.Check(t, apierrors.IsNotFound(err), "%s: %v", p.Name, err)
	}
	await(t, "the operator's pods are gone", func() (bool, error) {
		return len(w.pods(t, manifest.Controller))+len(w.pods(t, manifest.Proxy))+len(w.pods(t, manifest.Agent))+len(w.pods(t, manifest.Runner)) == 0, nil
	})
}

// The operator is taken off in the middle of a rollout. Installed again it goes on.
func TestUninstalled(t *testing.T) {
	w := inWorld(t)
	w.takeOff(t, "")
	_, err := w.Client.CoreV1().Namespaces().Get(t.Context(), manifest.Namespace, metav1.GetOptions{})
	assert.Check(t, apierrors.IsNotFound(err), "%v", err)

	assert.NilError(t, w.install(t.Context(), w.objects))
	for _, n := range w.Nodes {
		_, err := w.Kubectl(t.Context(), "label", "node", n.Name(), labelled)
		assert.NilError(t, err)
	}
	w.awaitRest(t)
}
