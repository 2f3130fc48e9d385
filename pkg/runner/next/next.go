package next

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// lateAfter is how long after intent-until no request for the pod can be under way any more.
	lateAfter = time.Minute
	// startWithin is how long an apply pod may take to start its first container.
	startWithin = 5 * time.Minute
	// settleReboot is how long after the pod's end the effects reboot and restart may still show, settleNone that of none.
	settleReboot = 10 * time.Minute
	settleNone   = 2 * time.Minute
	// keepPod is how long after its intent-until a pod is kept.
	keepPod = 10 * time.Minute
	// keepFailed is how long after its end one that failed is.
	keepFailed = time.Hour
	// unknownUntil is how long after a pod was made its intent-until is at most, where nothing tells.
	unknownUntil = time.Hour
	// kubeletClock is how late a kubelet's clock may be before the end of a pod is not believed any more.
	kubeletClock = 5 * time.Minute
	// refusals is how often the API server must refuse a dry run: the admission policies look at a Node that may be some
	// moments old. With the loop's back-off that takes some eight seconds.
	refusals = 6
	// soon is the pause before what was refused, or could not be looked at, is tried again.
	soon = 2 * time.Second
	// lookAgain is the pause before a Node is looked at again that no watch shows, since it has lost its label.
	lookAgain = 10 * time.Minute
)

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	// Rest: nothing until something changes, or Step.Again.
	Rest Kind = "rest"
	// Report: write Step.Changes.
	Report Kind = "report"
	// Try: ask for the pod as a dry run.
	Try Kind = "try"
	// Create: ask for the pod.
	Create Kind = "create"
	// Delete: ask for the deletion of Step.Pod.
	Delete Kind = "delete"
	// Release: take the finalizer off Step.Pod.
	Release Kind = "release"
	// ReadLog: read the last line that Step.Pod logged.
	ReadLog Kind = "readLog"
)

// Kinds is the closed list.
func Kinds() []Kind { return []Kind{Rest, Report, Try, Create, Delete, Release, ReadLog} }

// Step is what to do next.
type Step struct {
	Kind Kind
	// Report and Changes are for the kind Report: what is said, and the annotations that have to change for it.
	Report  marker.Report
	Changes map[marker.Key]*string
	Pod     *Pod
	// Again is when to look again although nothing changed; zero: never.
	Again time.Time
}

// Decide returns the next step of one node.
func Decide(v View) Step {
	if v.Node == nil || !v.Node.Labelled {
		return v.clear()
	}
	step := v.answer()
	if step.Kind != Rest {
		return step
	}
	old := v.forget()
	if old.Kind != Rest {
		return old
	}
	step.Again = earliest(step.Again, old.Again)
	if changes := v.facts(); len(changes) > 0 {
		return Step{Kind: Report, Report: v.report(v.Node.Report), Changes: changes, Again: step.Again}
	}
	return step
}

// answer returns the step that the intent asks for.
func (v *View) answer() Step {
	n := v.Node
	i := n.Intent
	if n.Unreadable || i.ID == "" {
		return Step{Kind: Rest}
	}
	switch i.Action {
	case marker.ActionStabilize:
		return v.ready()
	case marker.ActionPrepareUpdate, marker.ActionConfirmUpdate:
		return v.prepare()
	case marker.ActionRebootUpdate:
		return v.apply()
	case marker.ActionResetState:
		return v.reset()
	}
	return Step{Kind: Rest}
}

// reset ends what earlier intents have running.
func (v *View) reset() Step {
	if v.Node.Report.Answer(v.Node.Intent.ID) == marker.StateReady {
		return Step{Kind: Rest}
	}
	if p := v.leftover(); p != nil {
		return v.end(p)
	}
	return v.ready()
}

// end deletes a pod that is not over, and then waits for it.
func (v *View) end(p *Pod) Step {
	if p.Deleting {
		return Step{Kind: Rest}
	}
	return Step{Kind: Delete, Pod: p}
}

func (v *View) ready() Step { return v.say(marker.StateReady, marker.ReportReasonNone, "") }

// say answers the present intent; nothing if that is what stands there.
func (v *View) say(s marker.State, why marker.ReportReason, format string, args ...any) Step {
	i := v.Node.Intent
	r := v.report(marker.Report{ActiveID: i.ID, State: s, Reason: why, Message: marker.Clip(fmt.Sprintf(format, args...), marker.MaxMessage)})
	if s == marker.StateReady && i.Action == marker.ActionRebootUpdate {
		r.Current = i.Target
	}
	if v.Node.Report.Says(i.ID, s, why) {
		return Step{Kind: Rest}
	}
	changes := marker.Diff(v.Node.Annotations, encode(r), marker.WriterAgent)
	if changes == nil {
		changes = map[marker.Key]*string{}
	}
	// An answer always names its intent and its state, so that it can be judged by itself.
	id, state := r.ActiveID, string(r.State)
	changes[marker.KeyActiveID], changes[marker.KeyActionState] = &id, &state
	return Step{Kind: Report, Report: r, Changes: changes}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
