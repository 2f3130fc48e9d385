package marker

import "slices"

// Prefix of every key of the operator.
const Prefix = "bottlerocket.aws/"

// Key is a label or annotation key on a Node.
type Key string

// The keys. Table has the writer and the meaning of each.
const (
	KeyInterfaceVersion Key = Prefix + "updater-interface-version"
	KeyPlatformVersion  Key = Prefix + "platform-version"

	KeyPaused Key = Prefix + "paused"
	KeyRetry  Key = Prefix + "retry"
	KeyCycle  Key = Prefix + "cycle"

	KeyActionWanted  Key = Prefix + "action-wanted"
	KeyIntentID      Key = Prefix + "intent-id"
	KeyIntentTime    Key = Prefix + "intent-time"
	KeyIntentUntil   Key = Prefix + "intent-until"
	KeyTargetVersion Key = Prefix + "target-version"
	KeyRebootFrom    Key = Prefix + "reboot-from"
	KeyDisruption    Key = Prefix + "disruption"
	KeyFailure       Key = Prefix + "failure"
	KeyHistory       Key = Prefix + "history"
	KeyWaitingFor    Key = Prefix + "waiting-for"
	KeyHookID        Key = Prefix + "hook-id"
	KeyPlan          Key = Prefix + "plan"
	KeyPlanTemplate  Key = Prefix + "plan-template"
	KeyPlanDone      Key = Prefix + "plan-done"
	KeyAutoLabelled  Key = Prefix + "auto-labelled"
	KeyLock          Key = Prefix + "lock"
	KeyLocked        Key = Prefix + "locked"
	KeyFresh         Key = Prefix + "fresh"

	KeyActiveID         Key = Prefix + "active-id"
	KeyActionState      Key = Prefix + "action-state"
	KeyReason           Key = Prefix + "reason"
	KeyMessage          Key = Prefix + "message"
	KeyAvailableVersion Key = Prefix + "available-version"
	KeyOfferedVersions  Key = Prefix + "offered-versions"
	KeyCurrentVersion   Key = Prefix + "current-version"
	KeyVersionLock      Key = Prefix + "version-lock"
	KeyWaveSeed         Key = Prefix + "wave-seed"
	KeyBootID           Key = Prefix + "boot-id"
	KeyProtocol         Key = Prefix + "protocol"
	KeyOperatorVersion  Key = Prefix + "operator-version"
	KeyActivatedID      Key = Prefix + "activated-id"
	KeyActionActive     Key = Prefix + "action-active"
	KeyUpdateAvailable  Key = Prefix + "update-available"
)

// Writer is the component that may write a key. Every key has exactly one.
type Writer string

const (
	WriterUser       Writer = "user"
	WriterController Writer = "controller"
	WriterAgent      Writer = "agent"
)

// Kind is where on the Node a key lives.
type Kind string

const (
	KindLabel      Kind = "label"
	KindAnnotation Kind = "annotation"
)

// Entry is one line of the vocabulary.
type Entry struct {
	Key     Key
	Kind    Kind
	Writer  Writer
	Meaning string
}

