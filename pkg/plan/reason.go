package plan

import "slices"

// Reason says why a step is taken or why a node gets none. The same value is the log field, the event's
// reason, the metric label and the plan's column.
type Reason string

// Reasons for a node that gets no step.
const (
	// ReasonAnnotationUnreadable: an annotation can't be read; the node is left alone until it can.
	ReasonAnnotationUnreadable Reason = "AnnotationUnreadable"
	// ReasonInterfaceUnsupported: labelled for an interface that this operator doesn't speak.
	ReasonInterfaceUnsupported Reason = "InterfaceUnsupported"
	// ReasonAgentNotReady: no Ready agent pod, or it hasn't reported yet.
	ReasonAgentNotReady Reason = "AgentNotReady"
	// ReasonAnotherUpdater: something other than this operator updates the host.
	ReasonAnotherUpdater Reason = "AnotherUpdater"
	// ReasonHostError: the agent can't work with its host; its message says why.
	ReasonHostError Reason = "HostError"
	// ReasonPaused: the node's own `paused` annotation.
	ReasonPaused Reason = "Paused"
	// ReasonUpToDate: nothing newer is offered.
	ReasonUpToDate Reason = "UpToDate"
	// ReasonLowerVersionOffered: what the host offers is lower than what it runs, which is no target unless the policy
	// says so.
	ReasonLowerVersionOffered Reason = "LowerVersionOffered"
	// ReasonBackingOff: this version failed here and its wait isn't over.
	ReasonBackingOff Reason = "BackingOff"
	// ReasonRecentlyUncordoned: a user uncordoned the node during its update a short while ago.
	ReasonRecentlyUncordoned Reason = "RecentlyUncordoned"
	// ReasonNodeNotReady: nothing starts on a node that isn't Ready.
	ReasonNodeNotReady Reason = "NodeNotReady"
	// ReasonBootUnconfirmed: agent and kubelet don't name the same boot, or not the same version of it.
	ReasonBootUnconfirmed Reason = "BootUnconfirmed"
	// ReasonStagingLimit: enough nodes are staging.
	ReasonStagingLimit Reason = "StagingLimit"
	// ReasonUnavailableLimit: maxUnavailable nodes are out of service.
	ReasonUnavailableLimit Reason = "UnavailableLimit"
	// ReasonDomainLimit: maxDomains zones, or values of another label, have nodes out of service.
	ReasonDomainLimit Reason = "DomainLimit"
	// ReasonPolicyPaused: the policy pauses the fleet or the node's group.
	ReasonPolicyPaused Reason = "PolicyPaused"
	// ReasonPolicyUnreadable: the policy can't be read, and there is none from before, or it is gone; nothing starts.
	ReasonPolicyUnreadable Reason = "PolicyUnreadable"
	// ReasonWindowClosed: outside the policy's windows.
	ReasonWindowClosed Reason = "WindowClosed"
	// ReasonWindowTooShort: what starts now would not end within the window.
	ReasonWindowTooShort Reason = "WindowTooShort"
	// ReasonFrozen: the policy freezes changes.
	ReasonFrozen Reason = "Frozen"
	// ReasonUngrouped: no group chooses the node, and such nodes wait.
	ReasonUngrouped Reason = "Ungrouped"
	// ReasonAfterGroup: another group goes first.
	ReasonAfterGroup Reason = "AfterGroup"
	// ReasonVersionDenied: the policy denies the version, or doesn't allow it.
	ReasonVersionDenied Reason = "VersionDenied"
	// ReasonHeldAtVersion: the policy holds the fleet at another version than the one that is offered.
	ReasonHeldAtVersion Reason = "HeldAtVersion"
	// ReasonVersionTooNew: the version must be known for longer.
	ReasonVersionTooNew Reason = "VersionTooNew"
	// ReasonVersionStopped: the version failed on too many nodes.
	ReasonVersionStopped Reason = "VersionStopped"
	// ReasonBeingRemoved: the node is being taken out of the cluster.
	ReasonBeingRemoved Reason = "BeingRemoved"
	// ReasonTooManyLost: more nodes are Lost than the settings allow; nothing starts.
	ReasonTooManyLost Reason = "TooManyLost"
	// ReasonStateUnreadable: the list of slots can't be read; nothing starts.
	ReasonStateUnreadable Reason = "StateUnreadable"
	// ReasonOnlySchedulableNode: no other schedulable node could take its pods.
	ReasonOnlySchedulableNode Reason = "OnlySchedulableNode"
	// ReasonControllerLast: the controller's own node waits for the others.
	ReasonControllerLast Reason = "ControllerLast"
	// ReasonAlertsFiring: alerts stand for which the policy lets nothing start.
	ReasonAlertsFiring Reason = "AlertsFiring"
	// ReasonAlertsUnknown: it isn't known which alerts fire; nothing starts.
	ReasonAlertsUnknown Reason = "AlertsUnknown"
	// ReasonBudgetBlocks: a PodDisruptionBudget would not let a pod go, so the node isn't cordoned.
	ReasonBudgetBlocks Reason = "BudgetBlocks"
	// ReasonPodProtected: the policy allows no eviction of a pod, so the node isn't cordoned.
	ReasonPodProtected Reason = "PodProtected"
	// ReasonStaging: the agent is staging.
	ReasonStaging Reason = "Staging"
	// ReasonConfirming: staged some time ago, the agent asks the repository once more.
	ReasonConfirming Reason = "Confirming"
	// ReasonLeavingBalancers: load balancers are given time to send nothing to the node any more.
	ReasonLeavingBalancers Reason = "LeavingBalancers"
	// ReasonDraining: evicted pods are on their way out.
	ReasonDraining Reason = "Draining"
	// ReasonEvictionBlocked: a pod may not be evicted now, a PodDisruptionBudget mostly.
	ReasonEvictionBlocked Reason = "EvictionBlocked"
	// ReasonPodEndAwaited: a pod runs that the policy doesn't let be evicted, but waits for.
	ReasonPodEndAwaited Reason = "PodEndAwaited"
	// ReasonEvictionLimit: as many pods were evicted from the node within an hour as may be.
	ReasonEvictionLimit Reason = "EvictionLimit"
	// ReasonDrainFailing: the eviction pass itself fails.
	ReasonDrainFailing Reason = "DrainFailing"
	// ReasonVolumesAttached: volumes of pods that were evicted are still attached to the node.
	ReasonVolumesAttached Reason = "VolumesAttached"
	// ReasonHookAwaited: a hook of the policy has not answered yet.
	ReasonHookAwaited Reason = "HookAwaited"
	// ReasonCheckFailing: what the node carries can't be looked at.
	ReasonCheckFailing Reason = "CheckFailing"
	// ReasonRebooting: the agent is at it.
	ReasonRebooting Reason = "Rebooting"
	// ReasonReturning: the kubelet doesn't show the new boot, Ready and the version yet.
	ReasonReturning Reason = "Returning"
	// ReasonPodsNotReady: pods that the policy wants on the node itself are not Ready there.
	ReasonPodsNotReady Reason = "PodsNotReady"
	// ReasonSoaking: Ready on its new boot; the soak runs.
	ReasonSoaking Reason = "Soaking"
	// ReasonWorkloadsAwaited: a workload that had Ready pods on the node has less of them than before.
	ReasonWorkloadsAwaited Reason = "WorkloadsAwaited"
	// ReasonNotReadyAfterUpdate: not Ready during the soak.
	ReasonNotReadyAfterUpdate Reason = "NotReadyAfterUpdate"
	// ReasonResetting: the agent undoes what is activated.
	ReasonResetting Reason = "Resetting"
	// ReasonLost: past the deadline after the point of no return.
	ReasonLost Reason = "Lost"
	// ReasonWriteFailing: the API server refuses the writes to the node, or is too slow with them; it is written to ever
	// more rarely.
	ReasonWriteFailing Reason = "WriteFailing"
	// ReasonNoPlan: no plan of the policy chooses the node.
	ReasonNoPlan Reason = "NoPlan"
	// ReasonTemplateMissing: a template of the node's next plan, or what it mounts, is not there.
	ReasonTemplateMissing Reason = "TemplateMissing"
	// ReasonTargetUnknown: the runner has not found out the target of the node's next plan.
	ReasonTargetUnknown Reason = "TargetUnknown"
	// ReasonMinorSkipped: the target is more minor versions ahead than the plan allows.
	ReasonMinorSkipped Reason = "MinorSkipped"
	// ReasonPlansContradict: the node's next plan would take it off the target of an earlier one.
	ReasonPlansContradict Reason = "PlansContradict"
	// ReasonNoEffect: a plan's pod succeeded here and the node does not show the target, which is not tried again.
	ReasonNoEffect Reason = "NoEffect"
	// ReasonPinNotOffered: the policy pins the node to a version that its host is not offered.
	ReasonPinNotOffered Reason = "PinNotOffered"
	// ReasonPinLower: the policy pins the node to a lower version, and does not allow to go down.
	ReasonPinLower Reason = "PinLower"
	// ReasonLocking: the agent sets the host's version-lock.
	ReasonLocking Reason = "Locking"
	// ReasonLockFailed: the host can't be locked, or does not heed the lock.
	ReasonLockFailed Reason = "LockFailed"
	// ReasonLockedByOthers: the host is locked to another version than the pin, by others.
	ReasonLockedByOthers Reason = "LockedByOthers"
	// ReasonLockLeft: the label is gone, and the host keeps the operator's lock since its agent can't take it back.
	ReasonLockLeft Reason = "LockLeft"
	// ReasonFreshUnproven: no node of its group has proven a version to which a new node could go before it has workloads.
	ReasonFreshUnproven Reason = "FreshUnproven"
	// ReasonFreshOverdue: a new node is too old by now to keep its taint.
	ReasonFreshOverdue Reason = "FreshOverdue"
	// ReasonTaintReturns: the taint of new nodes was put on a node again and again.
	ReasonTaintReturns Reason = "TaintReturns"
	// ReasonLabelRemoved: the label is gone, and what the operator did to the node is being undone.
	ReasonLabelRemoved Reason = "LabelRemoved"
)

