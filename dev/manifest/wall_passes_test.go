package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// What the two do every day passes, and no other account meets the wall.
func TestWallLetsThrough(t *testing.T) {
	w := newWall(t, Namespace)
	patch := func(client kubernetes.Interface, body string) {
		t.Helper()
		_, err := client.CoreV1().Nodes().Patch(t.Context(), wallNode, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		assert.Check(t, err, body)
	}
	keys := slices.DeleteFunc(append(names(marker.WriterAgent), names(marker.WriterController)...), func(k string) bool { return k == autoLabelled })
	// As long as the decoder reads, and with all that counts as one line.
	odd := "Ünï cödé 日本語 ~ \"quoted\" \\ \U0001F980"
	for _, k := range keys {
		component := Controller
		values := []any{"one", odd, strings.Repeat("v", 4096), nil}
		if marker.Owns(marker.WriterAgent, k) {
			component = Proxy
		}
		for _, v := range values {
			patch(w.users[component], setAnnotation(k, v))
		}
	}
	for _, k := range marker.AutoscalerMarks() {
		// What stood there is put back, also what no one line could be.
		for _, v := range []any{"true", strings.Repeat("v", 127) + "\n", nil} {
			patch(w.users[Controller], setAnnotation(k, v))
		}
	}
	for _, body := range []string{`{"metadata":{"labels":{"` + balancerLabel + `":"true"}},"spec":{"unschedulable":true}}`, `{"metadata":{"labels":{"` + balancerLabel + `":null}},"spec":{"unschedulable":null}}`} {
		patch(w.users[Controller], body)
	}

	// A user's wish goes with the failure, and once there is none.
	patch(w.admin, fmt.Sprintf(`{"metadata":{"annotations":{%q:"now",%q:"{}"}}}`, marker.KeyRetry, marker.KeyFailure))
	patch(w.users[Controller], fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, marker.KeyRetry, marker.KeyFailure))
	patch(w.admin, setAnnotation(string(marker.KeyRetry), "now"))
	patch(w.users[Controller], setAnnotation(string(marker.KeyRetry), nil))

	// So does a request.
	patch(w.admin, setAnnotation(string(marker.KeyCycle), "x"))
	patch(w.users[Controller], setAnnotation(string(marker.KeyCycle), nil))

	// A node that is let go: all of the operator's goes at once, the user's and what a newer one wrote stays.
	set, gone := map[string]any{}, map[string]any{}
	for _, k := range keys {
		set[k], gone[k] = "again", nil
	}
	for _, step := range []struct {
		client      kubernetes.Interface
		annotations map[string]any
	}{{w.admin, set}, {w.users[Controller], gone}} {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": step.annotations}})
		assert.NilError(t, err)
		patch(step.client, string(body))
	}
	patch(w.admin, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"taints":null}}`)
	assert.Equal(t, w.node(t).Annotations[string(marker.KeyPaused)], "why")
}

// What the controller sends of evictions, deletions, objects of its own and Events passes, and what others send too.
func TestWallLetsObjectsThrough(t *testing.T) {
	w := newWall(t, Namespace)
	c := w.users[Controller]
	options := func(grace *int64) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: metav1.NewUIDPreconditions(string(w.pod)), DryRun: []string{metav1.DryRunAll}}
	}
	evict := func(grace *int64) error {
		return drain.NewEvictor(c).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: wallPod}, DeleteOptions: options(grace)})
	}
	remove := func(grace *int64) error {
		return c.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), wallPod, *options(grace))
	}
	assert.Check(t, evict(nil))
	for _, grace := range []*int64{nil, new(int64(30)), new(int64(600))} {
		assert.Check(t, remove(grace))
	}
	// With what drain.gracePeriod needs.
	w.apply(t, string(further(t, "grace-period")))
	defer func() {
		w.kubectl(t, string(further(t, "grace-period")), "delete")
		await(t, "the right is forgotten", func() bool { return byPolicy(evict(new(int64(1)))) })
	}()
	for _, grace := range []*int64{new(int64(1)), new(int64(600))} {
		await(t, "the right is known", func() bool { return evict(grace) == nil })
		assert.Check(t, remove(grace))
	}
	// Other accounts may still do what RBAC lets them.
	dry := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), DryRun: []string{metav1.DryRunAll}}
	assert.Check(t, w.admin.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), wallPod, dry))

	_, err := c.CoreV1().ConfigMaps(Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.StateConfigMap}}, metav1.CreateOptions{})
	created(t, err)
	_, err = c.CoordinationV1().Leases(Namespace).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: kube.LeaseName}}, metav1.CreateOptions{})
	created(t, err)
	_, err = w.admin.CoreV1().ConfigMaps(Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}}, metav1.CreateOptions{})
	created(t, err)

	// Events as the product writes them: many alike, so that the last ones are changed ones, and as long as they get.
	events := kube.NewEvents(t.Context(), c, Namespace, strings.Repeat("h", 253))
	defer events.Stop()
	const alike = 15
	for i := range alike {
		events.Event(wallNode, "uid", true, "Alike", fmt.Sprint("n", i, strings.Repeat("é", 1000)))
		events.Event(wallNode, "uid", false, "Same", "the same")
	}
	events.Once("id", wallNode, "uid", true, "Once", "m")
	events.Notice(true, "Notice", "m")
	await(t, "all Events are written", func() bool {
		counts := map[string]int32{}
		for _, namespace := range []string{metav1.NamespaceDefault, Namespace} {
			list, err := w.admin.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
			assert.NilError(t, err)
			for _, e := range list.Items {
				counts[e.Reason] += e.Count
			}
		}
		return counts["Alike"] == alike && counts["Same"] == alike && counts["Once"] == 1 && counts["Notice"] == 1
	})
}

// A kubelet may put tens of thousands of annotations and labels on its Node. Neither account is refused its own keys
// there, nor let at those of others. What judging costs is bounded by the API server: it refuses a write whose policies
// take more than their budget.
func TestWallOnACrowdedNode(t *testing.T) {
	w := newWall(t, Namespace)
	short := func(n int) map[string]string {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		m := make(map[string]string, n)
		for i := range n {
			m[string([]byte{letters[i/62/62], letters[i/62%62], letters[i%62]})] = ""
		}
		return m
	}
	own := map[string]marker.Key{Proxy: marker.KeyBootID, Controller: marker.KeyIntentID}
	patch := func(client kubernetes.Interface, node, body string) error {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	for _, burden := range []metav1.ObjectMeta{
		{Name: "just-looked-at", Annotations: short(990), Labels: short(990)},
		{Name: "annotated", Annotations: short(60_000)},
		{Name: "labelled", Labels: short(30_000)},
	} {
		t.Run(burden.Name, func(t *testing.T) {
			_, err := w.admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: burden}, metav1.CreateOptions{})
			assert.NilError(t, err)
			assert.NilError(t, patch(w.admin, burden.Name, setAnnotation("example.com/theirs", "v")))
			for component, client := range w.users {
				assert.NilError(t, patch(client, burden.Name, setAnnotation(string(own[component]), "one")), component)
				for _, body := range []string{
					`{"metadata":{"labels":{"example.com/new":"v","` + balancerLabel + `":"true"}}}`,
					setAnnotation("example.com/theirs", nil),
				} {
					err := patch(client, burden.Name, body)
					assert.Check(t, apierrors.IsForbidden(err), "%s by the %s: %v", body, component, err)
				}
			}
			assert.NilError(t, patch(w.users[Controller], burden.Name, `{"metadata":{"labels":{"`+balancerLabel+`":"true"}},"spec":{"unschedulable":true}}`))
			assert.NilError(t, w.admin.CoreV1().Nodes().Delete(t.Context(), burden.Name, metav1.DeleteOptions{}))
		})
	}
}
