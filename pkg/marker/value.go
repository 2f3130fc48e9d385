package marker

import (
	"slices"
	"time"
)

// Action is what an intent asks for.
type Action string

const (
	// ActionStabilize: keep the host as it is and keep its facts fresh.
	ActionStabilize Action = "stabilize"
	// ActionPrepareUpdate: write the target to the inactive partition set.
	ActionPrepareUpdate Action = "prepare-update"
	// ActionConfirmUpdate: look once more whether what was prepared stands, and the repository still offers it.
	ActionConfirmUpdate Action = "confirm-update"
	// ActionRebootUpdate: activate what was prepared and reboot into it.
	ActionRebootUpdate Action = "reboot-update"
	// ActionResetState: deactivate what is activated.
	ActionResetState Action = "reset-state"
)

// Actions is the closed list.
func Actions() []Action {
	return []Action{ActionStabilize, ActionPrepareUpdate, ActionConfirmUpdate, ActionRebootUpdate, ActionResetState}
}

// Stages reports whether the action is true once its target is staged on the host.
func (a Action) Stages() bool { return a == ActionPrepareUpdate || a == ActionConfirmUpdate }

// State is an agent's answer to an intent.
type State string

const (
	// StateNone: not answered.
	StateNone State = ""
	// StateBusy: begun; on reboot-update this is the point of no return.
	StateBusy State = "busy"
	// StateReady: it is true on the host now.
	StateReady State = "ready"
	// StateError: it could not be made true; Message says why.
	StateError State = "error"
)

// States is the closed list of answers.
func States() []State { return []State{StateBusy, StateReady, StateError} }

// ReportReason is why an agent's answer is what it is, for the controller; the message beside it is only shown.
type ReportReason string

const (
	// ReportReasonNone: nothing that the controller would act on, or an agent that doesn't write reasons yet.
	ReportReasonNone ReportReason = ""
	// ReasonAnotherUpdater: something other than this operator changes the version of the host.
	ReasonAnotherUpdater ReportReason = "AnotherUpdater"
	// ReasonUnrequestedActivation: an update is activated on the host that no intent on the Node asked for; a reset
	// deactivates it.
	ReasonUnrequestedActivation ReportReason = "UnrequestedActivation"
	// ReasonInterfaceUnsupported: the host can't be updated in place.
	ReasonInterfaceUnsupported ReportReason = "InterfaceUnsupported"
	// ReasonRepositoryUnavailable: the host could not load its repository; the agent has it try again.
	ReasonRepositoryUnavailable ReportReason = "RepositoryUnavailable"
	// ReasonLockFailed: the host could not be locked to the version, or did not heed the lock; the host is as it was, or
	// has the lock that was asked for.
	ReasonLockFailed ReportReason = "LockFailed"
	// ReasonLockedByOthers: the host has a lock that this operator did not ask for, and was left as it is.
	ReasonLockedByOthers ReportReason = "LockedByOthers"
	// ReasonLockStood: the host had the lock that is wanted, and the agent has not touched it for this intent.
	ReasonLockStood ReportReason = "LockStood"
	// ReasonPodFailed: a plan's pod ended with another status than 0, by its own doing.
	ReasonPodFailed ReportReason = "PodFailed"
	// ReasonNoEffect: a plan's pod ended with status 0, and the node does not show the target.
	ReasonNoEffect ReportReason = "NoEffect"
	// ReasonPodRefused: a plan's pod could not be made, and nothing was done to the node.
	ReasonPodRefused ReportReason = "PodRefused"
	// ReasonInterrupted: a plan's pod was ended from outside: deleted, evicted, rejected, or never started.
	ReasonInterrupted ReportReason = "Interrupted"
)

// ReportReasons is the closed list of reasons.
func ReportReasons() []ReportReason {
	return []ReportReason{ReasonAnotherUpdater, ReasonUnrequestedActivation, ReasonInterfaceUnsupported, ReasonRepositoryUnavailable,
		ReasonLockFailed, ReasonLockedByOthers, ReasonLockStood,
		ReasonPodFailed, ReasonNoEffect, ReasonPodRefused, ReasonInterrupted}
}

// Protocol is the version of the protocol that this build's agent speaks and its controller asks for.
// 2 knows ActionConfirmUpdate, CycleProtocol knows cycles, LockProtocol knows locks.
const Protocol = 4

