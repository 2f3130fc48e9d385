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

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
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
	// Problem is a sentence on why what stands in the ConfigMap is not in force, or why nothing stands there; empty if
	// all is well. None: nothing may start, as there is no good one from before either, or it was deleted.
	Problem string
	None    bool
	// Stands reports whether there is a ConfigMap, be its policy in force or not. ResourceVersion is that of the
	// ConfigMap; empty without one.
	Stands          bool
	ResourceVersion string
	// Acknowledged are the versions that an administrator let go on.
	Acknowledged map[string]bool
	// PlanTargets are what the runner has found out of the plans, by name.
	PlanTargets map[string]fleet.PlanTarget
	// Warnings are sentences on what was read and may not have been meant.
	Warnings []string
	// last is the last good policy; the defaults if there was none.
	last   policy.Settings
	pauses Pauses
	// acknowledgedWarnings are those of Warnings that no policy changes.
	acknowledgedWarnings []string
}

// PolicyConfig is what a Policy is made from.
type PolicyConfig struct {
	// Policy, Pauses, Acknowledged and PlanTargets are as ConfigMapInformer returns them for the ConfigMaps, not yet
	// running.
	Policy, Pauses, Acknowledged, PlanTargets Informer
	// Defaults hold where the file says nothing, and without a file.
	Defaults policy.Settings
	// Changed is called, on any goroutine, when the policy is another one. It must not block.
	Changed func()
}

// Policy is the policy as its ConfigMap shows it. A good one stays in force while what stands there has a mistake, but
// a pause of the fleet holds whatever stands beside it.
type Policy struct {
	c PolicyConfig

	mu sync.Mutex
	// set is the last good policy, the defaults before there was one; good: it stands there, or a mistake does that came
	// after it. unreadable is what is wrong with what stands.
	set             policy.Settings
	good, stands    bool
	unreadable      string
	resourceVersion string
	// paused is the fleet's pause in what stands and has a mistake: it holds all the same.
	paused *policy.Pause
	// pauses are those of PauseConfigMap.
	pauses Pauses
	// policyReceived reports whether the watch has shown anything of the policy yet, pausesReceived the same of the
	// pauses.
	policyReceived, pausesReceived bool
	acknowledged                   map[string]bool
	warnings                       []string
	planTargets                    map[string]fleet.PlanTarget
}

// NewPolicy returns a Policy that watches nothing yet: until it has, there is none.
func NewPolicy(c PolicyConfig) (*Policy, error) {
	p := &Policy{c: c, set: c.Defaults, stands: true, unreadable: "it has not been read yet"}
	for _, w := range []struct {
		what     string
		informer Informer
		receive  func(obj any)
	}{{"the policy", c.Policy, p.receive}, {"pauses", c.Pauses, p.receivePauses}, {"what is acknowledged", c.Acknowledged, p.acknowledge},
		{"the targets of plans", c.PlanTargets, p.receiveTargets}} {
		if _, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: w.receive, UpdateFunc: func(_, obj any) { w.receive(obj) }, DeleteFunc: func(any) { w.receive(nil) },
		}); err != nil {
			return nil, errors.Wrap(err, "watching "+w.what)
		}
	}
	return p, nil
}

// Run watches until ctx ends.
func (p *Policy) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.c.Policy.RunWithContext(ctx) })
	wg.Go(func() { p.c.Pauses.RunWithContext(ctx) })
	wg.Go(func() { p.c.Acknowledged.RunWithContext(ctx) })
	wg.Go(func() { p.c.PlanTargets.RunWithContext(ctx) })
	wg.Wait()
}

// WaitForSync returns when the policy was read, or is known not to be there; false if ctx ended before.
func (p *Policy) WaitForSync(ctx context.Context) bool {
	if !cache.WaitForCacheSync(ctx.Done(), p.c.Policy.HasSynced, p.c.Pauses.HasSynced, p.c.Acknowledged.HasSynced, p.c.PlanTargets.HasSynced) {
		return false
	}
	stands, pauses := only(p.c.Policy), only(p.c.Pauses)
	p.mu.Lock()
	// What the watch has shown since is newer than the list, and than the absence of an object in it.
	if !p.policyReceived {
		p.keep(stands)
	}
	if !p.pausesReceived {
		p.pauses = pausesOf(pauses)
	}
	p.mu.Unlock()
	p.c.Changed()
	return true
}

// only returns the object that an informer has; nil if there is none.
func only(i Informer) any {
	if listed := i.GetIndexer().List(); len(listed) > 0 {
		return listed[0]
	}
	return nil
}

