package next

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// unchangedLooks is how often an unlocked host may show no new record after a command was accepted
	// before the command counts as dead (docs/host-api.md#commands, rule 5).
	unchangedLooks = 3

	// activateAgain is how long after an activation that failed on the repository the next one is asked for, and lastTry
	// how long before the end of the intent no more is: the answer is to come before the controller's deadline.
	activateAgain = 30 * time.Second
	lastTry       = 2 * time.Minute
	// tellPatience is for how long after its activation was asked for a reboot waits for the report of it; a slow
	// repository takes half of that. Without the report a rollback can't be told from a loss of power, and the version
	// isn't blamed, but the node is drained and must not wait for proxies that stay away.
	tellPatience = 5 * time.Minute

	shortCommand = 10 * time.Second

	pollActive = 250 * time.Millisecond
	pollLocked = 2 * time.Second
	pollSlow   = 30 * time.Second
)

// StepKind is what an agent does next.
type StepKind string

const (
	// StepRest: nothing until something changes or the facts are due.
	StepRest StepKind = "rest"
	// StepWait: look again after Step.After.
	StepWait StepKind = "wait"
	// StepReport: answer the intent with Step.State, Reason and Message, with the facts.
	StepReport StepKind = "report"
	// StepFacts: write the facts now and go on; nothing disruptive follows before they stand.
	StepFacts StepKind = "facts"
	// StepCommand: ask the host for Step.Command.
	StepCommand StepKind = "command"
)

// Step is an agent's next step.
type Step struct {
	Kind    StepKind
	Command Command
	State   marker.State
	Reason  marker.ReportReason
	Message string
	After   time.Duration
}

// View is all that an agent decides from.
type View struct {
	Now    time.Time
	Intent marker.Intent
	// Report is the agent's own last report, as it stands on the Node.
	Report marker.Report
	Host   Host
	// Asked, Started, Affirmed, RefreshedAt, RefreshTried and LockedSince are the process's own memory; see Asked.
	Asked Asked
	// Started is when this process started.
	Started time.Time
	// Affirmed is the intent for which this very process wrote `busy` and had it accepted.
	Affirmed string
	// RefreshTried is when this process last asked for a refresh; zero if never.
	RefreshTried time.Time
	// RefreshEvery is how often facts are refreshed.
	RefreshEvery time.Duration
	// LockedSince is since when the host has been locked without a break; zero if it isn't.
	LockedSince time.Time
	// Unsupported is the host's word that it can't update in place; empty if it hasn't said so.
	Unsupported string
}

// Decide returns an agent's next step. It never asks for anything disruptive that the intent doesn't ask for.
func Decide(v View) Step {
	answer := v.Report.Answer(v.Intent.ID)
	if v.Intent.ID == "" {
		return keepFresh(v)
	}
	switch v.Intent.Action {
	case marker.ActionPrepareUpdate:
		return prepare(v, answer)
	case marker.ActionConfirmUpdate:
		return confirm(v, answer)
	case marker.ActionRebootUpdate:
		return reboot(v, answer)
	case marker.ActionResetState:
		return reset(v, answer)
	case marker.ActionStabilize:
		return stabilize(v, answer)
	}
	return Step{Kind: StepRest}
}

func wait(d time.Duration) Step { return Step{Kind: StepWait, After: d} }
func command(c Command) Step    { return Step{Kind: StepCommand, Command: c} }
func report(s marker.State, format string, args ...any) Step {
	return Step{Kind: StepReport, State: s, Message: fmt.Sprintf(format, args...)}
}

// because returns the step with a reason that the controller acts on.
func (s Step) because(r marker.ReportReason) Step {
	s.Reason = r
	return s
}

// reported reports whether the report that stands says what s would.
func (s Step) reported(v View) bool {
	return v.Report.Says(v.Intent.ID, s.State, s.Reason) && v.Report.Message == marker.Clip(s.Message, marker.MaxMessage)
}
