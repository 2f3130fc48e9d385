package next

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// apply is the step of the intent whose pod brings the target.
func (v *View) apply() Step {
	n := v.Node
	answer := n.Report.Answer(n.Intent.ID)
	if n.Plan == nil {
		return Step{Kind: Rest}
	}
	p := v.own()
	switch {
	case answer == marker.StateReady:
		return v.fellBack(p)
	case p == nil && answer == marker.StateError:
		return Step{Kind: Rest}
	case p == nil && n.Intent.Template == "":
		return v.say(marker.StateError, marker.ReasonPodRefused, "the intent names no template")
	case p == nil:
		return v.begin()
	case !p.Over():
		return v.await(p)
	case v.proven(p):
		return v.ready()
	case answer == marker.StateError:
		return Step{Kind: Rest}
	}
	switch settled := v.settled(p); {
	case settled.IsZero():
		return Step{Kind: Rest}
	case v.Now.Before(settled):
		return Step{Kind: Rest, Again: settled}
	}
	return v.failed(p)
}

// fellBack is the step after `ready`: an error once the node shows another version than the target again, since it is
// not proven any more. Only a kubelet that is Ready says so.
func (v *View) fellBack(p *Pod) Step {
	if p == nil || !p.Over() || v.proven(p) || !v.Node.Ready {
		return Step{Kind: Rest}
	}
	return v.say(marker.StateError, marker.ReportReasonNone, "the node had %s, and shows %s again", v.wanted(), v.shows(p))
}

// proven reports whether the node has the target, once the pod is over (S7).
func (v *View) proven(p *Pod) bool {
	n := v.Node
	if v.reboots(p) && !n.rebooted() {
		return false
	}
	if n.Plan.Proof == marker.ProofContent {
		said, _ := v.said(p)
		return p.Phase == Succeeded && said == n.Plan.Digest && n.Intent.Target == n.Plan.Done(said)
	}
	return same(n.Plan.Version(n.Info.Shows(n.Plan.Proof)), n.Intent.Target)
}

// said is what the pod of a plan whose target is content says that the node has now, and whether after a reboot alone.
func (v *View) said(p *Pod) (digest string, reboot bool) {
	return strings.CutSuffix(strings.TrimSpace(p.Said), " reboot")
}

// reboots reports whether the target needs another boot.
func (v *View) reboots(p *Pod) bool {
	plan := v.Node.Plan
	if plan.Effect == marker.EffectReboot {
		return true
	}
	said, reboot := v.said(p)
	return plan.Proof == marker.ProofContent && reboot && said == plan.Digest
}

// settled is when a target that doesn't show can't be expected any more; zero: not by time alone.
func (v *View) settled(p *Pod) time.Time {
	n := v.Node
	switch {
	case !p.Started && n.Ready && !n.rebooted():
		// It did nothing to the node.
		return v.Now
	case v.reboots(p) && n.rebooted() && n.Ready && !v.endedHere(p):
		return v.Now
	case v.reboots(p) && n.rebooted() && !n.Ready:
		return time.Time{}
	case v.reboots(p), n.Plan.Effect != marker.EffectNone:
		return v.ended(p).Add(settleReboot)
	}
	return v.ended(p).Add(settleNone)
}

// endedHere reports whether a pod ended in the boot that the node is in: the one to be left was over before the pod
// ran, as after a loss of power, and the boot that the pod is for may be still to come. Both times are of one kubelet.
func (v *View) endedHere(p *Pod) bool {
	return p.Phase == Succeeded && v.Node.ReadySince.Before(p.Ended)
}

// ended is when a pod ended. The kubelet's clock is another machine's: by how much it is behind shows by when it took
// the pod, which was made before that. It is believed from when the pod was made until when it must have ended.
func (v *View) ended(p *Pod) time.Time {
	end, latest := p.Ended, p.Created.Add(v.Node.Plan.Within()+kubeletClock)
	if !p.Taken.IsZero() {
		end = end.Add(max(0, p.Created.Sub(p.Taken)))
	}
	switch {
	case p.Ended.IsZero(), end.After(latest):
		return latest
	case end.Before(p.Created):
		return p.Created
	}
	return end
}

// failed is the error of a pod that is over and didn't bring what it was made for. Only its own exit is its doing
// (S10): a kubelet that goes down takes its containers with it, and one that is deleted may end in peace.
func (v *View) failed(p *Pod) Step {
	n := v.Node
	applies := n.Intent.Action == marker.ActionRebootUpdate
	switch {
	case applies && p.Started && v.reboots(p) && n.rebooted():
		return v.say(marker.StateError, marker.ReportReasonNone, "the node came back from its reboot and shows %s instead of %s: it was rolled back",
			v.shows(p), v.wanted())
	case p.Phase == Succeeded && p.Deleting:
	case p.Phase == Succeeded && v.reboots(p):
		return v.say(marker.StateError, marker.ReasonNoEffect, "pod %s ended with status 0, and the node did not reboot within %s", p.Name, minutes(settleReboot))
	case p.Phase == Succeeded:
		return v.say(marker.StateError, marker.ReasonNoEffect, "pod %s ended with status 0, and the node shows %s instead of %s", p.Name, v.shows(p), v.wanted())
	case v.byItself(p):
		if v.memory().LogOf != p.UID {
			return Step{Kind: ReadLog, Pod: p}
		}
		text := fmt.Sprintf("container %s of pod %s ended with status %d", p.Container, p.Name, p.Status)
		if line := v.memory().Log; line != "" {
			text += ": " + line
		}
		return v.say(marker.StateError, marker.ReasonPodFailed, "%s", text)
	}
	return v.say(marker.StateError, marker.ReasonInterrupted, "pod %s %s", p.Name, v.interrupted(p))
}

// byItself reports whether a pod that failed did so by its own doing.
func (v *View) byItself(p *Pod) bool {
	n := v.Node
	switch {
	case p.Reason != "", p.Deleting, !p.Started, p.Status == 0, p.Lost:
		return false
	case n.Intent.Action == marker.ActionRebootUpdate && n.Plan.Effect == marker.EffectNone && !n.rebooted():
		return true
	}
	// A kubelet, or a host, that goes down ends containers by SIGTERM and SIGKILL.
	return !n.rebooted() && !slices.Contains([]int{128 + 9, 128 + 15}, p.Status) && !slices.Contains([]int{9, 15}, p.Signal)
}

// interrupted is what became of a pod that was ended from outside.
func (v *View) interrupted(p *Pod) string {
	switch {
	case !p.Started && p.Reason == "" && p.Deleting:
		return fmt.Sprintf("started no container within %s and was deleted, or was deleted before", minutes(v.Node.startWithin()))
	case p.Deleting:
		return "was deleted"
	case p.Reason != "":
		return "was ended: " + p.Reason
	case !p.Started:
		return "started no container"
	}
	return fmt.Sprintf("ended with status %d as its kubelet or its host went down", p.Status)
}

// shows is what the node shows in place of the target.
func (v *View) shows(p *Pod) string {
	n := v.Node
	if n.Plan.Proof != marker.ProofContent {
		return marker.PlanTargetOf(n.Plan.Version(n.Info.Shows(n.Plan.Proof)))
	}
	if said, _ := v.said(p); said != "" {
		return marker.Clip(said, 64)
	}
	return "no digest"
}

// wanted is the target as the proof would show it.
func (v *View) wanted() string {
	if n := v.Node; n.Plan.Proof == marker.ProofContent {
		return n.Plan.Digest
	}
	return marker.PlanTargetOf(v.Node.Intent.Target)
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d min", d/time.Minute) }