// LockProtocol is the first protocol whose agent makes the wish of a Lock true.
const LockProtocol = 4

// CycleProtocol is the first protocol whose agent, asked to reboot into the version that runs, reboots without an
// activation.
const CycleProtocol = 3

// Limits on values, in bytes. What is longer is not read.
const (
	MaxMessage = 256
	maxToken   = 128
	maxCycle   = 63
	maxJSON    = 4096
	// maxHistory has room for HistoryLength attempts at the longest versions that plans have, and at twice the length that
	// Bottlerocket's have. What is longer costs the oldest ones. It stays as it is: an older build reads no more.
	maxHistory = 2048
)

// HistoryLength is how many attempts a node remembers.
const HistoryLength = 5

// Intent is what the controller wants of one agent.
type Intent struct {
	// ID is empty when nothing has been asked of this node yet.
	ID     string
	Action Action
	// Time and Until are the controller's clock, in whole seconds.
	Time, Until time.Time
	// Target is the version of the attempt; empty outside one.
	Target string
	// RebootFrom is the boot ID that a reboot must leave behind; empty before the cordon.
	RebootFrom string
	// Template is the PodTemplate of which a plan's runner makes one pod for this intent; empty where it makes none.
	Template string
}

// Report is what an agent says of its own host.
type Report struct {
	// ActiveID is the intent that State answers.
	ActiveID string
	State    State
	Reason   ReportReason
	// Message is one line, at most MaxMessage bytes.
	Message string

	// Available is empty when nothing is offered.
	Available string
	// Offered is what the host lists, which is more than what it would go to.
	Offered Offers `json:",omitempty"`
	Current string
	// VersionLock and WaveSeed are settings of the host, as they stand there; empty if they aren't known.
	VersionLock string `json:",omitempty"`
	WaveSeed    string `json:",omitempty"`
	BootID      string
	// ActivatedID is the intent for which the host was seen ready to boot the target; empty if it was not.
	ActivatedID string
	// Protocol is 0 if the agent hasn't reported.
	Protocol        int
	OperatorVersion string
}

// Answer returns the agent's answer to the intent with this id, StateNone if it answered another one.
func (r Report) Answer(id string) State {
	if id == "" || r.ActiveID != id {
		return StateNone
	}
	return r.State
}

// Says reports whether the answer to the intent with this id is state, for reason.
func (r Report) Says(id string, state State, reason ReportReason) bool {
	return r.Answer(id) == state && r.Reason == reason
}

// Disruption stands on a node from its cordon to the end of the soak, and remembers what was before.
type Disruption struct {
	// Since is when the node was cordoned, by the controller's clock.
	Since time.Time `json:"since"`
	// WasUnschedulable: the node was cordoned before, so it ends cordoned.
	WasUnschedulable bool `json:"wasUnschedulable"`
	// Ready is the lastTransitionTime of the Ready condition that the soak counts from: another
	// machine's clock, compared for change only.
	Ready string `json:"ready,omitempty"`
	// Soak is when the soak began, by the controller's clock.
	Soak *time.Time `json:"soak,omitempty"`
	// Returned is when the node first came back, by the controller's clock.
	Returned *time.Time `json:"returned,omitempty"`
	// Before holds the values that the operator's labels and annotations for others replaced, by their keys: a value, or
	// nil for none.
	Before map[string]*string `json:"before,omitempty"`
	// Workloads had Ready pods on the node before the drain, as kind/namespace/name, with how many Ready pods each had.
	Workloads map[string]int `json:"workloads,omitempty"`
	// Drained is since when volumes are awaited on the empty node, by the controller's clock.
	Drained *time.Time `json:"drained,omitempty"`
	// Asked is since when hooks are awaited, by the controller's clock.
	Asked *time.Time `json:"asked,omitempty"`
	// NotEmpty is when a pod was first found on the node after it had been empty, by the controller's clock.
	NotEmpty *time.Time `json:"notEmpty,omitempty"`
	// Cycle is the user's request that the attempt is for, if it ends on the version that the node runs already; empty
	// for an update.
	Cycle string `json:"cycle,omitempty"`
	// Fresh: the node had no workloads yet when it was taken out of service.
	Fresh bool `json:"fresh,omitempty"`
	// From is the version that the node ran when it was cordoned, by its kubelet; empty in an attempt of a plan, and where
	// an older build cordoned it.
	From string `json:"from,omitempty"`

	extra extra
}

