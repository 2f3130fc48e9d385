package policy

import (
	"fmt"
	"time"
)

// Eviction is how a drain takes the pods off its node.
type Eviction struct {
	// GracePeriod is how long each pod gets to shut down; 0 is what it asks for itself.
	GracePeriod time.Duration `yaml:"gracePeriod"`
	// EmptyDirData is for pods that keep data in an emptyDir, which is lost with them. Default Evict.
	EmptyDirData Handling `yaml:"emptyDirData" words:"evict,block"`
	// UnmanagedPods is for those that no controller makes anew elsewhere. Default Evict.
	UnmanagedPods Handling `yaml:"unmanagedPods" words:"evict,block"`
	// WaitFor are pods that end by themselves: they are not evicted, and the drain waits for them.
	WaitFor []PodSelector `yaml:"waitFor"`
	// Leave are pods that stay on the node through its reboot.
	Leave []PodSelector `yaml:"leave"`
	// Force: what is left at the drain's deadline is deleted, whatever protects it. Default false.
	Force bool `yaml:"atDeadline" words:"return=false,force=true"`
	// Predict: a node is cordoned only if a look at its pods and their budgets found that it can be drained now.
	// Default true.
	Predict bool `yaml:"predict"`
	// PerHour is how many pods may be evicted from a node within an hour, whatever for: it ends a pod that comes back to
	// its cordoned node each time. Default 1000, more than a node has pods.
	PerHour int `yaml:"evictionsPerHour"`
}

// Handling is what a drain does with pods of some kind.
type Handling string

// What a drain may do with them.
const (
	// Evict takes them off the node like any other.
	Evict Handling = "evict"
	// Block leaves them, and so keeps the node from being drained.
	Block Handling = "block"
)

// PodSelector chooses pods by their labels.
type PodSelector struct {
	// Namespace is empty for any.
	Namespace string   `yaml:"namespace"`
	Selector  Selector `yaml:"podSelector"`
}

// Matches reports whether the selector chooses a pod.
func (s PodSelector) Matches(namespace string, labels map[string]string) bool {
	return (s.Namespace == "" || s.Namespace == namespace) && s.Selector.Matches(labels)
}

func (s PodSelector) String() string {
	if s.Namespace == "" {
		return s.Selector.String()
	}
	return s.Selector.String() + " in " + s.Namespace
}

// forceTime is for how long what is left is deleted by force, once the drain's own deadline is past.
const forceTime = 5 * time.Minute

// LongestDrain is how long a drain may take in all.
func (r *Rules) LongestDrain() time.Duration {
	if r.Eviction.Force {
		return r.Drain + forceTime
	}
	return r.Drain
}

func (e Eviction) validate(m *mistakes) {
	if e.GracePeriod != 0 && e.GracePeriod < time.Second {
		m.add("drain.gracePeriod", "is %s: give 1s or more, or leave it out for what each pod asks for", e.GracePeriod)
	}
	if e.PerHour < 1 {
		m.add("drain.evictionsPerHour", "is %d: give 1 or more", e.PerHour)
	}
	everyPod := func(list string, pods []PodSelector) {
		for i, s := range pods {
			if s.Namespace == "" && len(s.Selector) == 0 {
				m.add(fmt.Sprintf("%s[%d]", list, i), "chooses every pod: give a namespace, or a podSelector that chooses some")
			}
		}
	}
	everyPod("drain.waitFor", e.WaitFor)
	everyPod("drain.leave", e.Leave)
}
