package sim

import "slices"

// Kind is a kind of fault, or of what a user does, that a scenario may hold.
type Kind string

// What can go wrong. The hosts' own faults are named by their ids in dev/hostsim, F1 to F35.
const (
	CrashController  Kind = "crash-controller"
	FreezeController Kind = "freeze-controller"
	CrashAgent       Kind = "crash-agent"
	FreezeAgent      Kind = "freeze-agent"
	ProxyDown        Kind = "proxy-down"
	APIServerDown    Kind = "apiserver-down"
	LostRequest      Kind = "lost-request"
	LostAnswer       Kind = "lost-answer"
	SlowRequest      Kind = "slow-request"
	SlowAnswer       Kind = "slow-answer"
	Throttled        Kind = "throttled"
	WatchLag         Kind = "watch-lag"
	WatchRepeat      Kind = "watch-repeat"
	WatchRestart     Kind = "watch-restart"
	Compaction       Kind = "compaction"
	StaleList        Kind = "stale-list"
	ControllerClock  Kind = "controller-clock"
	ProxyClock       Kind = "proxy-clock"
	AgentClock       Kind = "agent-clock"
	PowerCut         Kind = "power-cut"
	SlowBoot         Kind = "slow-boot"
	NeverReturns     Kind = "never-returns"
	NodeFlaps        Kind = "node-flaps"
	NodeUnwell       Kind = "node-unwell"
	NodeDeleted      Kind = "node-deleted"
	NodeRenamed      Kind = "node-renamed"
	AgentPodReplaced Kind = "agent-pod-replaced"
	FrozenBudget     Kind = "frozen-budget"
	StuckPod         Kind = "stuck-pod"
	LateBinding      Kind = "late-binding"
	PersonCordons    Kind = "person-cordons"
	PersonUncordons  Kind = "person-uncordons"
	PersonPauses     Kind = "person-pauses"
	PersonUnlabels   Kind = "person-unlabels"
	PersonEditsMarks Kind = "person-edits-marks"
	PersonEditsSlots Kind = "person-edits-slots"
	PersonRetries    Kind = "person-retries"
	PolicyChanged    Kind = "policy-changed"
	NewRelease       Kind = "new-release"
	Withdrawn        Kind = "withdrawn"

	PersonWritesPolicy  Kind = "person-writes-policy"
	PersonBreaksPolicy  Kind = "person-breaks-policy"
	PersonDeletesPolicy Kind = "person-deletes-policy"
	PersonAcknowledges  Kind = "person-acknowledges"
	BadRelease          Kind = "bad-release"

	SlowDetach      Kind = "slow-detach"
	BrokenApp       Kind = "broken-app"
	AutoscalerTakes Kind = "autoscaler-takes"
	PersonExcludes  Kind = "person-excludes"

	WritesRefused Kind = "writes-refused"
	WritesSlow    Kind = "writes-slow"

	CrashRunner           Kind = "crash-runner"
	FreezeRunner          Kind = "freeze-runner"
	PlanPodHangs          Kind = "plan-pod-hangs"
	PlanPodFails          Kind = "plan-pod-fails"
	PlanPodNoEffect       Kind = "plan-pod-no-effect"
	PlanPodEvicted        Kind = "plan-pod-evicted"
	PlanPodRejected       Kind = "plan-pod-rejected"
	PlanPodRefused        Kind = "plan-pod-refused"
	ImageNotPulled        Kind = "image-not-pulled"
	KubeletDies           Kind = "kubelet-dies"
	RebootInPod           Kind = "reboot-in-pod"
	PersonDeletesPlanPod  Kind = "person-deletes-plan-pod"
	PersonChangesTemplate Kind = "person-changes-template"

	PersonAsksCycle      Kind = "person-asks-cycle"
	PersonTakesCycleBack Kind = "person-takes-cycle-back"
	ForeignUpdate        Kind = "foreign-update"

	PersonLocks Kind = "person-locks"

	MachineJoins   Kind = "machine-joins"
	PersonTaints   Kind = "person-taints"
	PersonUntaints Kind = "person-untaints"
)

// always are those that any scenario may hold, governing those of scenarios with a policy file, surrounding what is
// around a node that is disrupted, and unwriting what the API server makes of the controllers' writes to one node.
// Planning, in plans.go, are those of scenarios with nodes of plans, cycling, in cycles.go, of those in which users ask
// for cycles, locking, in locks.go, of those with pins, freshening, in fresh.go, of those with new nodes.
var always = []Kind{CrashController, FreezeController, CrashAgent, FreezeAgent, ProxyDown, APIServerDown, LostRequest, LostAnswer,
	SlowRequest, SlowAnswer, Throttled, WatchLag, WatchRepeat, WatchRestart, Compaction, StaleList, ControllerClock, ProxyClock, AgentClock,
	PowerCut, SlowBoot, NeverReturns, NodeFlaps, NodeUnwell, NodeDeleted, NodeRenamed, AgentPodReplaced, FrozenBudget, StuckPod, LateBinding,
	PersonCordons, PersonUncordons, PersonPauses, PersonUnlabels, PersonEditsMarks, PersonEditsSlots, PersonRetries, PolicyChanged,
	NewRelease, Withdrawn,
	"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "F13", "F14", "F15", "F16", "F17", "F18", "F19", "F20",
	"F21", "F22", "F23", "F24", "F25", "F26", "F27", "F28", "F29", "F30",
	"F31", "F32", "F33", "F34", "F35"}

var (
	governing   = []Kind{PersonWritesPolicy, PersonBreaksPolicy, PersonDeletesPolicy, PersonAcknowledges, BadRelease}
	surrounding = []Kind{SlowDetach, BrokenApp, AutoscalerTakes, PersonExcludes}
	unwriting   = []Kind{WritesRefused, WritesSlow}
	kinds       = slices.Concat(always, governing, surrounding, unwriting, planning, cycling, locking, freshening)
)
