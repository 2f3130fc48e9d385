package file

import (
	"github.com/pkg/errors"
	"go.yaml.in/yaml/v3"

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
}

type podSelector struct {
	Namespace string    `yaml:"namespace"`
	Selector  *selector `yaml:"podSelector"`
}

// into overlays what stands there.
func (d *drain) into(out *policy.Rules) error {
	if d == nil {
		return nil
	}
	lasting(&out.Drain, d.Timeout)
	e := &out.Eviction
	if d.GracePeriod != nil {
		if e.GracePeriod = d.GracePeriod.Duration; e.GracePeriod == 0 {
			return errors.New("drain.gracePeriod is 0s, which would kill every pod at once: give 1s or more, or leave it out for what each pod asks for")
		}
	}
	if d.EmptyDirData != nil {
		e.EmptyDirData = d.EmptyDirData.Handling
	}
	if d.UnmanagedPods != nil {
		e.UnmanagedPods = d.UnmanagedPods.Handling
	}
	if d.AtDeadline != nil {
		e.Force = d.AtDeadline.force
	}
	set(&e.Predict, d.Predict)
	if err := choose(&e.WaitFor, d.WaitFor); err != nil {
		return errors.WithMessage(err, "drain.waitFor")
	}
	return errors.WithMessage(choose(&e.Leave, d.Leave), "drain.leave")
}

func choose(into *[]policy.PodSelector, pods *[]podSelector) error {
	if pods == nil {
		return nil
	}
	*into = nil
	for _, p := range *pods {
		made := policy.PodSelector{Namespace: p.Namespace}
		if p.Selector != nil {
			var err error
			if made.Selector, err = p.Selector.selector("podSelector"); err != nil {
				return err
			}
		}
		*into = append(*into, made)
	}
	return nil
}

type handling struct{ policy.Handling }

func (h *handling) UnmarshalYAML(n *yaml.Node) error {
	return read(n, &h.Handling, func(text string) (policy.Handling, error) {
		parsed := policy.Handling(text)
		if parsed != policy.Evict && parsed != policy.Block {
			return "", errors.Errorf("%q is neither %s nor %s", text, policy.Evict, policy.Block)
		}
		return parsed, nil
	})
}

// lastResort is what becomes of a drain that has taken too long.
type lastResort struct{ force bool }

func (r *lastResort) UnmarshalYAML(n *yaml.Node) error {
	return read(n, &r.force, func(text string) (bool, error) {
		if text != "force" && text != string(policy.Return) {
			return false, errors.Errorf("%q is neither %s nor force", text, policy.Return)
		}
		return text == "force", nil
	})
}