// Reasons for a step.
const (
	ReasonManaged           Reason = "Managed"
	ReasonUpdateAvailable   Reason = "UpdateAvailable"
	ReasonLooking           Reason = "Looking"
	ReasonCordoned          Reason = "Cordoned"
	ReasonRebootRequested   Reason = "RebootRequested"
	ReasonSingleNode        Reason = "SingleNode"
	ReasonRebootedEarly     Reason = "RebootedEarly"
	ReasonUncordoned        Reason = "Uncordoned"
	ReasonUpdated           Reason = "Updated"
	ReasonVerified          Reason = "Verified"
	ReasonSoakRestarted     Reason = "SoakRestarted"
	ReasonResetDone         Reason = "ResetDone"
	ReasonAlreadyOnTarget   Reason = "AlreadyOnTarget"
	ReasonOfferWithdrawn    Reason = "OfferWithdrawn"
	ReasonStagingFailed     Reason = "StagingFailed"
	ReasonStagingDeadline   Reason = "StagingDeadline"
	ReasonDrainDeadline     Reason = "DrainDeadline"
	ReasonEvictionRefused   Reason = "EvictionRefused"
	ReasonVolumesDeadline   Reason = "VolumesDeadline"
	ReasonHookFailed        Reason = "HookFailed"
	ReasonAgentLost         Reason = "AgentLost"
	ReasonRebootDeadline    Reason = "RebootDeadline"
	ReasonRebootFailed      Reason = "RebootFailed"
	ReasonRolledBack        Reason = "RolledBack"
	ReasonWorkloadsNotReady Reason = "WorkloadsNotReady"
	ReasonPodFailed         Reason = "PodFailed"
	ReasonPodRefused        Reason = "PodRefused"
	ReasonInterrupted       Reason = "Interrupted"
	ReasonUncordonedByUser  Reason = "UncordonedByUser"
	ReasonRetryWanted       Reason = "RetryWanted"
	ReasonCycleWanted       Reason = "CycleWanted"
	ReasonCycled            Reason = "Cycled"
	ReasonCycleRefused      Reason = "CycleRefused"
	ReasonRequestWithdrawn  Reason = "RequestWithdrawn"
	ReasonClockCorrected    Reason = "ClockCorrected"
	ReasonSlotUnused        Reason = "SlotUnused"
	ReasonNodeGone          Reason = "NodeGone"
	ReasonAutoLabelled      Reason = "AutoLabelled"
	ReasonLockWanted        Reason = "LockWanted"
	ReasonLockRestored      Reason = "LockRestored"
)

