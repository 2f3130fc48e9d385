package next

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// unchangedLooks is how often an unlocked host may show no new record of an accepted command before the command
	// counts as dead (docs/host-api.md#commands, rule 5).
	unchangedLooks = 3

	// activateAgain is how long after an activation that failed on the repository the next one is asked for. None is
	// within lastTry of the intent's end: the answer must come before the controller's deadline.
	activateAgain = 30 * time.Second
	lastTry       = 2 * time.Minute
	// reportPatience is how long after asking for the activation a reboot waits for the report of it; a slow repository
	// takes half of that. Without the report a rollback looks like a loss of power, and the version isn't blamed. But the
	// node is drained, and must not wait for ever for a proxy that doesn't answer.
	reportPatience = 5 * time.Minute

	shortCommand = 10 * time.Second

	pollActive = 250 * time.Millisecond
	pollLocked = 2 * time.Second
	pollSlow   = 30 * time.Second
)

// StepKind is the kind of an agent's next step.
type StepKind string

const (
	// StepRest: do nothing until something changes or the facts are due.
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
	// Lock is the value of the setting, with CommandLock.
	Lock    string
	State   marker.State
	Reason  marker.ReportReason
	Message string
	After   time.Duration
}

// View is all that an agent's step is decided from.
type View struct {
	Now    time.Time
	Intent marker.Intent
	// Report is the agent's own last report, as the Node has it.
	Report marker.Report
	Host   Host
	// Lock is the wish to lock the host; nil if there is none: see Memory.Wish.
	Lock *marker.Lock

	// Asked and all that follow are what the process remembers: see Memory.
	Asked Asked
	// Started is when this process started.
	Started time.Time
	// Affirmed is the intent for which this very process wrote `busy`, which was accepted.
	Affirmed string
	// RefreshTried is when this process last asked for a refresh; zero if never.
	RefreshTried time.Time
	// RefreshEvery is how often facts are refreshed.
	RefreshEvery time.Duration
	// LockedSince is since when the host has been locked without a break; zero if it isn't locked.
	LockedSince time.Time
	// Locking is what it remembers of that wish.
	Locking Locking
	// LeaveOut is until when the optional facts are left out; zero if they aren't.
	LeaveOut time.Time
	// Unsupported is why the host can't update in place; empty if it hasn't refused to.
	Unsupported string
}

// Decide returns an agent's next step. Nothing disruptive is in it that the intent doesn't ask for.
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

// reported reports whether the Node already has the answer that s is.
func (s Step) reported(v View) bool {
	return v.Report.Says(v.Intent.ID, s.State, s.Reason) && v.Report.Message == marker.Clip(s.Message, marker.MaxMessage)
}