// Failure is what a node remembers of attempts that failed, until one succeeds.
type Failure struct {
	// Versions that failed here, oldest first, at most 10.
	Versions []string `json:"versions"`
	// Broken are those of them that were to blame: they failed when they were activated, or after the reboot.
	Broken []string `json:"broken,omitempty"`
	// Count of failures since the last success; with 0 the node goes on as any other, and what was Broken is remembered
	// for those that are still offered it.
	Count int `json:"count"`
	// Reason and Message of the last one.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// At is when the last one was written; RetryAfter when the same version may be tried again.
	At         time.Time `json:"at"`
	RetryAfter time.Time `json:"retryAfter"`

	extra extra
}

// Attempt is one line of a node's history.
type Attempt struct {
	Version string    `json:"version"`
	Outcome Outcome   `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Retried: after it the user wished for another attempt at once, so it and those before it hold up none.
	Retried bool `json:"retried,omitempty"`
	// Cycle is the user's request that ended with the attempt; empty if none did.
	Cycle string `json:"cycle,omitempty"`
	// From is the version that the node ran when the attempt began, by its kubelet; empty in one of a plan, and in one
	// that an older build ended.
	From string `json:"from,omitempty"`
	// Out is for how many seconds the operator kept the node out of service, rounded up; 0 if it did not, or an older
	// build ended the attempt. Pods is how many Ready pods of workloads were on it before its drain; 0 also where they
	// were not counted.
	Out  int `json:"out,omitempty"`
	Pods int `json:"pods,omitempty"`

	extra extra
}

// Outcome is how an attempt ended.
type Outcome string

const (
	// OutcomeUpdated: the node runs the target and both witnesses say so.
	OutcomeUpdated Outcome = "updated"
	// OutcomeCycled: as OutcomeUpdated, of an attempt that ended on the version that the node ran before. It says nothing
	// of the version.
	OutcomeCycled Outcome = "cycled"
	// OutcomeFailed: counted against the node.
	OutcomeFailed Outcome = "failed"
	// OutcomeAbandoned: ended without counting, for example by a pause or a withdrawn offer. Before 2.0 it was written as
	// "given-back", which Decode still reads.
	OutcomeAbandoned Outcome = "abandoned"
	// OutcomeUncordoned: abandoned because a user uncordoned the node. No attempt begins for a while.
	OutcomeUncordoned Outcome = "uncordoned"
)

// Succeeded reports whether the attempt ended as it was meant to.
func (o Outcome) Succeeded() bool { return o == OutcomeUpdated || o == OutcomeCycled }

// Waiting is what a node in progress waits for.
type Waiting struct {
	Reason  string
	Message string
}

// Marks is all that the operator's annotations on one node say.
type Marks struct {
	Intent     Intent
	Report     Report
	Disruption *Disruption
	Failure    *Failure
	History    []Attempt
	Waiting    *Waiting
	// HookID is what hooks answer with; empty while none is asked.
	HookID string
	// Plan is what the attempt of a plan does; nil outside one.
	Plan *Plan
	// PlanDone are the digests of the content that the node has, by plan.
	PlanDone map[string]string
	// Lock is the wish that the host be locked to a version; nil if there is none.
	Lock *Lock `json:",omitempty"`
	// Fresh is what became of the taint of new nodes; nil while nothing did.
	Fresh *Fresh `json:",omitempty"`
	// AutoLabelled is the value as it stands, for what counts is that it is there: the node is not labelled by autoLabel.
	// Nil if it isn't.
	AutoLabelled *string
	// Paused and Retry are the user's.
	Paused       bool
	PausedReason string
	Retry        bool
	// Cycle is the id of the user's request for a cycle; empty if there is none.
	Cycle string `json:",omitempty"`
}

// Cycles reports whether the attempt that stands is a cycle: it ends on the version that the node runs already.
func (m *Marks) Cycles() bool {
	if m.Disruption != nil {
		return m.Disruption.Cycle != ""
	}
	return m.Cycle != "" && m.Plan == nil && m.Intent.Target != "" && m.Intent.Target == m.Report.Current
}

// Cycled reports whether an attempt that the node remembers ended the request with this id.
func (m *Marks) Cycled(id string) bool {
	return slices.ContainsFunc(m.History, func(a Attempt) bool { return id != "" && a.Cycle == id })
}
