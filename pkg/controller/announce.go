package controller

import (
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// announcePolicy writes an Event, once, about a policy that can't be read, warnings, and versions that are stopped.
func (t *Term) announcePolicy(s fleet.Snapshot, out plan.Plan) {
	if s.PolicyProblem != t.problem && s.PolicyProblem != "" {
		t.c.Events.Notice(true, string(plan.ReasonPolicyUnreadable), s.PolicyProblem)
	}
	t.problem = s.PolicyProblem
	if a := s.Alerts; a != nil {
		if a.Failed != "" && !t.unknown {
			t.c.Events.Notice(true, string(plan.ReasonAlertsUnknown), a.Failed)
		}
		t.unknown = a.Failed != ""
	}
	if s.AdmissionProblem != "" && !t.notRestricted {
		t.c.Events.Notice(true, reasonAdmissionPolicyMissing, s.AdmissionProblem)
	}
	t.notRestricted = s.AdmissionProblem != ""
	for _, w := range out.Warnings {
		if !slices.ContainsFunc(t.warnings, func(before plan.Warning) bool { return before.Of == w.Of }) {
			t.c.Events.Notice(true, reasonPolicyDoubtful, w.String())
		}
	}
	t.warnings = out.Warnings
	stopped := make(map[string]bool, len(out.Stopped))
	for _, v := range out.Stopped {
		stopped[v.Version] = true
		if !t.stopped[v.Version] {
			t.c.Events.Notice(true, string(plan.ReasonVersionStopped), v.Message.String())
		}
	}
	t.stopped = stopped
}

// reasonPolicyDoubtful is of an Event alone: the policy allows what may not have been meant.
const reasonPolicyDoubtful = "PolicyDoubtful"

// reasonAdmissionPolicyMissing is of an Event alone: no admission policy restricts the controller's account.
const reasonAdmissionPolicyMissing = "AdmissionPolicyMissing"

// announced is the last Event about what a node waits for: the reason, since when it holds, and if it was a warning.
type announced struct {
	reason plan.Reason
	since  time.Time
	warned bool
}

// warnAfter is how long a reason that often passes by itself holds before a warning is written.
const warnAfter = 5 * time.Minute

// announceWaits writes an Event, once, about a troubling reason that no step has an Event of, and a warning if it
// lasts.
func (t *Term) announceWaits(out plan.Plan, now time.Time) {
	next := make(map[string]announced, len(t.announced))
	for _, n := range out.Nodes {
		before, known := t.announced[n.UID]
		if known && (n.Reason.Passing() || n.Act != "" && t.troubled(n.UID)) {
			// The reason may be over now, or found again. That goes for a write that is tried again, too.
			next[n.UID] = before
			continue
		}
		if !n.Reason.Troubling() {
			continue
		}
		same := known && before.reason == n.Reason
		if !same {
			before = announced{n.Reason, now, !n.Reason.Patient()}
		}
		switch {
		case n.Act == intent.ActNote || n.Act != "" && same:
			// A note has an Event of its own; an eviction pass is no news.
		case n.Act != "":
			continue
		case !same:
			t.c.Events.Event(n.Node, n.UID, before.warned, string(n.Reason), n.Message.String())
		}
		if !before.warned && now.Sub(before.since) >= warnAfter {
			before.warned = true
			t.c.Events.Event(n.Node, n.UID, true, string(n.Reason), n.Message.String())
		}
		next[n.UID] = before
	}
	t.announced = next
}

// announceFor is for how long after a step a process that finds it on a Node, and didn't take it, writes its Event.
const announceFor = 10 * time.Minute

// announceSteps writes the Events of steps that Nodes show and that this process has not announced: the one that took
// them died, or the answer to its write was lost.
func (t *Term) announceSteps(s fleet.Snapshot) {
	lately := func(at time.Time) bool { return s.Now.Sub(at).Abs() <= announceFor }
	for i := range s.Nodes {
		n := &s.Nodes[i]
		last, ok := plan.LastShown(&n.Marks)
		if !ok || !lately(last.At) || len(n.Problems) > 0 {
			continue
		}
		id := n.UID + " " + last.ID()
		if _, known := t.shown[id]; !known {
			t.shown[id] = last.At
			t.c.Events.Once(id, n.Name, n.UID, alarms(last.Reason), string(last.Reason), last.Message())
		}
	}
	maps.DeleteFunc(t.shown, func(_ string, at time.Time) bool { return !lately(at) })
}

// announceStep writes the Event of a step that was carried out.
func (t *Term) announceStep(step plan.Step) {
	if last, ok := step.Shown(); ok {
		id := step.UID + " " + last.ID()
		t.shown[id] = last.At
		t.c.Events.Once(id, step.Node, step.UID, alarms(step.Reason), string(step.Reason), step.Message)
		return
	}
	if step.Act != intent.ActNote || step.Reason.Troubling() {
		t.c.Events.Event(step.Node, step.UID, alarms(step.Reason), string(step.Reason), step.Message)
	}
}

// alarms reports whether the Event of a step with this reason is a warning.
func alarms(r plan.Reason) bool { return r.Troubling() && !r.Patient() }
