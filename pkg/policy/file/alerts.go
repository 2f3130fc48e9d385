package file

import (
	"fmt"
	"regexp"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// alerts are those that keep everything from starting.
type alerts struct {
	URL        *string  `yaml:"url"`
	Query      *string  `yaml:"query"`
	Ignore     []string `yaml:"ignore"`
	FiringOnly *bool    `yaml:"firingOnly"`
}

func (a *alerts) into(out *policy.Alerts, r *reader) {
	if a == nil {
		return
	}
	set(&out.URL, a.URL)
	set(&out.Query, a.Query)
	set(&out.FiringOnly, a.FiringOnly)
	if a.Ignore != nil {
		out.Ignore = nil
	}
	for i, text := range a.Ignore {
		made, err := regexp.Compile(text)
		if err != nil {
			r.wrong(policy.Mistake{Field: fmt.Sprintf("alerts.ignore[%d]", i),
				Says: fmt.Sprintf("is %q, which is no regular expression: give one such as ^Watchdog$", text)})
			continue
		}
		out.Ignore = append(out.Ignore, made)
	}
}
