package planner

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// maxFailedVersions bounds what a failure remembers.
const maxFailedVersions = 10

// newID is unique for each intent: a patch that carries it is only accepted on the resourceVersion
// that it names, and the time keeps it apart after an etcd restore.
func newID(n *fleet.Node, now time.Time) string {
	return n.ResourceVersion + "-" + strconv.FormatInt(now.UnixMilli(), 36)
}

// change is one that is being made.
type change struct{ plan.Change }

// begin returns a change that issues a new intent.
func begin(n *fleet.Node, now time.Time, a marker.Action, until time.Duration, waiting plan.Reason, message string) *change {
	c := keep(n)
	i := &c.Marks.Intent
	i.ID, i.Action = newID(n, now), a
	i.Time = now.Truncate(time.Second)
	i.Until = i.Time.Add(until)
	c.Marks.Waiting = &marker.Waiting{Reason: string(waiting), Message: message}
	return c
}

// keep returns a change that changes nothing yet. What it points to is copied, so that nothing done
// to it shows in the snapshot.
func keep(n *fleet.Node) *change {
	c := &change{plan.Change{ResourceVersion: n.ResourceVersion, Marks: n.Marks}}
	if d := n.Marks.Disruption; d != nil {
		copied := *d
		copied.Before, copied.Workloads = maps.Clone(d.Before), maps.Clone(d.Workloads)
		c.Marks.Disruption = &copied
	}
	if f := n.Marks.Failure; f != nil {
		copied := *f
		copied.Versions, copied.Broken = slices.Clone(f.Versions), slices.Clone(f.Broken)
		c.Marks.Failure = &copied
	}
	c.Marks.History = slices.Clone(n.Marks.History)
	return c
}

// stabilize ends an attempt that changed nothing, or begins the first intent.
func stabilize(n *fleet.Node, now time.Time, s policy.Settings) *change {
	c := begin(n, now, marker.ActionStabilize, s.Deadlines.Prepare, "", "")
	c.Marks.Intent.Target, c.Marks.Intent.RebootFrom = "", ""
	c.Marks.Waiting = nil
	return c
}

// uncordon takes our own cordon back and leaves everybody else's. While the soak runs ours is taken
// back already, so one that stands then is somebody else's. Load balancers may have the node back too.
func (c *change) uncordon(n *fleet.Node) {
	c.include(n)
	if d := n.Marks.Disruption; d != nil && !d.WasUnschedulable && d.Soak == nil && n.Unschedulable {
		c.Unschedulable = new(false)
	}
}

// fail counts a failure of this attempt against the node.
func (c *change) fail(version string, r plan.Reason, message string, now time.Time, s policy.Settings) {
	f := c.Marks.Failure
	if f == nil {
		f = &marker.Failure{}
		c.Marks.Failure = f
	}
	f.Count++
	f.Reason, f.Message = string(r), marker.Clip(message, marker.MaxMessage)
	f.At = now.Truncate(time.Second)
	f.RetryAfter = f.At.Add(s.BackOff(f.Count))
	f.Versions = remembered(f.Versions, version)
	if blamesVersion(r) {
		c.blame(version)
	}
}

// blame holds a failure that was counted against the version, for which nothing starts when too many nodes do.
func (c *change) blame(version string) {
	c.Marks.Failure.Broken = remembered(c.Marks.Failure.Broken, version)
}

// succeed ends a node's failures. What other versions are to blame for stays: nodes that are offered no better one yet
// must not be led into it.
func (c *change) succeed(version string) {
	f := c.Marks.Failure
	if f == nil {
		return
	}
	f.Broken = slices.DeleteFunc(f.Broken, func(v string) bool { return v == version })
	if len(f.Broken) == 0 {
		c.Marks.Failure = nil
		return
	}
	f.Versions, f.Count, f.RetryAfter, f.Message = slices.Clone(f.Broken), 0, f.At, ""
}

func remembered(versions []string, version string) []string {
	if version == "" || slices.Contains(versions, version) {
		return versions
	}
	versions = append(versions, version)
	return versions[max(0, len(versions)-maxFailedVersions):]
}

// remember adds the end of an attempt to the node's history.
func (c *change) remember(n *fleet.Node, o marker.Outcome, r plan.Reason, now time.Time) {
	a := marker.Attempt{Version: n.Marks.Intent.Target, Outcome: o, Reason: string(r),
		Started: n.Marks.Intent.Time, Ended: now.Truncate(time.Second)}
	if d := n.Marks.Disruption; d != nil {
		a.Started = d.Since
	}
	c.Marks.History = append(c.Marks.History, a)
	c.Marks.History = c.Marks.History[max(0, len(c.Marks.History)-marker.HistoryLength):]
}

// retry forgets a node's failure, and lets its attempts so far hold up none, by the user's wish.
func (c *change) retry() {
	c.Marks.Failure, c.DropRetry = nil, true
	for i := len(c.Marks.History) - 1; i >= 0; i-- {
		if a := &c.Marks.History[i]; a.Outcome != marker.OutcomeUpdated {
			a.Retried = true
			return
		}
	}
}

const resettingMessage = "the agent undoes what is activated"

// giveBack undoes what we did to the node and asks for a reset.
func giveBack(n *fleet.Node, now time.Time, s policy.Settings, r plan.Reason, message string, counted bool) *change {
	c := begin(n, now, marker.ActionResetState, s.Deadlines.Prepare, plan.ReasonResetting, resettingMessage)
	if counted {
		c.fail(n.Marks.Intent.Target, r, message, now, s)
		c.remember(n, marker.OutcomeFailed, r, now)
	} else {
		c.remember(n, marker.OutcomeGivenBack, r, now)
	}
	c.uncordon(n)
	c.unprotect(n)
	c.unhook()
	c.Marks.Intent.Target, c.Marks.Intent.RebootFrom = "", ""
	c.Marks.Disruption = nil
	return c
}

// leave removes all that is ours.
func leave(n *fleet.Node) *change {
	c := keep(n)
	c.uncordon(n)
	c.unprotect(n)
	c.Marks = marker.Marks{}
	c.RemoveAll = true
	return c
}
