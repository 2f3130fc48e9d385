package check

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// Wave is a group's question for a version: do the groups before it have it?
type Wave struct {
	Version string
	// Down: it is lower than what the asking node runs, so a node that runs more doesn't have it.
	Down bool
	// Soak is how long the nodes before must have had it.
	Soak time.Duration
	// Seen: it was known here before now, since then.
	Seen  bool
	Since time.Time
}

func (w *Wave) has(version string) bool {
	if marker.PlanOf(w.Version) != "" {
		return marker.PlanHas(version, w.Version) && (!w.Down || marker.PlanHas(w.Version, version))
	}
	c := marker.CompareVersions(version, w.Version)
	return c == 0 || c > 0 && !w.Down
}

// Lacks says what a node lacks to have had the version for the soak, and when the clock alone ends that. What a node
// runs is what its kubelet reports: what an agent says moves nothing but its own node.
func (w *Wave) Lacks(v *lifecycle.View, runs string) (plan.Lack, plan.Message, time.Time) {
	r := &v.Marks.Report
	switch {
	case runs != r.Current && r.Current != "" && w.has(r.Current) && !w.has(runs):
		return plan.LackVersion, plan.Messagef("of %s only the agent, not the kubelet, reports %s", v.Name, w.Version), time.Time{}
	case len(v.Problems) > 0 || !w.has(runs):
		return plan.LackVersion, plan.Messagef("%s does not run %s yet", v.Name, w.Version), time.Time{}
	case v.Disrupted() || v.Phase() == intent.PhaseResetting || !v.Ready:
		return plan.LackService, plan.Messagef("%s is not back in service with %s yet", v.Name, w.Version), time.Time{}
	}
	end := w.HasSince(v).Add(w.Soak)
	if !v.Now.Before(end) {
		return "", plan.Message{}, time.Time{}
	}
	return plan.LackTime, plan.Messagef("%s must run %s until %s", v.Name, w.Version, plan.Clock(end)), end
}

// HeldUp says why a node of a group that goes first holds the others up.
func (w *Wave) HeldUp(v *lifecycle.View, runs, group string) plan.Refusal {
	lack, message, end := w.Lacks(v, runs)
	if lack == "" {
		return plan.Refusal{}
	}
	held := plan.Refuse(plan.ReasonAfterGroup, plan.Messagef("waits for group %s: %s", group, message).Dated())
	if !end.IsZero() {
		held.Again, held.Message = end, held.Message.Until(end)
	}
	return held
}

// HasSince is since when a node has the version: by its history, and where that has nothing of it, as for one that
// joined with it, not before the node was there or the version was known here.
func (w *Wave) HasSince(v *lifecycle.View) time.Time {
	h := v.Marks.History
	for i := len(h) - 1; i >= 0; i-- {
		if a := &h[i]; a.Outcome == marker.OutcomeUpdated && w.has(a.Version) && !a.Ended.After(v.Now.Add(v.Settings.RetryMax)) {
			return a.Ended
		}
	}
	since := w.Since
	if !w.Seen || since.After(v.Now) {
		since = v.Now
	}
	if v.Created.After(since) && !v.Created.After(v.Now) {
		since = v.Created
	}
	return since
}

// NoNode says why a group that has no node holds the others up: it shows nothing of a version.
func NoNode(group string, members int, planned bool) plan.Refusal {
	switch {
	case members == 0:
		return plan.Refuse(plan.ReasonAfterGroup, plan.Messagef("waits for group %s: it has no node", group).Dated())
	case planned:
		return plan.Refuse(plan.ReasonAfterGroup, plan.Messagef("waits for group %s: plans update all of its nodes", group).Dated())
	}
	return plan.Refuse(plan.ReasonAfterGroup,
		plan.Messagef("waits for group %s: all of its nodes are leaving the cluster", group).Dated())
}
