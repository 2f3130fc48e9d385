package policy

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// Alerts are those that keep everything from starting.
type Alerts struct {
	// URL is that of a Prometheus; empty: no alert keeps anything.
	URL string
	// Query is asked instead of all alerts: each series that it finds counts as one.
	Query string
	// Ignore are names of alerts that keep nothing.
	Ignore []*regexp.Regexp
	// FiringOnly: alerts that are pending keep nothing.
	FiringOnly bool
}

// alertsFor is how long an answer of Prometheus is good for, so it is also how often it is asked at most.
const alertsFor = time.Minute

// alerted says which alert keeps everything from starting. It is asked for a node that would start, and has the
// alerts looked at if nobody did for a while. Not to know is to start nothing.
func (p *planner) alerted() (v verdict, asking bool) {
	set, a := &p.set.Alerts, p.Alerts
	if set.URL == "" {
		return verdict{}, false
	}
	if a == nil || a.URL != set.URL || a.Query != set.Query || p.Now.Before(a.At) || !p.Now.Before(a.At.Add(alertsFor)) {
		p.out.AskAlerts = true
		return verdict{ReasonAlertsUnknown, say("Prometheus is asked for alerts")}, true
	}
	again := a.At.Add(alertsFor)
	if a.Failed != "" {
		p.wakeAt(again)
		return verdict{ReasonAlertsUnknown, say("nobody can tell which alerts stand, so nothing starts: {s}").with(a.Failed).over(again).aging()}, false
	}
	if names := set.keeping(a.Standing); len(names) > 0 {
		p.wakeAt(again)
		more := ""
		if len(names) > maxNames {
			names, more = names[:maxNames], " and others"
		}
		return verdict{ReasonAlertsFiring, say("alerts keep everything from starting: {s}{s2}").with(strings.Join(names, ", "), more).over(again).aging()}, false
	}
	return verdict{}, false
}

// keeping are the names of the alerts that count, each once.
func (a *Alerts) keeping(standing []fleet.Alert) []string {
	var names []string
	for _, s := range standing {
		ignored := s.Pending && a.FiringOnly || slices.ContainsFunc(a.Ignore, func(r *regexp.Regexp) bool { return r.MatchString(s.Name) })
		if !ignored && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

func (a *Alerts) validate(m *mistakes) {
	switch {
	case a.URL == "" && (a.Query != "" || len(a.Ignore) > 0 || a.FiringOnly):
		m.add("alerts.url", "is missing: give that of a Prometheus, such as http://prometheus.monitoring:9090")
	case a.URL != "" && !strings.HasPrefix(a.URL, "http://") && !strings.HasPrefix(a.URL, "https://"):
		m.add("alerts.url", "is %q: give one that begins with http:// or https://", a.URL)
	}
}
