package kube_test

import (
	"context"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// written is an informer that lists nothing; just after that was found out, an object is written.
type written struct {
	text    string
	handler cache.ResourceEventHandler
}

// AddEventHandler is for kube.Informer.
func (i *written) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return nil, nil
}

// GetIndexer is for kube.Informer.
func (i *written) GetIndexer() cache.Indexer {
	if i.text != "" {
		i.handler.OnAdd(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}, Data: map[string]string{kube.PolicyKey: i.text}}, false)
	}
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
}

// HasSynced is for kube.Informer.
func (i *written) HasSynced() bool { return true }

// RunWithContext is for kube.Informer.
func (i *written) RunWithContext(context.Context) {}

// A policy that comes while its absence is being found out is in force, and not the defaults.
func TestPolicyWrittenDuringTheFirstList(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       policy.Limit
		none       bool
	}{
		{"there is none", "", policy.Count(1), false},
		{"it is written", "version: 1\nmaxUnavailable: 3\n", policy.Count(3), false},
		{"with a mistake", "version: 1\nmaxUnavailable: many\n", policy.Count(1), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := kube.NewPolicy(kube.PolicyConfig{Policy: &written{text: tc.text}, Pauses: &written{}, Acknowledged: &written{}, PlanTargets: &written{}, Defaults: policy.DefaultSettings(), Changed: func() {}})
			assert.NilError(t, err)
			assert.Assert(t, p.Current().None, "it has not been read yet")
			assert.Assert(t, p.WaitForSync(t.Context()))
			assert.Equal(t, p.Current().Settings.MaxUnavailable, tc.want)
			assert.Equal(t, p.Current().None, tc.none)
		})
	}
}

// listed is an informer that has listed an object, whose event has not come yet.
type listed struct {
	written
	object *corev1.ConfigMap
}

// GetIndexer is for kube.Informer.
func (i *listed) GetIndexer() cache.Indexer {
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	_ = all.Add(i.object)
	return all
}

// A controller that begins goes by a pause that was there before it, although no event has told of it yet (S6).
func TestPauseOfTheFirstList(t *testing.T) {
	pauses := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PauseConfigMap}, Data: map[string]string{kube.PauseKey: `{"fleet": {"reason": "moving"}}`}}
	p, err := kube.NewPolicy(kube.PolicyConfig{Policy: &written{}, Pauses: &listed{object: pauses}, Acknowledged: &written{}, PlanTargets: &written{}, Defaults: policy.DefaultSettings(), Changed: func() {}})
	assert.NilError(t, err)
	assert.Assert(t, p.WaitForSync(t.Context()))
	assert.Equal(t, p.Current().Settings.Pause.Reason, "moving (in ConfigMap update-pause)")
}