var table = []Entry{
	{KeyInterfaceVersion, KindLabel, WriterUser, "`2.0.0` (the Update API) lets the operator update the node; `1.0.0`, as for the 0.1.x operator, means the same; `plan`: the plans of the policy do. With `autoLabel` in the policy the controller sets `2.0.0` once, on nodes that have neither label"},
	{KeyPlatformVersion, KindLabel, WriterUser, "`1.0.0`: an older name of that label; if both are there, `updater-interface-version` counts"},
	{KeyPaused, KindAnnotation, WriterUser, "present: nothing starts on this node, and it is uncordoned if it has not begun to reboot; the value is shown as the reason"},
	{KeyRetry, KindAnnotation, WriterUser, "present: forget this node's failure, and undo an update on the host that its Node does not tell of (`AnotherUpdater`); the controller removes it together with the failure"},
	{KeyCycle, KindAnnotation, WriterUser, "a request, with an id of your own: this node next, to what it is offered, or with nothing offered through drain and reboot on the version that it runs; up to 63 letters, digits, `.`, `_` and `-`, any other value asks for nothing; the controller removes it when that has ended"},
	{KeyActionWanted, KindAnnotation, WriterController, "what the agent has to make true: `stabilize`, `prepare-update`, `confirm-update`, `reboot-update`, `reset-state`"},
	{KeyIntentID, KindAnnotation, WriterController, "unique for each intent; the agent's answer names it"},
	{KeyIntentTime, KindAnnotation, WriterController, "when the intent was issued (RFC 3339, the controller's clock)"},
	{KeyIntentUntil, KindAnnotation, WriterController, "after this moment no agent may begin the intent"},
	{KeyTargetVersion, KindAnnotation, WriterController, "the version that this attempt is about; of a plan it is `PLAN/TARGET#DIGEST`"},
	{KeyRebootFrom, KindAnnotation, WriterController, "the boot ID before the reboot; written together with the cordon"},
	{KeyDisruption, KindAnnotation, WriterController, "JSON, from the cordon to the end of the soak: since when, what the operator changed, and what was there before"},
	{KeyFailure, KindAnnotation, WriterController, "JSON: the versions that failed here, how often, the reason, when it may be tried again"},
	{KeyHistory, KindAnnotation, WriterController, "JSON: the last 5 attempts, each with the version that the node went to, the one it ran before (`from`), how it ended, and for how many seconds it was out of service (`out`) with how many pods of workloads on it before (`pods`)"},
	{KeyWaitingFor, KindAnnotation, WriterController, "on a node in progress: what it waits for, as `Reason: message`; a message that may be outdated says its time, and the plan has the current one"},
	{KeyHookID, KindAnnotation, WriterController, "while hooks of the policy are awaited: a hook answers by setting its own annotation on the node to this value; begins with `after-drain.` or `before-uncordon.`"},
	{KeyPlan, KindAnnotation, WriterController, "JSON, during an attempt of a plan: its name and digest, its proof, its effect, what is drained, its deadline"},
	{KeyPlanTemplate, KindAnnotation, WriterController, "the PodTemplate of which the runner makes one pod for this intent; absent where the intent has none"},
	{KeyPlanDone, KindAnnotation, WriterController, "JSON: by plan, the digest of the content that the node has"},
	{KeyAutoLabelled, KindAnnotation, WriterController, "when the controller labelled the node by `autoLabel`, or let go of it while that was on: it is never labelled so again. The controller never changes or removes it"},
	{KeyLock, KindAnnotation, WriterController, "JSON, from the first wish to lock the host to a version until that is undone: what its setting `version-lock` is to be, what stood there before, and what was asked for meanwhile"},
	{KeyLocked, KindLabel, WriterController, "`true` as long as `lock` is there: by it the agent stays on a node whose label was removed, until it has put the setting back"},
	{KeyFresh, KindAnnotation, WriterController, "JSON: why the taint `bottlerocket.aws/fresh:NoSchedule` was taken off, and how often"},
	{KeyActiveID, KindAnnotation, WriterAgent, "the intent that the agent worked on last"},
	{KeyActionState, KindAnnotation, WriterAgent, "its answer: `busy`, `ready`, `error`"},
	{KeyReason, KindAnnotation, WriterAgent, "why the answer is what it is, where the controller acts on that: `AnotherUpdater`, `UnrequestedActivation`, `InterfaceUnsupported`, `RepositoryUnavailable`, of a lock `LockFailed`, `LockedByOthers`, `LockStood`, and of a plan `PodFailed`, `NoEffect`, `PodRefused`, `Interrupted`; absent otherwise"},
	{KeyMessage, KindAnnotation, WriterAgent, "one line for users, at most 256 bytes; always there with `error`"},
	{KeyAvailableVersion, KindAnnotation, WriterAgent, "the version that the host would install; absent when there is none"},
	{KeyOfferedVersions, KindAnnotation, WriterAgent, "the versions that the host lists for itself, newest first: its own, older ones, and those whose wave is open to it; at most 20, and `more` if there are others"},
	{KeyCurrentVersion, KindAnnotation, WriterAgent, "the version that the host runs"},
	{KeyVersionLock, KindAnnotation, WriterAgent, "the host's setting `updates.version-lock` as it stands there: `latest`, or the one version that the host goes to"},
	{KeyWaveSeed, KindAnnotation, WriterAgent, "the host's setting `updates.seed`: the higher, the later a release's waves reach it"},
	{KeyBootID, KindAnnotation, WriterAgent, "the kernel's boot ID that the agent sees"},
	{KeyActivatedID, KindAnnotation, WriterAgent, "the intent to reboot for which the host was seen ready to boot the target; only then can a host that comes back with its old version be called rolled back"},
	{KeyProtocol, KindAnnotation, WriterAgent, "the protocol that this agent speaks, an integer"},
	{KeyOperatorVersion, KindAnnotation, WriterAgent, "the agent's build"},
	{KeyActionActive, KindAnnotation, WriterAgent, "`true` while the agent is busy; for users and their scripts"},
	{KeyUpdateAvailable, KindAnnotation, WriterAgent, "`true` if a newer version is offered; for users and their scripts"},
}

// Table returns the whole vocabulary, in the order of the documentation.
func Table() []Entry { return slices.Clone(table) }

// Keys returns the annotation keys that w writes.
func Keys(w Writer) []Key {
	var keys []Key
	for _, e := range table {
		if e.Writer == w && e.Kind == KindAnnotation {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// AnswerKeys returns the agent's keys that answer an intent; its others are facts, which are true whatever is asked.
func AnswerKeys() []Key { return []Key{KeyActiveID, KeyActionState, KeyReason, KeyMessage} }

// OptionalKeys returns the agent's facts that came after its first release. Nothing that an older build must know is in
// them, and proxies and admission policies of that refuse them.
func OptionalKeys() []Key { return []Key{KeyOfferedVersions, KeyVersionLock, KeyWaveSeed} }

// Owns reports whether w is the writer of the annotation key.
func Owns(w Writer, key string) bool {
	for _, e := range table {
		if string(e.Key) == key {
			return e.Writer == w && e.Kind == KindAnnotation
		}
	}
	return false
}
