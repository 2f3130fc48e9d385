package simcluster_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// maxWrites is what one node's whole update may cost in writes to its Node.
const maxWrites = 16

// Nodes are updated one after the other, each with one reboot and at most maxWrites writes to its Node. Those that are
// labelled as the first operator's README said get an agent like all others.
func TestRollout(t *testing.T) {
	w := inWorld(t)
	label := func(args ...string) {
		t.Helper()
		_, err := w.Kubectl(t.Context(), append([]string{"label", "--overwrite", "node"}, args...)...)
		assert.NilError(t, err)
	}
	const now, first = string(marker.KeyInterfaceVersion), string(marker.KeyPlatformVersion)
	label("node-1", first+"=1.0.0")
	label("node-1", now+"-")
	label("node-2", now+"=1.0.0")
	began := time.Now()
	w.rollout(t, nil)
	writes := map[string]int{}
	for _, r := range operator(w.requests(t, began)) {
		if r.resource() == "nodes" && r.writes() && r.succeeded() {
			writes[r.Object.Name]++
		}
	}
	assert.Check(t, len(writes) == nodeCount, "%v", writes)
	for node, n := range writes {
		assert.Check(t, n <= maxWrites, "%d writes to %s", n, node)
	}
	label("--all", now+"=2.0.0")
	label("--all", first+"-")
	assert.NilError(t, w.awaitRest(t.Context()))
}

// The manifest's roles let controller and proxy do what they do in a rollout and nothing else; agents have
// nothing to do with the API server at all.
func TestRolesAreWhatIsUsed(t *testing.T) {
	w := inWorld(t)
	w.everywhere(t)
	letGo := w.holdVolume(t)
	w.rollout(t, func() { w.leaveSlotBehind(t); letGo() })
	w.repeatEvent(t)
	w.breakPolicy(t)
	w.listAsAgent(t)

	objects, err := manifest.Load()
	assert.NilError(t, err)
	assert.Check(t, len(objects.Grants(manifest.Namespace, "update-operator-agent")) == 0)
	all := w.requests(t, time.Time{})
	for _, r := range all {
		assert.Check(t, r.User.Username != account(agent), "by an agent: %s", r)
	}
	used, walled := map[string]map[manifest.Grant]bool{account(controller): {}, account(proxy): {}}, map[string]bool{}
	for _, r := range operator(all) {
		// When the operator is taken off its roles may go before its pods.
		gone := slices.ContainsFunc(w.gone, func(s span) bool { return s.covers(r.Received.Time) })
		// Each account asks for what its admission policies are to refuse.
		wall := r.dry()
		walled[r.User.Username] = walled[r.User.Username] || wall && r.Answer.Code == http.StatusForbidden
		assert.Check(t, gone || wall || r.Answer.Code != http.StatusForbidden && r.Answer.Code != http.StatusUnauthorized, "refused: %s", r)
		if used[r.User.Username] == nil {
			t.Errorf("by an account of its own: %s", r)
			continue
		}
		// Kubernetes' own role system:service-account-issuer-discovery lets each service account read the keys of tokens.
		covered := r.Object == nil && r.User.Username == account(proxy) && r.Verb == "get" && r.RequestURI == "/openid/v1/jwks"
		for _, g := range objects.Grants(manifest.Namespace, strings.TrimPrefix(r.User.Username, "system:serviceaccount:bottlerocket:")) {
			if r.Object != nil && g.Allows(r.Object.APIGroup, r.resource(), r.Verb, r.Object.Namespace, r.Object.Name) {
				used[r.User.Username][g] = used[r.User.Username][g] || !wall
				covered = true
			}
		}
		assert.Check(t, covered, "by no role of the manifest: %s", r)
	}
	for _, component := range []string{controller, proxy} {
		assert.Check(t, walled[account(component)], "the %s has not asked whether its admission policy stands", component)
		for _, g := range objects.Grants(manifest.Namespace, "update-operator-"+component) {
			uses := used[account(component)][g]
			if g.Verb == "list" {
				// Servers that can't stream a list at the beginning of a watch are asked for one.
				g.Verb = "watch"
				uses = uses || used[account(component)][g]
			}
			assert.Check(t, uses, "the %s has no use for %+v", component, g)
		}
	}
}

// everywhere runs a DaemonSet for the time of a test, as every cluster has one.
func (w *world) everywhere(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "everywhere"}
	_, err := w.Client.AppsV1().DaemonSets(metav1.NamespaceDefault).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "workload"}}},
			},
		},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	t.Cleanup(func() {
		assert.Check(t, w.Client.AppsV1().DaemonSets(metav1.NamespaceDefault).Delete(context.Background(), "everywhere", metav1.DeleteOptions{}))
	})
	assert.NilError(t, simcluster.Await(t.Context(), "the DaemonSet is on every node", bound, func() (bool, error) {
		d, err := w.Client.AppsV1().DaemonSets(metav1.NamespaceDefault).Get(t.Context(), "everywhere", metav1.GetOptions{})
		return err == nil && d.Status.NumberReady == nodeCount, err
	}))
}

