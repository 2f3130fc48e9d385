package controller

import (
	"context"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const (
	// lookSoon is the pause after a look ahead that found something in the way, doubled by each further one up to
	// lookLate.
	lookSoon = 5 * time.Second
	lookLate = 5 * time.Minute
	// checkSoon is the pause after a check that didn't find all well, doubled by each further one up to checkLate.
	checkSoon = time.Second
	checkLate = 10 * time.Second
)

// look begins a look at what stands in the way of a node's drain.
func (t *Term) look(ctx context.Context, step plan.Step) {
	begin(t, t.looks, step.UID, time.Time{}, func() func(*work[fleet.Forecast]) {
		// It is of this moment, however long the process is held up in the middle of it.
		found := &fleet.Forecast{At: t.c.Now()}
		var err error
		found.Obstacle, found.Message, err = t.c.Drainer.Forecast(ctx, step.Node, *step.Eviction)
		if err == nil && found.Obstacle == fleet.ObstacleNone && step.Check != nil {
			var checked fleet.Checked
			checked, err = t.c.Cluster.Check(ctx, step.Node, *step.Check)
			found.Workloads = checked.Workloads
		}
		if err != nil {
			found.Obstacle, found.Message = fleet.ObstacleUnknown, err.Error()
		}
		return func(l *work[fleet.Forecast]) {
			if l.backOff(lookSoon, lookLate); found.Obstacle == fleet.ObstacleNone {
				l.pause = 0
			}
			found.Next = t.c.Now().Add(l.pause)
			l.found = found
		}
	})
}

// check begins a live look at what a node carries.
func (t *Term) check(ctx context.Context, s fleet.Snapshot, step plan.Step) {
	begin(t, t.checks, step.UID, disruptedSince(s, step), func() func(*work[fleet.Checked]) {
		found, err := t.c.Cluster.Check(ctx, step.Node, *step.Check)
		if err != nil {
			found.Failed = err.Error()
		}
		found.For = step.Check.For
		return func(c *work[fleet.Checked]) {
			if c.found == nil || c.found.For != found.For {
				c.pause = 0
			}
			c.backOff(checkSoon, checkLate)
			found.At = t.c.Now()
			found.Next = found.At.Add(c.pause)
			c.found = &found
		}
	})
}

// askAlerts begins to ask which alerts stand.
func (t *Term) askAlerts(ctx context.Context) {
	if t.c.Alerts == nil {
		return
	}
	set := t.c.Policies.Current().Settings.Alerts
	begin(t, t.alerts, wholeFleet, time.Time{}, func() func(*work[fleet.Alerts]) {
		found := &fleet.Alerts{URL: set.URL, Query: set.Query}
		var err error
		if found.Active, err = t.c.Alerts.Ask(ctx, set.URL, set.Query); err != nil {
			found.Failed = err.Error()
		}
		found.At = t.c.Now()
		return func(a *work[fleet.Alerts]) { a.found = found }
	})
}