var reasons = []Reason{
	ReasonAnnotationUnreadable, ReasonInterfaceUnsupported, ReasonAgentNotReady, ReasonAnotherUpdater, ReasonHostError,
	ReasonPaused, ReasonUpToDate, ReasonLowerVersionOffered, ReasonBackingOff, ReasonRecentlyUncordoned, ReasonNodeNotReady,
	ReasonBootUnconfirmed, ReasonStagingLimit, ReasonUnavailableLimit, ReasonDomainLimit, ReasonPolicyPaused,
	ReasonPolicyUnreadable, ReasonWindowClosed, ReasonWindowTooShort, ReasonFrozen, ReasonUngrouped, ReasonAfterGroup, ReasonVersionDenied, ReasonHeldAtVersion,
	ReasonVersionTooNew, ReasonVersionStopped, ReasonBeingRemoved, ReasonTooManyLost, ReasonStateUnreadable, ReasonOnlySchedulableNode, ReasonControllerLast,
	ReasonAlertsFiring, ReasonAlertsUnknown, ReasonBudgetBlocks, ReasonPodProtected, ReasonStaging, ReasonConfirming, ReasonLeavingBalancers, ReasonDraining, ReasonEvictionBlocked,
	ReasonPodEndAwaited, ReasonEvictionLimit, ReasonDrainFailing, ReasonVolumesAttached, ReasonHookAwaited, ReasonCheckFailing, ReasonRebooting,
	ReasonReturning, ReasonPodsNotReady, ReasonSoaking, ReasonWorkloadsAwaited, ReasonNotReadyAfterUpdate, ReasonResetting, ReasonLost, ReasonWriteFailing,
	ReasonNoPlan, ReasonTemplateMissing, ReasonTargetUnknown, ReasonMinorSkipped, ReasonPlansContradict, ReasonNoEffect,
	ReasonPinNotOffered, ReasonPinLower, ReasonLocking, ReasonLockFailed, ReasonLockedByOthers, ReasonLockLeft, ReasonFreshUnproven, ReasonFreshOverdue, ReasonTaintReturns,
	ReasonLabelRemoved,
	ReasonManaged, ReasonUpdateAvailable, ReasonLooking, ReasonCordoned, ReasonRebootRequested, ReasonSingleNode, ReasonRebootedEarly, ReasonUncordoned,
	ReasonUpdated, ReasonVerified, ReasonSoakRestarted, ReasonResetDone, ReasonAlreadyOnTarget, ReasonOfferWithdrawn,
	ReasonStagingFailed, ReasonStagingDeadline, ReasonDrainDeadline, ReasonEvictionRefused, ReasonVolumesDeadline, ReasonHookFailed, ReasonAgentLost, ReasonRebootDeadline, ReasonRebootFailed,
	ReasonRolledBack, ReasonWorkloadsNotReady, ReasonPodFailed, ReasonPodRefused, ReasonInterrupted, ReasonUncordonedByUser, ReasonRetryWanted, ReasonCycleWanted, ReasonCycled, ReasonCycleRefused, ReasonRequestWithdrawn, ReasonClockCorrected, ReasonSlotUnused, ReasonNodeGone,
	ReasonAutoLabelled, ReasonLockWanted, ReasonLockRestored,
}

