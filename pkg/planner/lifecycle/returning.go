package lifecycle

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// returning is the next step of a node whose agent answered after the reboot. The kubelet is the second witness.
func returning(in *Input) Next {
	m := &in.Marks
	failed := in.answer() == marker.StateError
	switch {
	case failed && in.untouched():
		switch {
		case m.Plan == nil:
			return in.abandon(plan.ReasonRebootFailed, m.Report.Message, marker.OutcomeFailed)
		case in.withdrawn():
			// The runner, which looks live, may have refused for that very reason.
			return in.abandon(plan.ReasonOfferWithdrawn, withdrawn(m), marker.OutcomeAbandoned)
		}
		return in.abandon(plan.ReasonPodRefused, m.Report.Message, marker.OutcomeFailed)
	case in.confirmed() && in.Ready && (failed || m.Report.Current == m.Intent.Target):
		return first(in, awaitBack, awaitUncordonHooks, uncordon)
	}
	return first(in, lostInReboot, awaitReturn)
}

// awaitBack lets a node wait for what must be seen of it: that its plan's pod brought its content, and that the pods
// that the policy wants are Ready on it. It is one look, since only the last one is remembered.
func awaitBack(in *Input) Next {
	look := in.applied()
	switch {
	case len(in.Rules.Verify.Pods) > 0:
		return in.awaitPodsOnNode(look, time.Time{})
	case look.Digest == "":
		return Next{}
	case in.unapplied() && in.lost().passed:
		return in.lostUnseen(look)
	}
	_, next := in.check(look, time.Time{}, plan.ReasonReturning)
	return next
}

// uncordon lets the node serve again, asks for fresh facts and begins the soak, in one patch.
func uncordon(in *Input) Next {
	target := in.Marks.Intent.Target
	c := in.begin(marker.ActionStabilize, in.Settings.Deadlines.Staging, plan.ReasonSoaking, in.back()+"; the soak runs")
	c.uncordon()
	c.endHooks()
	d := c.Marks.Disruption
	d.Ready, d.Soak, d.Returned = in.ReadySince, in.moment(), in.moment()
	if in.answer() != marker.StateError {
		return in.do(intent.ActReturn, plan.ReasonUncordoned, in.back()+" with "+target, c)
	}
	r, blamed := in.cameBack()
	message := in.Marks.Report.Message
	c.fail(r, message, blamed)
	c.planUndone()
	c.Marks.Intent.Target = ""
	return in.do(intent.ActReturn, r, message, c)
}

// cameBack is why a node came back from a reboot with an error, and whether its target is to blame: it was rolled back
// if that had been activated. Else it lost its power, or was rebooted by hand, before that, which says nothing about
// the version (S10). Nor does an error of an agent whose kubelet runs the target.
func (v *View) cameBack() (r plan.Reason, blamed bool) {
	switch m := &v.Marks; {
	case v.OSVersion == m.Intent.Target || m.Cycles():
		return plan.ReasonHostError, false
	case m.Plan != nil:
		return v.planFailed()
	case m.Report.ActivatedID != m.Intent.ID:
		return plan.ReasonRebootedEarly, false
	}
	return plan.ReasonRolledBack, true
}

func awaitReturn(in *Input) Next {
	return in.wait(intent.PhaseReturning, plan.ReasonReturning, plan.Text(in.returnAwaited()))
}

// returnAwaited is what is not seen yet of a node that returns.
func (v *View) returnAwaited() string {
	m := &v.Marks
	switch {
	case v.mustReboot() && v.BootID == m.Intent.RebootFrom || v.BootID == "":
		return "the kubelet has not reported the new boot yet"
	case v.BootID != m.Report.BootID:
		return "agent and kubelet do not name the same boot yet"
	case v.OSVersion != m.Report.Current:
		return fmt.Sprintf("the kubelet reports version %q, the agent %q", v.OSVersion, m.Report.Current)
	case v.Ready:
		return fmt.Sprintf("the agent calls %s an update to %s", m.Report.Current, m.Intent.Target)
	}
	return "the kubelet says that the node is not Ready yet"
}
