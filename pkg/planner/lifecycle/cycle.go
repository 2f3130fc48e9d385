package lifecycle

import (
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// A cycle is an attempt whose target is the version that the node runs: the same way, without anything to stage or to
// activate. A user asks for it by an annotation, which ends with the attempt. Where the node is offered a version, the
// request is for the update to that.

// wantsCycle reports whether the node's next attempt is a cycle.
func (v *View) wantsCycle() bool {
	m := &v.Marks
	return m.Cycle != "" && v.Wish == nil && m.Intent.Target == "" && m.Disruption == nil && m.Report.Current != "" && !v.offered()
}

// Cycles reports whether the node's attempt, or its next one, brings no version. What holds for versions, the order of
// groups among it, then says nothing.
func (v *View) Cycles() bool { return v.Marks.Cycles() || v.wantsCycle() }

// Goal is the version that the node's next attempt is about.
func (v *View) Goal() string {
	if v.wantsCycle() {
		return v.Marks.Report.Current
	}
	return v.Marks.Report.Available
}

// wants begins the sentence on why a node's next attempt does not begin.
func (v *View) wants() string {
	if v.wantsCycle() {
		return "a cycle is asked for; "
	}
	return v.Marks.Report.Available + " is available; "
}

// request is the id of the user's request that the attempt which stands is for; empty if there is none.
func (v *View) request() string {
	if d := v.Marks.Disruption; d != nil && d.Cycle != "" {
		return d.Cycle
	}
	return v.Marks.Cycle
}

func asksForCycle(version string) string {
	return "the agent is asked whether it runs " + version + ", for a cycle"
}

// cycleUnknown is why no cycle begins whose agent would take it for an update that is gone.
func cycleUnknown(v *View) plan.Refusal {
	if !v.Cycles() || v.Marks.Report.Protocol >= marker.CycleProtocol {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonAgentNotReady, plan.Messagef("its agent is older than this controller and knows no cycles: update the agents"))
}

// requestWithdrawn abandons a cycle whose request the user took back.
func requestWithdrawn(in *Input) Next {
	if d := in.Marks.Disruption; d.Cycle == "" || d.Cycle == in.Marks.Cycle {
		return Next{}
	}
	return in.abandon(plan.ReasonRequestWithdrawn, "the user took the request for the cycle back", marker.OutcomeAbandoned)
}

// noCycleOfPlans refuses a request for a node that plans update and for which none has anything to do.
func noCycleOfPlans(in *Input) Next {
	if in.Marks.Cycle == "" || in.Wish == nil {
		return Next{}
	}
	if none := &in.Wish.NoTarget; none.Reason != plan.ReasonNoPlan && (none.Refuses() || in.offered()) {
		return Next{}
	}
	return in.dismiss("plans update the node, and none has anything to do on it: there is no cycle without a target")
}

// dismiss removes a request for which there is nothing to do.
func (v *View) dismiss(why string) Next {
	c := v.keep()
	c.DropCycle = true
	return v.do(intent.ActDismiss, plan.ReasonCycleRefused, why, c)
}
