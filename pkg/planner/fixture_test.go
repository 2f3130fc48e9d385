package planner_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const v1, v2, v3 = "1.1.0", "1.2.0", "1.3.0"

var now = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)

type change func(*fleet.Node)

// node is a labelled node, up to date and at rest, that has run v1 on boot b1.
func node(name string, changes ...change) fleet.Node {
	n := fleet.Node{
		Name: name, UID: "uid-" + name, ResourceVersion: "5", Interface: fleet.InterfaceUpdateAPI,
		Ready: true, ReadySince: "r1", BootID: "b1", OSVersion: v1, AgentPod: true, AgentReady: true, PassedOver: true,
		Forecast: &fleet.Forecast{At: now},
		Marks: marker.Marks{
			Intent: marker.Intent{ID: "i1", Action: marker.ActionStabilize, Time: now.Add(-time.Minute), Until: now.Add(time.Minute)},
			Report: marker.Report{ActiveID: "i1", State: marker.StateReady, Current: v1, BootID: "b1", Protocol: marker.Protocol},
		},
	}
	for _, c := range changes {
		c(&n)
	}
	return n
}

func offered(v string) change { return func(n *fleet.Node) { n.Marks.Report.Available = v } }

// because is the reason of an answer.
func because(r marker.ReportReason) change {
	return func(n *fleet.Node) { n.Marks.Report.Reason = r }
}

func answers(s marker.State, message string) change {
	return func(n *fleet.Node) {
		n.Marks.Report.ActiveID, n.Marks.Report.State, n.Marks.Report.Message = n.Marks.Intent.ID, s, message
	}
}

func unanswered(n *fleet.Node) { n.Marks.Report.ActiveID = "i0" }

func preparing(n *fleet.Node) {
	offered(v2)(n)
	n.Marks.Intent.Action, n.Marks.Intent.Target = marker.ActionPrepareUpdate, v2
	n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonStaging), Message: "x"}
	unanswered(n)
}

func prepared(n *fleet.Node) {
	preparing(n)
	answers(marker.StateReady, "")(n)
}

func draining(n *fleet.Node) {
	prepared(n)
	n.Unschedulable = true
	n.Marks.Intent.RebootFrom = "b1"
	n.Marks.Disruption = &marker.Disruption{Since: now.Add(-time.Minute)}
	n.Checked = &fleet.Checked{For: fleet.CheckBaseline, At: now}
	n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonDraining), Message: "x"}
}

func rebooting(n *fleet.Node) {
	draining(n)
	n.Marks.Intent.Action = marker.ActionRebootUpdate
	n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonRebooting), Message: "x"}
	unanswered(n)
}

func busy(n *fleet.Node) {
	rebooting(n)
	answers(marker.StateBusy, "")(n)
}

// back is a host that came back with v, by both witnesses, after v2 was activated.
func back(v string) change {
	return func(n *fleet.Node) {
		rebooting(n)
		n.Marks.Report.ActivatedID = n.Marks.Intent.ID
		n.BootID, n.Marks.Report.BootID = "b2", "b2"
		n.OSVersion, n.Marks.Report.Current = v, v
		if v == v2 {
			answers(marker.StateReady, "")(n)
			n.Marks.Report.Available = ""
		} else {
			answers(marker.StateError, "rolled back")(n)
		}
	}
}

// powerLost is a host that came back with what it ran before v2 was activated.
func powerLost(n *fleet.Node) {
	back(v1)(n)
	n.Marks.Report.ActivatedID = ""
	answers(marker.StateError, "the host was rebooted before "+v2+" was activated")(n)
}

// verifying is back on v2, uncordoned, its soak begun some time ago.
func verifying(ago time.Duration) change {
	return func(n *fleet.Node) {
		back(v2)(n)
		n.Unschedulable = false
		n.Marks.Intent.Action = marker.ActionStabilize
		at := now.Add(-ago)
		n.Marks.Disruption.Soak, n.Marks.Disruption.Returned, n.Marks.Disruption.Ready = &at, &at, "r1"
		n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonSoaking), Message: "x"}
	}
}