// Current is the policy in force now, with the pauses of PauseConfigMap. Without a ConfigMap that is the defaults.
func (p *Policy) Current() PolicyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PolicyState{Settings: p.set, Stands: p.stands, ResourceVersion: p.resourceVersion, Acknowledged: p.acknowledged, PlanTargets: p.planTargets,
		last: p.pauses.addTo(p.set), pauses: p.pauses, acknowledgedWarnings: p.warnings}
	switch {
	case p.unreadable != "":
		s.Problem, s.None = p.unreadable, !p.good
		if p.paused != nil {
			s.Settings.Pause = p.paused
		}
	case !p.stands:
		s.Settings = p.c.Defaults
	}
	return s.With(s.Settings)
}

// With returns the state with other settings in force: the pauses of PauseConfigMap hold whatever the policy is.
func (s PolicyState) With(set policy.Settings) PolicyState {
	s.Settings = s.pauses.addTo(set)
	s.Warnings = append(slices.Clone(s.acknowledgedWarnings), s.pauses.unknownGroups(&set)...)
	return s
}

// Required is the same state in a cluster that has had a policy. There the absence of one is no decision of the
// administrator's: a prune or a rename took it, and with it whatever it held back. What is under way ends by the last
// good one, if this process knows it.
func (s PolicyState) Required() PolicyState {
	if !s.Stands && s.Problem == "" {
		s.Settings, s.Problem, s.None = s.last, PolicyGone, true
	}
	return s
}

// PolicyGone is the problem of a cluster that has had a policy and has none.
const PolicyGone = "ConfigMap " + PolicyConfigMap + " is gone, and this cluster has had a policy: write it again, " +
	"or one that says no more than \"version: 1\" to go on with the defaults"

func decodePolicy(config *corev1.ConfigMap, defaults policy.Settings) (policy.Settings, error) {
	text, ok := config.Data[PolicyKey]
	if !ok {
		return policy.Settings{}, errors.Errorf("it has no key %s", PolicyKey)
	}
	return file.Decode([]byte(text), defaults, time.LoadLocation)
}

// policyProblem is the message about a policy that can't be read.
func policyProblem(err error) string { return "ConfigMap " + PolicyConfigMap + ": " + err.Error() }

func (p *Policy) receive(obj any) {
	p.mu.Lock()
	p.policyReceived = true
	p.keep(obj)
	p.mu.Unlock()
	p.c.Changed()
}

// keep takes in the ConfigMap, or its absence, nil. The lock is held.
func (p *Policy) keep(obj any) {
	p.stands, p.unreadable, p.paused, p.resourceVersion = obj != nil, "", nil, ""
	if obj == nil {
		p.good = false
		return
	}
	config, ok := obj.(*corev1.ConfigMap)
	if !ok {
		p.unreadable = policyProblem(errors.Errorf("%T is no ConfigMap", obj))
		return
	}
	p.resourceVersion = config.ResourceVersion
	set, err := decodePolicy(config, p.c.Defaults)
	if err != nil {
		p.unreadable, p.paused = policyProblem(err), file.Pause([]byte(config.Data[PolicyKey]))
		return
	}
	p.set, p.good = set, true
}

func (p *Policy) receivePauses(obj any) {
	p.mu.Lock()
	p.pausesReceived = true
	p.pauses = pausesOf(obj)
	p.mu.Unlock()
	p.c.Changed()
}

func (p *Policy) receiveTargets(obj any) {
	var targets map[string]fleet.PlanTarget
	if config, ok := obj.(*corev1.ConfigMap); ok {
		targets = DecodePlanTargets(config.Data)
	}
	p.mu.Lock()
	p.planTargets = targets
	p.mu.Unlock()
	p.c.Changed()
}

func (p *Policy) acknowledge(obj any) {
	config, ok := obj.(*corev1.ConfigMap)
	if !ok {
		config = &corev1.ConfigMap{}
	}
	versions, warnings := acknowledged(config)
	p.mu.Lock()
	p.acknowledged, p.warnings = versions, warnings
	p.mu.Unlock()
	p.c.Changed()
}

// acknowledged returns the versions that an administrator let go on, and which keys name none.
func acknowledged(config *corev1.ConfigMap) (versions map[string]bool, warnings []string) {
	versions = make(map[string]bool, len(config.Data))
	for _, k := range slices.Sorted(maps.Keys(config.Data)) {
		v := marker.KeyVersion(k)
		if !marker.ValidVersion(v) && !marker.ValidPlanVersion(v) {
			warnings = append(warnings, fmt.Sprintf("ConfigMap %s: key %q is no version, such as 1.27.0", AcknowledgedConfigMap, k))
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
