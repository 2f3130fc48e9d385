package file

import (
	"regexp"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// alerts are those that keep everything from starting.
type alerts struct {
	URL        *string  `yaml:"url"`
	Query      *string  `yaml:"query"`
	Ignore     []string `yaml:"ignore"`
	FiringOnly *bool    `yaml:"firingOnly"`
}

func (a *alerts) into(out *policy.Alerts) error {
	if a == nil {
		return nil
	}
	set(&out.URL, a.URL)
	set(&out.Query, a.Query)
	set(&out.FiringOnly, a.FiringOnly)
	if a.Ignore != nil {
		out.Ignore = nil
	}
	for _, text := range a.Ignore {
		made, err := regexp.Compile(text)
		if err != nil {
			return errors.Errorf("alerts.ignore has %q, which is no regular expression: give one such as ^Watchdog$", text)
		}
		out.Ignore = append(out.Ignore, made)
	}
	return nil
}
