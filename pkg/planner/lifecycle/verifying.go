package lifecycle

import (
	"fmt"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// verifying is the next step of a node that serves again and holds its slot until it was well for the whole soak.
func verifying(in *Input) Next {
	return first(in, recordon, fellBack, restartSoak, awaitSoak, awaitWitnesses, awaitPodsAgain, awaitWorkloads, finish)
}

// recordon cordons a node that became NotReady during its soak, under the same record.
func recordon(in *Input) Next {
	const message = "not Ready after its update; cordoned until it is"
	switch {
	case in.Ready:
		return Next{}
	case in.Marks.Disruption.Soak != nil:
		c := in.keep()
		d := c.Marks.Disruption
		d.Soak, d.Ready = nil, ""
		// What stands there now is what stood there before this cordon, whatever it was before the first one.
		d.WasUnschedulable = in.Unschedulable
		if in.cordons() {
			c.takeOut()
		}
		c.wait(plan.ReasonNotReadyAfterUpdate, message)
		return in.do(intent.ActRecordon, plan.ReasonNotReadyAfterUpdate, "not Ready after its update: cordoned again", c)
	}
	lost := in.lost()
	if lost.passed {
		return in.waitLost("is not Ready after its update")
	}
	next := in.wait(intent.PhaseVerifying, plan.ReasonNotReadyAfterUpdate, plan.Messagef(message))
	next.Again = plan.Earliest(in.Now, next.Again, lost.again)
	return next
}

// fellBack counts a failure of a host that went back to its old version during the soak.
func fellBack(in *Input) Next {
	m := &in.Marks
	if m.Intent.Target == "" || m.Report.Current == m.Intent.Target || in.OSVersion != m.Report.Current || in.BootID != m.Report.BootID {
		return Next{}
	}
	message := fmt.Sprintf("came back with %s during the soak", m.Report.Current)
	c := in.soakAgain()
	c.fail(plan.ReasonRolledBack, message, true)
	c.planUndone()
	c.Marks.Intent.Target = ""
	return in.do(intent.ActSoak, plan.ReasonRolledBack, message, c)
}

// restartSoak begins the soak of a node anew that was not Ready in between.
func restartSoak(in *Input) Next {
	d := in.Marks.Disruption
	if d.Soak != nil && d.Ready == in.ReadySince && !d.Soak.After(in.Now.Add(in.Settings.RetryMax)) {
		return Next{}
	}
	return in.do(intent.ActSoak, plan.ReasonSoakRestarted, "Ready again; the soak starts anew", in.soakAgain())
}

// soakAgain begins the soak anew and takes back the cordon that an unwell node was given.
func (v *View) soakAgain() *change {
	c := v.keep()
	c.Marks.Disruption.Ready, c.Marks.Disruption.Soak = v.ReadySince, v.moment()
	if v.Marks.Disruption.Soak == nil {
		c.uncordon()
	}
	c.wait(plan.ReasonSoaking, "Ready again; the soak runs")
	return c
}

func awaitSoak(in *Input) Next {
	end := in.soaked()
	if !in.Now.Before(end) {
		return Next{}
	}
	phase, lost := intent.PhaseVerifying, in.lost()
	if lost.passed {
		phase = intent.PhaseLost
	}
	next := in.wait(phase, plan.ReasonSoaking, plan.Messagef("%s; the soak of %s runs", in.back(), in.soakTime()).Until(end))
	next.Again = plan.Earliest(in.Now, next.Again, lost.again, end)
	return next
}

// awaitWitnesses lets a node wait whose agent and kubelet don't say the same of its boot.
func awaitWitnesses(in *Input) Next {
	if in.Marks.Report.BootID == in.BootID && in.OSVersion == in.Marks.Report.Current {
		return Next{}
	}
	lost := in.lost()
	if lost.passed {
		return in.waitLost("agent and kubelet do not agree on its boot")
	}
	next := in.wait(intent.PhaseVerifying, plan.ReasonReturning, plan.Text(in.returnAwaited()))
	next.Again = plan.Earliest(in.Now, next.Again, lost.again)
	return next
}

// finish ends the attempt and frees the slot.
func finish(in *Input) Next {
	target := in.Marks.Intent.Target
	c := in.keep()
	c.include()
	c.endProtection()
	c.Marks.Disruption, c.Marks.Waiting = nil, nil
	c.endTarget()
	r, message := plan.ReasonVerified, "Ready for the whole soak on the version that it ran before"
	switch {
	case target != "" && in.workloadsOverdue().passed:
		r, message = plan.ReasonWorkloadsNotReady, in.Checked.Problem+in.Checked.Failed
		// It is the version's doing if they were seen, and no other node could be where their pods are missing.
		c.fail(r, message, in.Checked.Failed == "" && !in.OthersOut)
		c.planDone(target)
	case target != "" && in.Marks.Cycles():
		r, message = plan.ReasonCycled, plan.Cycled(target)
		c.end(marker.OutcomeCycled, r)
	case target != "":
		r, message = plan.ReasonUpdated, "updated to "+target
		c.succeed(r)
		c.planDone(target)
	}
	return in.do(intent.ActFinish, r, message, c).freeing(true)
}
