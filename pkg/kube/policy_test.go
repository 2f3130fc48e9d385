package kube

import (
	"context"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

func policyMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: PolicyConfigMap, Namespace: "bottlerocket"}, Data: data}
}

// The last good policy stays in force while what stands has a mistake; with none nothing may start. Without the ConfigMap
// the defaults hold, until there has been one: then nothing starts, and what is under way ends by the last good one (S8).
func TestPolicyInForce(t *testing.T) {
	three, broken := map[string]string{PolicyKey: "version: 1\nmaxUnavailable: 3\n"}, map[string]string{PolicyKey: "version: 1\nmaxUnavailabel: 3\nsoak: 5\n"}
	const absent, ofThree, unknown = 1, 3, "there is no field maxUnavailabel: the nearest is maxUnavailable (and 1 more mistake)"
	type look struct {
		data    map[string]string // nil deletes
		limit   int
		none    bool
		problem string
	}
	for _, tc := range []struct {
		name  string
		looks []look
	}{
		{"absent", []look{{nil, absent, false, ""}}},
		{"good from the beginning", []look{{three, ofThree, false, ""}}},
		{"broken from the beginning", []look{{broken, absent, true, unknown}, {three, ofThree, false, ""}}},
		{"without its key", []look{{map[string]string{"policy.yml": "version: 1"}, absent, true, "it has no key policy.yaml"}}},
		{"broken later", []look{{three, ofThree, false, ""}, {broken, ofThree, false, unknown}, {three, ofThree, false, ""}}},
		{"broken, then deleted", []look{{broken, absent, true, unknown}, {nil, absent, false, ""}}},
		{"deleted, then broken", []look{{three, ofThree, false, ""}, {nil, absent, false, ""}, {broken, ofThree, true, unknown}, {three, ofThree, false, ""}}},
		{"absent, then broken", []look{{nil, absent, false, ""}, {broken, absent, true, unknown}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset()
			maps := client.CoreV1().ConfigMaps("bottlerocket")
			if first := tc.looks[0].data; first != nil {
				_, err := maps.Create(t.Context(), policyMap(first), metav1.CreateOptions{})
				assert.NilError(t, err)
			}
			changed := make(chan struct{}, 100)
			p, err := NewPolicy(PolicyConfig{
				Policy:       ConfigMapInformer(client, "bottlerocket", PolicyConfigMap),
				Pauses:       ConfigMapInformer(client, "bottlerocket", PauseConfigMap),
				Acknowledged: ConfigMapInformer(client, "bottlerocket", AcknowledgedConfigMap),
				PlanTargets:  ConfigMapInformer(client, "bottlerocket", PlanTargetsConfigMap),
				Defaults:     policy.DefaultSettings(), Changed: func() { changed <- struct{}{} },
			})
			assert.NilError(t, err)
			assert.Assert(t, p.Current().None, "a policy that was not read yet lets something start")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); p.Run(ctx) }()
			defer func() { cancel(); <-done }()
			assert.Assert(t, p.WaitForSync(ctx))
			there := tc.looks[0].data != nil
			for i, l := range tc.looks {
				switch {
				case i == 0:
				case l.data == nil:
					assert.NilError(t, maps.Delete(t.Context(), PolicyConfigMap, metav1.DeleteOptions{}))
					there = false
				case there:
					_, err := maps.Update(t.Context(), policyMap(l.data), metav1.UpdateOptions{})
					assert.NilError(t, err)
				default:
					_, err := maps.Create(t.Context(), policyMap(l.data), metav1.CreateOptions{})
					assert.NilError(t, err)
					there = true
				}
				await(t, changed, func() bool {
					now := p.Current()
					return now.Settings.MaxUnavailable == policy.Count(l.limit) && now.None == l.none &&
						(now.Problem == "") == (l.problem == "") && strings.Contains(now.Problem, l.problem)
				}, func() any { return p.Current() })
				now, last := p.Current().Required(), policy.Count(absent)
				if i > 0 && tc.looks[0].limit == ofThree {
					last = policy.Count(ofThree)
				}
				if l.data == nil {
					assert.Assert(t, now.None && strings.Contains(now.Problem, "is gone") && now.Settings.MaxUnavailable == last, "%+v", now)
				} else {
					assert.DeepEqual(t, now.Problem, p.Current().Problem)
				}
			}
		})
	}
}

// A pause of the fleet holds although what stands beside it has a mistake, over the last good policy, and one that was
// good before isn't taken back by a mistake.
func TestPauseInAPolicyWithAMistake(t *testing.T) {
	p := unwatched(t)
	for _, step := range []struct{ text, pause string }{
		{"version: 1\nmaxUnavailable: 3\n", ""},
		{"version: 1\nmaxUnavailabel: 3\npause: {reason: moving}\n", "moving (in ConfigMap update-policy)"},
		{"version: 1\nmaxUnavailabel: 3\n", ""},
		{"version: 1\nmaxUnavailable: 3\npause: {reason: moved}\n", "moved (in ConfigMap update-policy)"},
		{"version: 1\nmaxUnavailabel: 3\n", "moved (in ConfigMap update-policy)"},
		{"version: 1\nmaxUnavailable: 3\n", ""},
	} {
		p.receive(policyMap(map[string]string{PolicyKey: step.text}))
		now, reason := p.Current().Settings, ""
		if now.Pause != nil {
			reason = now.Pause.Reason
		}
		assert.Equal(t, reason, step.pause, step.text)
		assert.Equal(t, now.MaxUnavailable, policy.Count(3))
	}
}

// await looks again whenever something changed.
func await(t *testing.T, changed <-chan struct{}, ok func() bool, now func() any) {
	t.Helper()
	bound := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-changed:
		case <-bound:
			t.Fatalf("it stays %+v", now())
		}
	}
}

// A version that a person acknowledged goes on until the acknowledgement is taken back.
func TestAcknowledgedVersions(t *testing.T) {
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps("bottlerocket")
	changed := make(chan struct{}, 100)
	p, err := NewPolicy(PolicyConfig{
		Policy:       ConfigMapInformer(client, "bottlerocket", PolicyConfigMap),
		Pauses:       ConfigMapInformer(client, "bottlerocket", PauseConfigMap),
		Acknowledged: ConfigMapInformer(client, "bottlerocket", AcknowledgedConfigMap),
		PlanTargets:  ConfigMapInformer(client, "bottlerocket", PlanTargetsConfigMap),
		Defaults:     policy.DefaultSettings(), Changed: func() { changed <- struct{}{} },
	})
	assert.NilError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	assert.Assert(t, p.WaitForSync(ctx))
	const planned = "k3s/v1.36.3+k3s1#0123456789abcdef"
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: AcknowledgedConfigMap}, Data: map[string]string{
		"1.27.0": "", marker.VersionKey(planned): ""}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	now := func() any { return p.Current() }
	await(t, changed, func() bool { return p.Current().Acknowledged["1.27.0"] && p.Current().Acknowledged[planned] }, now)
	assert.NilError(t, maps.Delete(ctx, AcknowledgedConfigMap, metav1.DeleteOptions{}))
	await(t, changed, func() bool { return !p.Current().Acknowledged["1.27.0"] }, now)
}
