package policy

import (
	"regexp"
	"strings"
)

// Alerts are those that keep everything from starting.
type Alerts struct {
	// URL is that of a Prometheus; empty: no alert keeps anything.
	URL string `yaml:"url"`
	// Query is asked instead of all alerts: each series that it finds counts as one.
	Query string `yaml:"query"`
	// Ignore are names of alerts that keep nothing.
	Ignore []*regexp.Regexp `yaml:"ignore"`
	// FiringOnly: alerts that are pending keep nothing.
	FiringOnly bool `yaml:"firingOnly"`
}

func (a *Alerts) validate(m *mistakes) {
	switch {
	case a.URL == "" && (a.Query != "" || len(a.Ignore) > 0 || a.FiringOnly):
		m.add("alerts.url", "is missing: give that of a Prometheus, such as http://prometheus.monitoring:9090")
	case a.URL != "" && !strings.HasPrefix(a.URL, "http://") && !strings.HasPrefix(a.URL, "https://"):
		m.add("alerts.url", "is %q: give one that begins with http:// or https://", a.URL)
	}
}