// Reasons is the closed list.
func Reasons() []Reason { return slices.Clone(reasons) }

// Passing reports whether the reason is only that an answer is awaited.
func (r Reason) Passing() bool { return r == ReasonLooking || r == ReasonAlertsUnknown }

// Waits reports whether a node may wait for something by this reason. Of the others some are those of steps, and a node
// that is up to date waits for nothing.
func (r Reason) Waits() bool {
	return r != ReasonUpToDate && slices.Contains(reasons[:slices.Index(reasons, ReasonManaged)], r)
}

// Patient reports whether the reason often passes by itself within minutes, and is troubling only once it lasts.
func (r Reason) Patient() bool {
	return r == ReasonEvictionBlocked || r == ReasonBudgetBlocks || r == ReasonPodProtected || r == ReasonWriteFailing
}

// Troubling reports whether an Event of the reason is a warning: the reason won't pass by itself, or something failed.
// Of what is wrong with the policy or with a version they are warned once, and not for each node.
func (r Reason) Troubling() bool {
	switch r {
	case ReasonAnnotationUnreadable, ReasonInterfaceUnsupported, ReasonAnotherUpdater, ReasonHostError, ReasonLost, ReasonTooManyLost, ReasonStateUnreadable,
		ReasonNotReadyAfterUpdate, ReasonStagingFailed, ReasonStagingDeadline, ReasonDrainDeadline, ReasonEvictionRefused, ReasonVolumesDeadline, ReasonHookFailed, ReasonAgentLost, ReasonRebootDeadline,
		ReasonPodFailed, ReasonNoEffect, ReasonPodRefused, ReasonInterrupted, ReasonTemplateMissing, ReasonLockFailed, ReasonLockedByOthers, ReasonLockLeft,
		ReasonRebootFailed, ReasonRolledBack, ReasonWorkloadsNotReady, ReasonEvictionBlocked, ReasonEvictionLimit, ReasonDrainFailing, ReasonCheckFailing, ReasonWriteFailing, ReasonBudgetBlocks, ReasonPodProtected:
		return true
	default:
		return false
	}
}
