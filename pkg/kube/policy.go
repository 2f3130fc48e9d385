package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

const (
	// PolicyConfigMap is the user's, in the operator's namespace, and PolicyKey where the policy stands in it.
	PolicyConfigMap = "update-policy"
	PolicyKey       = "policy.yaml"
	// AcknowledgedConfigMap is the user's too: each key is a version that goes on although it failed on many nodes.
	AcknowledgedConfigMap = "update-acknowledged"
)

// PolicyState is the policy in force.
type PolicyState struct {
	Settings policy.Settings
	// Problem is a sentence on why what stands in the ConfigMap is not in force; empty if it is. None: there is
	// no good one from before either, and nothing may start.
	Problem string
	None    bool
	// Acknowledged are the versions that a person let go on.
	Acknowledged map[string]bool
	// Warnings are sentences on what was read and may not have been meant.
	Warnings []string
}

// PolicyConfig is what a Policy is made from.
type PolicyConfig struct {
	// Policy and Acknowledged are as ConfigMapInformer returns them for the two ConfigMaps, not yet running.
	Policy, Acknowledged Informer
	// Defaults hold where the file says nothing, and without a file.
	Defaults policy.Settings
	// Changed is called, on any goroutine, when the policy is another one. It must not block.
	Changed func()
}

// Policy is the policy as its ConfigMap shows it. The last good one stays in force.
type Policy struct {
	c PolicyConfig

	mu    sync.Mutex
	state PolicyState
	// good tells if Settings were ever good ones, told if the watch said anything yet.
	good, told bool
}

// NewPolicy returns a Policy that watches nothing yet: until it has, there is none.
func NewPolicy(c PolicyConfig) (*Policy, error) {
	p := &Policy{c: c, state: PolicyState{Settings: c.Defaults, None: true, Problem: "it has not been read yet"}}
	if _, err := c.Policy.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: p.read, UpdateFunc: func(_, obj any) { p.read(obj) }, DeleteFunc: func(any) { p.absent() },
	}); err != nil {
		return nil, errors.Wrap(err, "watching the policy")
	}
	if _, err := c.Acknowledged.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: p.acknowledge, UpdateFunc: func(_, obj any) { p.acknowledge(obj) }, DeleteFunc: func(any) { p.acknowledge(&corev1.ConfigMap{}) },
	}); err != nil {
		return nil, errors.Wrap(err, "watching what is acknowledged")
	}
	return p, nil
}

// Run watches until ctx ends.
func (p *Policy) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.c.Policy.RunWithContext(ctx) })
	wg.Go(func() { p.c.Acknowledged.RunWithContext(ctx) })
	wg.Wait()
}

// WaitForSync returns when the policy was read, or is known not to be there; false if ctx ended before.
func (p *Policy) WaitForSync(ctx context.Context) bool {
	if !cache.WaitForCacheSync(ctx.Done(), p.c.Policy.HasSynced, p.c.Acknowledged.HasSynced) {
		return false
	}
	set, err := p.c.Defaults, error(nil)
	if stands := p.c.Policy.GetIndexer().List(); len(stands) > 0 {
		set, err = p.decode(stands[0])
	}
	p.mu.Lock()
	// What the watch has told since is newer than the list, and than the absence of a policy in it.
	if !p.told {
		p.keep(set, err)
	}
	p.mu.Unlock()
	p.c.Changed()
	return true
}

// Current is the policy in force now.
func (p *Policy) Current() PolicyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// absent puts the defaults in force.
func (p *Policy) absent() { p.put(p.c.Defaults, nil) }

func (p *Policy) read(obj any) { p.put(p.decode(obj)) }

func (p *Policy) decode(obj any) (policy.Settings, error) {
	config, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return policy.Settings{}, errors.Errorf("%T is no ConfigMap", obj)
	}
	return decodePolicy(config, p.c.Defaults)
}

func decodePolicy(config *corev1.ConfigMap, defaults policy.Settings) (policy.Settings, error) {
	text, ok := config.Data[PolicyKey]
	if !ok {
		return policy.Settings{}, errors.Errorf("it has no key %s", PolicyKey)
	}
	return file.Decode([]byte(text), defaults, time.LoadLocation)
}

// policyProblem is what people read of a policy that can't be read.
func policyProblem(err error) string { return "ConfigMap " + PolicyConfigMap + ": " + err.Error() }

func (p *Policy) put(set policy.Settings, err error) {
	p.mu.Lock()
	p.told = true
	p.keep(set, err)
	p.mu.Unlock()
	p.c.Changed()
}

// keep takes in what was read; whoever calls it holds the lock.
func (p *Policy) keep(set policy.Settings, err error) {
	if err != nil {
		p.state.Problem = policyProblem(err)
		p.state.None = !p.good
		return
	}
	p.good = true
	p.state.Settings, p.state.Problem, p.state.None = set, "", false
}

func (p *Policy) acknowledge(obj any) {
	config, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return
	}
	versions, warnings := acknowledged(config)
	p.mu.Lock()
	p.state.Acknowledged, p.state.Warnings = versions, warnings
	p.mu.Unlock()
	p.c.Changed()
}

// acknowledged are the versions that a person let go on, and what of the rest is none.
func acknowledged(config *corev1.ConfigMap) (versions map[string]bool, warnings []string) {
	versions = make(map[string]bool, len(config.Data))
	for _, v := range slices.Sorted(maps.Keys(config.Data)) {
		if !marker.ValidVersion(v) {
			warnings = append(warnings, fmt.Sprintf("ConfigMap %s: key %q is no version, such as 1.27.0", AcknowledgedConfigMap, v))
			continue
		}
		versions[v] = true
	}
	return versions, warnings
}

// ConfigMapInformer watches one ConfigMap, which needn't be there.
func ConfigMapInformer(client kubernetes.Interface, namespace, name string) cache.SharedIndexInformer {
	maps := client.CoreV1().ConfigMaps(namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return maps.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return maps.Watch(ctx, o)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.ConfigMap{},
		cache.SharedIndexInformerOptions{ObjectDescription: "ConfigMap " + name})
}
