package planner

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

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
		return verdict{plan.ReasonAlertsUnknown, plan.Say("Prometheus is asked for alerts")}, true
	}
	again := a.At.Add(alertsFor)
	if a.Failed != "" {
		p.wakeAt(again)
		return verdict{plan.ReasonAlertsUnknown, plan.Say("nobody can tell which alerts stand, so nothing starts: {s}").With(a.Failed).Over(again).Aging()}, false
	}
	if names := keeping(set, a.Standing); len(names) > 0 {
		p.wakeAt(again)
		more := ""
		if len(names) > maxNames {
			names, more = names[:maxNames], " and others"
		}
		return verdict{plan.ReasonAlertsFiring, plan.Say("alerts keep everything from starting: {s}{s2}").With(strings.Join(names, ", "), more).Over(again).Aging()}, false
	}
	return verdict{}, false
}

// keeping are the names of the alerts that count, each once.
func keeping(a *policy.Alerts, standing []fleet.Alert) []string {
	var names []string
	for _, s := range standing {
		ignored := s.Pending && a.FiringOnly || slices.ContainsFunc(a.Ignore, func(r *regexp.Regexp) bool { return r.MatchString(s.Name) })
		if !ignored && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}
