package check

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

// maxAlerts is how many alerts a message names.
const maxAlerts = 3

// Alerts says which alerts keep everything from starting. It asks for them if they were not asked for in a while: not
// to know is to start nothing.
func Alerts(set *policy.Alerts, a *fleet.Alerts, now time.Time) plan.Refusal {
	if set.URL == "" {
		return plan.Refusal{}
	}
	if a == nil || a.URL != set.URL || a.Query != set.Query || now.Before(a.At) || !now.Before(a.At.Add(alertsFor)) {
		return plan.Refusal{Reason: plan.ReasonAlertsUnknown, Message: plan.Messagef("Prometheus is being asked which alerts fire"), Asks: true}
	}
	again := a.At.Add(alertsFor)
	if a.Failed != "" {
		return plan.Refusal{Reason: plan.ReasonAlertsUnknown, Again: again,
			Message: plan.Messagef("which alerts fire is not known, so nothing starts: %s", a.Failed).Dated().Until(again)}
	}
	names := keeping(set, a.Active)
	if len(names) == 0 {
		return plan.Refusal{}
	}
	more := ""
	if len(names) > maxAlerts {
		names, more = names[:maxAlerts], " and others"
	}
	return plan.Refusal{Reason: plan.ReasonAlertsFiring, Again: again,
		Message: plan.Messagef("alerts are firing: %s%s", strings.Join(names, ", "), more).Dated().Until(again)}
}

// keeping are the names of the alerts that count, each once.
func keeping(set *policy.Alerts, standing []fleet.Alert) []string {
	var names []string
	for _, s := range standing {
		ignored := s.Pending && set.FiringOnly || slices.ContainsFunc(set.Ignore, func(r *regexp.Regexp) bool { return r.MatchString(s.Name) })
		if !ignored && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}