// leaveSlotBehind puts a slot of a node that doesn't exist into the list, as a node that is deleted during
// its update leaves one; and waits until it is freed.
func (w *world) leaveSlotBehind(t *testing.T) {
	t.Helper()
	const uid = "6f1d7a3e-0000-4000-8000-000000000000"
	maps := w.Client.CoreV1().ConfigMaps(simcluster.Namespace)
	assert.NilError(t, simcluster.Await(t.Context(), "a slot is left behind", bound, func() (bool, error) {
		state, err := maps.Get(t.Context(), kube.StateConfigMap, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if list, ok := strings.CutPrefix(state.Data["slots"], "{"); ok {
			state.Data["slots"] = strings.Replace(`{"`+uid+`":"node-that-was",`+list, ",}", "}", 1)
		}
		_, err = maps.Update(t.Context(), state, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	}))
	assert.NilError(t, simcluster.Await(t.Context(), "the slot that was left behind is freed", bound, func() (bool, error) {
		state, err := maps.Get(t.Context(), kube.StateConfigMap, metav1.GetOptions{})
		return err == nil && !strings.Contains(state.Data["slots"], uid), err
	}))
}

// repeatEvent has the controller tell the same thing twice, for which the first Event is counted up.
func (w *world) repeatEvent(t *testing.T) {
	t.Helper()
	for range 2 {
		w.awaitPass(t)
	}
	assert.NilError(t, simcluster.Await(t.Context(), "an Event is counted up", bound, func() (bool, error) {
		return slices.ContainsFunc(operator(w.requests(t, time.Time{})), func(r request) bool {
			return r.resource() == "events" && r.Verb == "patch"
		}), nil
	}))
}

// awaitPass waits for a whole pass of the controller from now on: by a wish that it hears in one.
func (w *world) awaitPass(t *testing.T) {
	t.Helper()
	node := w.Fleet.Machines()[0].Name()
	assert.NilError(t, w.annotate(t.Context(), node, marker.KeyRetry, `"please"`))
	assert.NilError(t, simcluster.Await(t.Context(), "the wish is heard", bound, func() (bool, error) {
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		return err == nil && n.Annotations[string(marker.KeyRetry)] == "", err
	}))
}

// breakPolicy has the controller tell twice that the policy can't be read, and that it is gone, and ends with the policy
// that was there before.
func (w *world) breakPolicy(t *testing.T) {
	t.Helper()
	maps := w.Client.CoreV1().ConfigMaps(simcluster.Namespace)
	events := w.Client.CoreV1().Events(simcluster.Namespace)
	problem := func(what string, is func(problem string) bool) {
		t.Helper()
		assert.NilError(t, simcluster.Await(t.Context(), what, bound, func() (bool, error) {
			out, err := w.plan(t.Context())
			return err == nil && is(out.PolicyProblem), err
		}))
		// A plan is made when it is asked for; Events are written in a pass.
		w.awaitPass(t)
	}
	gone := func(problem string) bool {
		return strings.Contains(problem, "is gone, and this cluster has had a policy")
	}
	for times := range int32(2) {
		w.setPolicy(t, "version: 2\n")
		assert.NilError(t, simcluster.Await(t.Context(), "an Event says that the policy can't be read", bound, func() (bool, error) {
			list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + string(plan.ReasonPolicyUnreadable)})
			told := int32(0)
			for _, e := range list.Items {
				if !gone(e.Message) {
					told += e.Count
				}
			}
			return err == nil && told == times+1, err
		}))
		assert.NilError(t, maps.Delete(t.Context(), kube.PolicyConfigMap, metav1.DeleteOptions{}))
		problem("the policy is missed", gone)
	}
	w.setPolicy(t, quick)
	problem("a good one is in force", func(problem string) bool { return problem == "" })
}

// listAsAgent lists a node through the proxy, as agents do where they can't begin with a watch.
func (w *world) listAsAgent(t *testing.T) {
	t.Helper()
	pods, err := w.Pods(t.Context(), agent)
	assert.NilError(t, err)
	pod := &pods[0]
	token, err := w.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(), pod.Spec.ServiceAccountName, &authnv1.TokenRequest{
		Spec: authnv1.TokenRequestSpec{
			Audiences:      []string{"bottlerocket-update-operator"},
			BoundObjectRef: &authnv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	assert.NilError(t, err)
	ca, err := w.Client.CoreV1().ConfigMaps(pod.Namespace).Get(t.Context(), "update-operator-proxy-ca", metav1.GetOptions{})
	assert.NilError(t, err)
	client, err := metadata.NewForConfig(&rest.Config{
		Host: w.ProxyURL(), BearerToken: token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(ca.Data["ca.crt"]), ServerName: "update-operator-proxy.bottlerocket.svc"},
	})
	assert.NilError(t, err)
	list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + pod.Spec.NodeName,
	})
	assert.NilError(t, err)
	assert.Equal(t, len(list.Items), 1)
	assert.Equal(t, list.Items[0].Name, pod.Spec.NodeName)
}