func resetting(n *fleet.Node) {
	offered(v2)(n)
	n.Marks.Intent.Action = marker.ActionResetState
	n.Marks.Waiting = &marker.Waiting{Reason: string(plan.ReasonResetting), Message: "x"}
	unanswered(n)
}

// lost is a node that is long past its reboot's deadline.
func lost(n *fleet.Node) {
	busy(n)
	n.Marks.Intent.Time = now.Add(-time.Hour)
	n.Marks.Waiting.Reason = string(plan.ReasonLost)
	n.Ready = false
}

func unlabelled(n *fleet.Node) { n.Interface = fleet.InterfaceNone }
func cordoned(n *fleet.Node)   { n.Unschedulable = true }
func schedulable(n *fleet.Node) {
	n.Unschedulable = false
}
func paused(n *fleet.Node)    { n.Marks.Paused, n.Marks.PausedReason = true, "" }
func notReady(n *fleet.Node)  { n.Ready = false }
func agentAway(n *fleet.Node) { n.AgentReady = false }

// agentLost is a node whose agent has been away for so long.
func agentLost(ago time.Duration) change {
	return func(n *fleet.Node) { n.AgentReady, n.AgentLostSince = false, now.Add(-ago) }
}

func firstLook(n *fleet.Node)   { n.PassedOver = false }
func controller(n *fleet.Node)  { n.ControllerHere = true }
func wasCordoned(n *fleet.Node) { n.Marks.Disruption.WasUnschedulable = true }

// confirming is a staged node whose agent was asked whether that stands.
func confirming(n *fleet.Node) {
	prepared(n)
	n.Marks.Intent.Action, n.Marks.Report.State = marker.ActionConfirmUpdate, marker.StateNone
	n.Marks.Report.ActiveID = ""
}

func issued(ago time.Duration) change {
	return func(n *fleet.Node) { n.Marks.Intent.Time = now.Add(-ago) }
}

func cordonedSince(ago time.Duration) change {
	return func(n *fleet.Node) { n.Marks.Disruption.Since = now.Add(-ago) }
}

// drain is an eviction pass, after which no volume is left attached.
func drain(d fleet.Drain) change {
	return func(n *fleet.Node) { n.Drain, n.Checked = &d, &fleet.Checked{For: fleet.CheckVolumes, At: now} }
}

func failedOnce(retryAfter time.Duration, versions ...string) change {
	return func(n *fleet.Node) {
		n.Marks.Failure = &marker.Failure{Versions: versions, Broken: versions, Count: 1, Reason: "X", Message: "y", At: now, RetryAfter: now.Add(retryAfter)}
	}
}

func with(f change) change { return f }

// fleetOf is a snapshot of these nodes; held name those that hold a slot, beside none that a node shows.
func fleetOf(nodes []fleet.Node, held ...string) fleet.Snapshot {
	slices.SortFunc(nodes, func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	s := fleet.Snapshot{Now: now, Nodes: nodes, Slots: map[string]string{}}
	for _, name := range held {
		s.Slots["uid-"+name] = name
	}
	return s
}

func find(t *testing.T, out plan.Plan, name string) (plan.Decision, *plan.Step) {
	t.Helper()
	at := slices.IndexFunc(out.Nodes, func(s plan.Decision) bool { return s.Node == name })
	assert.Assert(t, at >= 0, "%s is not in the plan", name)
	for i := range out.Steps {
		if out.Steps[i].Node == name {
			return out.Nodes[at], &out.Steps[i]
		}
	}
	return out.Nodes[at], nil
}

// verdict says in short what a plan holds for a node.
func verdict(s plan.Decision) string {
	act := string(s.Act)
	if act == "" || act == string(intent.ActNote) {
		act = "wait"
	}
	return string(s.Phase) + " " + act + " " + string(s.Reason)
}
