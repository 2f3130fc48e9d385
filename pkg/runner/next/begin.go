package next

import (
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// prepare is the step of an intent whose pod runs while the node is in service.
func (v *View) prepare() Step {
	n := v.Node
	switch answer := n.Report.Answer(n.Intent.ID); {
	case answer == marker.StateReady, answer == marker.StateError:
		return Step{Kind: Rest}
	case n.Intent.Template == "":
		// Nothing that runs here yet is to run on while the node is taken out of service.
		if p := v.leftover(); p != nil {
			return v.end(p)
		}
		return v.ready()
	case n.Plan == nil:
		return Step{Kind: Rest}
	}
	p := v.own()
	switch {
	case p == nil:
		return v.begin()
	case !p.Over():
		return v.await(p)
	case p.Phase == Succeeded:
		return v.ready()
	}
	return v.failed(p)
}

// begin is the step towards the pod of the present intent, which is not there. A dry run comes first, so that what the
// API server refuses has cost nothing; then `busy`; then the pod.
func (v *View) begin() Step {
	n := v.Node
	i := n.Intent
	busy := n.Report.Answer(i.ID) == marker.StateBusy
	if !v.Now.Before(i.Until) {
		switch late := i.Until.Add(lateAfter); {
		case !busy:
			// Nothing was begun, and nothing can be: the controller takes the intent back.
			return Step{Kind: Rest}
		case v.Now.Before(late):
			return Step{Kind: Rest, Again: late}
		}
		return v.refused()
	}
	if p := v.leftover(); p != nil {
		return v.end(p)
	}
	if !busy {
		return v.announce()
	}
	// A refusal after `busy` is none for good: another runner's request may be under way until intent-until.
	late := i.Until.Add(lateAfter)
	switch {
	case !v.Template.Known:
		return Step{Kind: Rest, Again: v.Now.Add(soon)}
	case v.Template.Problem != "", !n.may():
		return Step{Kind: Rest, Again: late}
	}
	return Step{Kind: Create, Again: late}
}

// announce is the step of an intent that is not answered yet and has no pod.
func (v *View) announce() Step {
	n, m := v.Node, v.memory()
	switch {
	case n.Paused || !n.may():
		return Step{Kind: Rest}
	case !v.Template.Known:
		return Step{Kind: Rest, Again: v.Now.Add(soon)}
	case v.Template.Problem != "":
		return v.say(marker.StateError, marker.ReasonPodRefused, "%s", v.Template.Problem)
	case m.Tried:
		return v.say(marker.StateBusy, marker.ReportReasonNone, "")
	case m.Refusals >= refusals:
		return v.say(marker.StateError, marker.ReasonPodRefused, "the API server refuses the pod: %s", m.Refused)
	}
	return Step{Kind: Try}
}

// may reports whether the node is as the plan wants it for the pod (S2): cordoned, and in the boot of the cordon.
func (n *Node) may() bool {
	if n.Intent.Action != marker.ActionRebootUpdate {
		return true
	}
	return n.BootID == n.Intent.RebootFrom && (n.Unschedulable || n.Plan.Drain == marker.DrainNothing)
}

// memory is what is remembered of the present intent.
func (v *View) memory() Memory {
	if v.Memory.Intent != v.Node.Intent.ID {
		return Memory{}
	}
	return v.Memory
}

// refused is the answer when there is no pod, and can be none any more.
func (v *View) refused() Step {
	n, m := v.Node, v.memory()
	why := "no pod was made in time"
	switch {
	case m.Refused != "":
		why = "the API server refuses the pod: " + m.Refused
	case v.Template.Known && v.Template.Problem != "":
		why = v.Template.Problem
	case n.rebooted():
		why = "the node was rebooted before its pod was made"
	case !n.may():
		why = "the node's cordon was taken away before its pod was made"
	}
	return v.say(marker.StateError, marker.ReasonPodRefused, "%s", why)
}

// await is the step while a pod is not over. One that doesn't start is deleted.
func (v *View) await(p *Pod) Step {
	n := v.Node
	if n.Report.Answer(n.Intent.ID) == marker.StateNone && v.Now.Before(n.Intent.Until) && !n.Paused && n.may() {
		return v.say(marker.StateBusy, marker.ReportReasonNone, "")
	}
	if p.Started || p.Deleting {
		return Step{Kind: Rest}
	}
	if until := p.Created.Add(n.startWithin()); v.Now.Before(until) {
		return Step{Kind: Rest, Again: until}
	}
	return v.end(p)
}

// startWithin is how long the present intent's pod may take to start its first container. One that prepares the node
// may pull a large image while the node is in service, so it has all the time of its plan.
func (n *Node) startWithin() time.Duration {
	if n.Intent.Action == marker.ActionRebootUpdate {
		return startWithin
	}
	return max(startWithin, n.Plan.Within())
}

// until is the intent-until of the intent that a pod was made for.
func (v *View) until(p *Pod) time.Time {
	switch {
	case v.is(p) && !v.Node.Intent.Until.IsZero():
		return v.Node.Intent.Until
	case !p.Until.IsZero():
		return p.Until
	}
	return p.Created.Add(unknownUntil)
}
