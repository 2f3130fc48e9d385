package file

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// drain is how the pods are taken off a node.
type drain struct {
	Timeout       *duration      `yaml:"timeout"`
	GracePeriod   *duration      `yaml:"gracePeriod"`
	EmptyDirData  *handling      `yaml:"emptyDirData"`
	UnmanagedPods *handling      `yaml:"unmanagedPods"`
	WaitFor       *[]podSelector `yaml:"waitFor"`
	Leave         *[]podSelector `yaml:"leave"`
	AtDeadline    *lastResort    `yaml:"atDeadline"`
	Predict       *bool          `yaml:"predict"`
	PerHour       *int           `yaml:"evictionsPerHour"`
}

type podSelector struct {
	Namespace string    `yaml:"namespace"`
	Selector  *selector `yaml:"podSelector"`
}

// into overlays what stands there.
func (d *drain) into(out *policy.Rules, r *reader, at string) {
	if d == nil {
		return
	}
	lasting(&out.Drain, d.Timeout)
	e := &out.Eviction
	if d.GracePeriod != nil {
		if e.GracePeriod = d.GracePeriod.Duration; e.GracePeriod == 0 {
			r.wrong(policy.Mistake{Field: below(at, "gracePeriod"),
				Says: "is 0s, which would kill every pod at once: give 1s or more, or leave it out for what each pod asks for"})
		}
	}
	if d.EmptyDirData != nil {
		e.EmptyDirData = policy.Handling(*d.EmptyDirData)
	}
	if d.UnmanagedPods != nil {
		e.UnmanagedPods = policy.Handling(*d.UnmanagedPods)
	}
	if d.AtDeadline != nil {
		e.Force = *d.AtDeadline == force
	}
	set(&e.Predict, d.Predict)
	set(&e.PerHour, d.PerHour)
	choose(&e.WaitFor, d.WaitFor, r, below(at, "waitFor"))
	choose(&e.Leave, d.Leave, r, below(at, "leave"))
}

func choose(into *[]policy.PodSelector, pods *[]podSelector, r *reader, at string) {
	if pods == nil {
		return
	}
	*into = nil
	for i, p := range *pods {
		made := policy.PodSelector{Namespace: p.Namespace}
		if p.Selector != nil {
			made.Selector = p.Selector.selector(r, fmt.Sprintf("%s[%d].podSelector", at, i))
		}
		*into = append(*into, made)
	}
}
