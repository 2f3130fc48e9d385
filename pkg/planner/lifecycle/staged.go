package lifecycle

import (
	"maps"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// staged is the next step of a staged node.
func staged(in *Input) Next { return first(in, pinChanged, unstage, stagedRefused, wantDisruption) }

// unstage ends an attempt that has nothing to go to.
func unstage(in *Input) Next {
	m := &in.Marks
	r, message := plan.ReasonOfferWithdrawn, withdrawn(m)
	switch m.Intent.Target {
	case m.Report.Current:
		switch {
		case m.Cycles() && !in.offered():
			return Next{}
		case m.Cycles():
			return in.do(intent.ActStabilize, plan.ReasonUpdateAvailable, m.Report.Available+" is offered by now: the node goes there instead",
				in.stabilize()).freeing(in.Slot)
		}
		r, message = plan.ReasonAlreadyOnTarget, "the node already runs "+m.Intent.Target
	case m.Report.Available:
		return Next{}
	}
	c := in.stabilize()
	c.end(marker.OutcomeAbandoned, r)
	return in.do(intent.ActStabilize, r, message, c).freeing(in.Slot)
}

// stagedRefused asks all that keeps a staged node by itself in service.
func stagedRefused(in *Input) Next {
	r := plan.FirstRefusal(in.Now, &in.View, paused, agentAbsent, notReady, bootUnconfirmed, leavingCluster, unproven, (*View).tired, cycleUnknown)
	if !r.Refuses() {
		return none(r.Again)
	}
	return in.hold(r)
}

func bootUnconfirmed(v *View) plan.Refusal {
	if v.BootID != "" && v.BootID == v.Marks.Report.BootID {
		return plan.Refusal{}
	}
	return plan.Refuse(plan.ReasonBootUnconfirmed, plan.Messagef("agent and kubelet do not name the same boot yet"))
}

func wantDisruption(*Input) Next { return Next{Phase: intent.PhaseStaged, Want: WantDisruption} }

// disrupt takes a staged node out of service. Before that its pods are looked at, and its agent asked once more, unless
// either was done a short while ago.
func (v *View) disrupt() Next {
	switch {
	case v.looksAhead() && (v.Forecast == nil || !v.foreseen()):
		return v.look()
	case !v.Slot && v.doubtful():
		return v.confirm()
	}
	return v.cordon()
}

// look has the node's pods and their budgets looked at. The node has its place in this plan: as many are looked at, at
// once, as could go. But nothing is taken yet.
func (v *View) look() Next {
	next := v.do(intent.ActLook, plan.ReasonLooking, "its pods and their budgets are looked at before the cordon", nil)
	if next.Step != nil {
		next.Step.Eviction = &v.Rules.Eviction
		if v.Rules.Verify.OnWorkloads == policy.FailOnWorkloads {
			next.Step.Check = &plan.LiveCheck{For: fleet.CheckBaseline}
		}
	}
	return next
}

const (
	// confirmAfter is how long after it was asked to stage a node is asked, before its cordon, whether its repository
	// still answers: an activation needs that too, and fails on a drained node if it doesn't.
	confirmAfter = 10 * time.Minute
	// confirmFor is how long an agent may take to answer that, and how long after the question the answer is good. It is
	// longer than an agent's patience with a locked host, so that an answer is never too old as it comes.
	confirmFor = intent.BusyPatience + 5*time.Minute
	// placeFor is how long others leave a node its place while it is asked. An agent that has an answer has it sooner, and
	// one that keeps silent keeps no other waiting.
	placeFor = 2 * time.Minute
	// confirmProtocol is the first protocol that knows the question.
	confirmProtocol = 2
)

// doubtful reports whether a staged node has waited for long since its agent last heard from the repository.
func (v *View) doubtful() bool {
	after := confirmAfter
	if v.Marks.Intent.Action == marker.ActionConfirmUpdate {
		after = confirmFor
	}
	// What a plan prepares is asked of no repository, and a cycle needs none.
	return v.Marks.Plan == nil && !v.Marks.Cycles() && v.Marks.Report.Protocol >= confirmProtocol && v.Now.Sub(v.Marks.Intent.Time) > after
}

// JustAsked reports whether a node that is asked to confirm what is staged may keep its place, and until when.
func (v *View) JustAsked() (bool, time.Time) {
	end := v.Marks.Intent.Time.Add(placeFor)
	return v.Now.Before(end) && !v.Marks.Intent.Time.After(v.Now), end
}

// confirm asks the agent of a staged node to look once more.
func (v *View) confirm() Next {
	message := confirming(v.Marks.Intent.Target).String()
	return v.do(intent.ActConfirm, plan.ReasonConfirming, message, v.begin(marker.ActionConfirmUpdate, confirmFor, plan.ReasonConfirming, message))
}

func confirming(target string) plan.Message {
	return plan.Messagef("the agent asks the repository once more for %s before the node is taken out of service", target)
}

const inPlaceMessage = "the only node of the cluster reboots with its workloads in place"

// cordon takes the node out of service. Slot and cordon are taken in this order.
func (v *View) cordon() Next {
	c := v.keep()
	c.cordon(v.workloadsSeen())
	c.wait(plan.ReasonDraining, "the node's pods are being evicted")
	if v.LeftInPlace() {
		c.wait(v.inPlace())
	}
	next := v.do(intent.ActCordon, plan.ReasonCordoned, plan.TakenOut(v.Marks.Intent.Target, v.Marks.Cycles()), c)
	if next.Step != nil {
		next.Step.TakesSlot = true
	}
	return next
}

// workloadsSeen are those that a look before the cordon found, if the policy wants to know; empty if there was none.
func (v *View) workloadsSeen() map[string]int {
	if v.Forecast == nil || v.Rules.Verify.OnWorkloads != policy.FailOnWorkloads || !v.looksAhead() || len(v.Forecast.Workloads) == 0 {
		return nil
	}
	return maps.Clone(v.Forecast.Workloads)
}

// freshFor is how long a look that found nothing in the way of a drain is good for.
const freshFor = 30 * time.Second

// looksAhead reports whether what stands in the way of a drain matters: by force everything can be drained, and what is
// left in place isn't.
func (v *View) looksAhead() bool {
	e := &v.Rules.Eviction
	return e.Predict && !e.Force && !v.LeftInPlace()
}

// foreseen reports whether what the last look found still counts. A time ahead is of a clock that was put right since.
func (v *View) foreseen() bool {
	f := v.Forecast
	end := f.At.Add(freshFor)
	if f.Obstacle != fleet.ObstacleNone {
		end = f.Next
	}
	return !v.Now.Before(f.At) && v.Now.Before(end)
}

// obstacles are the reasons for which a node waits before its cordon, by what stands in the way.
var obstacles = map[fleet.Obstacle]plan.Reason{
	fleet.ObstacleBudget:    plan.ReasonBudgetBlocks,
	fleet.ObstacleAwaited:   plan.ReasonPodEndAwaited,
	fleet.ObstacleProtected: plan.ReasonPodProtected,
	fleet.ObstacleUnknown:   plan.ReasonDrainFailing,
}

// Obstacle is what the last look found in the way of the node's drain, however long ago that was.
func (v *View) Obstacle() plan.Refusal {
	f := v.Forecast
	if f == nil || f.Obstacle == fleet.ObstacleNone || !v.looksAhead() {
		return plan.Refusal{}
	}
	return plan.Refuse(obstacles[f.Obstacle], plan.Text(f.Message))
}

// Obstructed is what stands in the way of the node's drain by a look that still counts.
func (v *View) Obstructed() plan.Refusal {
	r := v.Obstacle()
	if !r.Refuses() || !v.foreseen() {
		return plan.Refusal{}
	}
	r.Again, r.Message = v.Forecast.Next, r.Message.Until(v.Forecast.Next)
	return r
}
