package controller

import (
	"context"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// askAlerts begins to ask which alerts stand, unless somebody is asked already. The answer asks for another pass of the
// term.
func (t *Term) askAlerts(ctx context.Context) {
	set := t.c.Policies.Current().Settings.Alerts
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asking || t.c.Alerts == nil {
		return
	}
	t.asking = true
	t.c.Spawn(func() {
		found := &fleet.Alerts{URL: set.URL, Query: set.Query}
		var err error
		if found.Standing, err = t.c.Alerts.Ask(ctx, set.URL, set.Query); err != nil {
			found.Failed = err.Error()
		}
		found.At = t.c.Now()
		t.mu.Lock()
		t.alerts, t.asking = found, false
		t.mu.Unlock()
		t.Changed()
	})
}
