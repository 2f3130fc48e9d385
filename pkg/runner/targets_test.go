package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// A digest is of all that a plan's pods mount and read, and the same from every process.
func TestDigest(t *testing.T) {
	w := newWorld(t)
	yes := true
	spec := simple()
	spec.Volumes = []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "script"}}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}}}}}},
	}
	spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "extra"}, Optional: &yes}}}
	spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	w.template("k3s-pull", simple())
	w.template("k3s-apply", spec)
	w.policy(onePlan)
	first := w.start()

	missing := func(what string) {
		t.Helper()
		w.until("what is missing", func() error {
			all, _ := w.targets()
			if f := all["k3s"]; !f.Missing || f.Digest != "" || !strings.Contains(f.Problem, what) {
				return errors.Errorf("it is %+v", f)
			}
			return nil
		})
	}
	ctx, configs, secrets := t.Context(), w.admin.CoreV1().ConfigMaps(w.options.PlansNamespace), w.admin.CoreV1().Secrets(w.options.PlansNamespace)
	missing("ConfigMap script")
	_, err := configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "script"}, Data: map[string]string{"run": "true"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	missing("Secret password")
	secret, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"p": "1"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	digests := []string{w.digest("k3s")}
	next := func() {
		t.Helper()
		w.until("another digest", func() error {
			if d := w.digest("k3s"); d == digests[len(digests)-1] {
				return errors.Errorf("it is still %s", d)
			}
			return nil
		})
		digests = append(digests, w.digest("k3s"))
	}
	_, err = configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "extra"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	next()
	secret.StringData = map[string]string{"p": "2"}
	secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	assert.NilError(t, err)
	next()

	// What isn't content changes nothing, nor does another process.
	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, stood := w.targets()
	first.stop()
	second := w.start()
	assert.NilError(t, second.targets.pass(ctx))
	all, stands := w.targets()
	assert.Equal(t, stands, stood)
	assert.Equal(t, all["k3s"].Digest, digests[2])
	assert.DeepEqual(t, all["k3s"], fleet.PlanTarget{Prepare: "k3s-pull", Apply: "k3s-apply", Digest: digests[2], Sources: all["k3s"].Sources})

	secret.StringData = map[string]string{"p": "1"}
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	assert.NilError(t, err)
	next()
	assert.Equal(t, digests[3], digests[1], "the same content has the same digest")

	// A mistake in the policy, and its end, leave what stands.
	w.policy("version: 1\nplans: 7\n")
	w.until("the mistake is seen", func() error {
		second.plans.mu.Lock()
		defer second.plans.mu.Unlock()
		if second.plans.unreadable == "" {
			return errors.New("it isn't")
		}
		return nil
	})
	assert.NilError(t, second.targets.pass(ctx))
	assert.Equal(t, w.digest("k3s"), digests[3])
	w.policy("version: 1\n")
	w.until("the plan goes", func() error {
		if all, _ := w.targets(); len(all) > 0 {
			return errors.Errorf("there are %+v", all)
		}
		return nil
	})
}

// The key of digests is lost, as when the operator is installed anew: what stands unchanged keeps its digest, so no
// content is run again on nodes that have it, and what an attempt under way is about is still the same.
func TestDigestOutlivesItsKey(t *testing.T) {
	w := planned(t)
	first := w.start()
	node, p := w.node("node-1"), w.plan()
	first.stop()
	secrets := w.admin.CoreV1().Secrets(w.options.Namespace)
	_, err := secrets.Patch(t.Context(), w.options.SecretName, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
	assert.NilError(t, err)
	second := w.start()
	assert.NilError(t, second.targets.pass(t.Context()))
	assert.Equal(t, w.digest("k3s"), p.Digest)
	w.made(node, w.ask("node-1", marker.ActionRebootUpdate, p, "k3s-apply", time.Now()))

	_, err = w.admin.CoreV1().PodTemplates(w.options.PlansNamespace).Patch(t.Context(), "k3s-apply", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/template/spec/containers/0/image","value":"example.com/another"}]`), metav1.PatchOptions{})
	assert.NilError(t, err)
	w.until("another digest", func() error {
		if d := w.digest("k3s"); d == p.Digest {
			return errors.Errorf("it is still %s", d)
		}
		return nil
	})
}

// L4: heartbeats, and changes of what nothing depends on, cause no write.
func TestAtRest(t *testing.T) {
	w := planned(t)
	r := w.start()
	w.node("node-1")
	w.plan()
	i := w.ask("node-1", marker.ActionStabilize, nil, "", time.Now())
	w.answered("node-1", i, marker.StateReady)
	settled := func(version string) {
		t.Helper()
		w.until("the watch has caught up", func() error {
			n, err := stored[*corev1.Node](r.w.nodes.GetIndexer(), "node-1")
			if err != nil || n == nil || n.ResourceVersion != version || r.queue.Len() > 0 {
				return errors.Errorf("it shows %v", n)
			}
			return nil
		})
	}
	now := func() string {
		n, err := w.admin.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
		assert.NilError(t, err)
		return n.ResourceVersion
	}
	settled(now())
	_, stood := w.targets()
	writes, version := r.writes.Load(), ""
	for n := range 5 {
		w.patch("node-1", map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": string(rune('a' + n))}}}}, "status")
		version = now()
		settled(version)
		_, err := r.turn(t.Context(), "node-1")
		assert.NilError(t, err)
	}
	_, err := w.admin.CoreV1().ConfigMaps(w.options.PlansNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unused"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	assert.NilError(t, r.targets.pass(t.Context()))
	assert.NilError(t, r.visit(t.Context(), 0))
	assert.Equal(t, r.writes.Load(), writes)
	assert.Equal(t, now(), version)
	_, stands := w.targets()
	assert.Equal(t, stands, stood)
}
