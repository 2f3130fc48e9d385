package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Plan is what to do now, and why every other managed node waits. It is a value: it can be printed, tested, logged and
// counted.
type Plan struct {
	// Time is when it was made, and Policy what by. Both, Budgets, Groups, Versions, Proofs, Rollouts, and the groups of
	// Nodes are filled in where a plan is shown: a pass needs none of them.
	Time   time.Time `json:"time,omitzero"`
	Policy string    `json:"policy,omitempty"`
	// Steps to carry out, in this order, one at most for each node.
	Steps []Step `json:"steps"`
	// Nodes are all managed nodes, sorted by name, each with what holds for it.
	Nodes []Decision `json:"nodes"`
	// Disrupted counts the nodes that the operator has taken out of service, or takes by these steps. LostUncounted of
	// them are Lost, and the limit leaves them out (maxLost).
	Disrupted     int `json:"disrupted"`
	LostUncounted int `json:"lostUncounted"`
	Limit         int `json:"limit"`
	// ByOthers counts the nodes that something else took out of service; they use the limit up too.
	ByOthers int `json:"byOthers,omitempty"`
	// Budgets are all limits with what uses them up before the steps are taken.
	Budgets []Usage `json:"budgets,omitempty"`
	// Groups are the policy's, in its order; the last one, without a name, are the nodes in no group.
	Groups []Group `json:"groups,omitempty"`
	// Versions are Bottlerocket's in this fleet, the newest first; nil where they weren't looked at. VersionsLeftOut
	// is how many more some node names.
	Versions        []Version `json:"versions,omitzero"`
	VersionsLeftOut int       `json:"versionsLeftOut,omitempty"`
	// Proofs are which version each group has proven, in the policy's order; the last one, without a name, of the nodes in
	// no group, if there are any. Nil where that wasn't looked at.
	Proofs []Proof `json:"proofs,omitzero"`
	// Rollouts are those that are remembered, by when they began; nil where that wasn't looked at.
	Rollouts []Rollout `json:"rollouts,omitzero"`
	// PolicyProblem is why the policy that stands in its ConfigMap is not in force.
	PolicyProblem string `json:"policyProblem,omitempty"`
	// AdmissionProblem says which admission policy of the controller's account is missing; empty if none is, or
	// that isn't known.
	AdmissionProblem string `json:"admissionProblem,omitempty"`
	// Warnings name what the policy allows and was probably not meant.
	Warnings []Warning `json:"warnings,omitempty"`
	// Stopped are versions that failed on too many nodes.
	Stopped []StoppedVersion `json:"stopped,omitempty"`
	// RecordPolicy: it has to be noted that this cluster has a policy, before anything starts by it.
	RecordPolicy bool `json:"recordPolicy,omitempty"`
	// Saw are versions that were not known in this cluster before, and now are. Where there are any, Named are all
	// versions that some node names.
	Saw   []string `json:"saw,omitempty"`
	Named []string `json:"-"`
	// AskAlerts: something would start, and it isn't known which alerts fire.
	AskAlerts bool `json:"-"`
	// Wake is when, by the clock alone, the next plan may differ; zero if never.
	Wake time.Time `json:"wake,omitzero"`
}

// Warning is about what Of names, which stays the same while what the message counts or measures changes.
type Warning struct {
	Of string
	Message
}

// StoppedVersion is a version for which nothing starts any more.
type StoppedVersion struct {
	Version string  `json:"version"`
	Message Message `json:"message"`
}

// Step is one thing to do to one node.
type Step struct {
	Node    string     `json:"node"`
	UID     string     `json:"-"`
	Act     intent.Act `json:"act"`
	Reason  Reason     `json:"reason"`
	Message string     `json:"message,omitempty"`
	// Phase is the node's before the step.
	Phase intent.Phase `json:"-"`
	// Before is what must be seen live right before the step is carried out.
	Before Look `json:"-"`
	// Check is what a step of that act looks at, and a look before the cordon looks at besides.
	Check *LiveCheck `json:"-"`
	// Change is what to write to the node; nil if the step writes nothing to it.
	Change *Change `json:"-"`
	// TakesSlot: the node must hold a slot before Change is written. FreesSlot: once it is written, the
	// slot is to be freed.
	TakesSlot bool `json:"-"`
	FreesSlot bool `json:"-"`
	// Eviction is by which rules a look at the node's pods, or an eviction pass, goes; Force: it deletes. The pass asks
	// for Most evictions.
	Eviction *policy.Eviction `json:"-"`
	Force    bool             `json:"-"`
	Most     int              `json:"-"`
}

// LiveCheck is a live look at what a node carries.
type LiveCheck struct {
	For fleet.CheckFor
	// Pods are those that must be Ready on the node.
	Pods []policy.PodSelector
	// Workloads are those of the baseline.
	Workloads map[string]int
	// Attachments were found before; nil looks for them.
	Attachments []string
	// Intent is that of the apply pod, and Digest that of the content which the pod must say that it brought.
	Intent, Digest string
}

// Change is a node's marks, cordon and marks for others after a step. It is only valid on the resourceVersion that it
// was computed from.
type Change struct {
	ResourceVersion string
	Marks           marker.Marks
	// Unschedulable is nil if spec.unschedulable stays as it is.
	Unschedulable *bool
	// DropFresh takes the taint of new nodes off.
	DropFresh bool `json:",omitempty"`
	// Labels and Annotations are marks for load balancers and autoscalers: a value to set, or nil to delete. The one
	// bottlerocket.aws keys among them are the label that ActLabel sets, and the one that stands as long as a lock.
	Labels, Annotations map[string]*string
	// DropRetry removes the user's wish that this step fulfils.
	DropRetry bool
	// DropCycle removes the user's request for a cycle, which ends with this step.
	DropCycle bool `json:",omitempty"`
	// EndsAttempt: the last attempt of the node's history ends by it.
	EndsAttempt bool `json:"-"`
	// RemoveAll removes the agent's annotations too. Marks have none of the controller's then, but for AutoLabelled.
	RemoveAll bool
}

// Diff returns what c changes of the annotations that stand on its node: a value to set, or nil to delete.
func (c *Change) Diff(stands map[string]string) map[marker.Key]*string {
	diff := map[marker.Key]*string{}
	maps.Copy(diff, marker.Diff(stands, marker.Encode(c.Marks), marker.WriterController))
	if c.RemoveAll {
		maps.Copy(diff, marker.Diff(stands, nil, marker.WriterAgent))
	}
	if c.DropRetry {
		diff[marker.KeyRetry] = nil
	}
	if _, stands := stands[string(marker.KeyCycle)]; stands && c.DropCycle {
		diff[marker.KeyCycle] = nil
	}
	return diff
}

// Decision is what holds for one managed node.
type Decision struct {
	Node    string       `json:"node"`
	UID     string       `json:"-"`
	Group   string       `json:"group,omitempty"`
	Phase   intent.Phase `json:"phase"`
	Version string       `json:"version,omitempty"`
	Target  string       `json:"target,omitempty"`
	// Act is the node's step, empty if it gets none.
	Act     intent.Act `json:"act,omitempty"`
	Reason  Reason     `json:"reason"`
	Message Message    `json:"message"`
	// NotBefore is when the reason may be gone, by the clock alone; zero if something else must happen first.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// Goes returns the version that a node with these marks is to go to, or is offered; empty if it is the one that it
// runs.
func (d Decision) Goes(m *marker.Marks) string {
	target := d.Target
	if target == "" {
		target = m.Report.Available
	}
	if target == m.Report.Current {
		return ""
	}
	return target
}

// Starts reports whether something is done to the node now. By the other acts nothing starts: what users read is
// written, a node is looked at, or a drain goes on.
func (d Decision) Starts() bool { return starts(d.Act) }

// Starts is Decision.Starts of the step.
func (s Step) Starts() bool { return starts(s.Act) }

func starts(a intent.Act) bool {
	return !slices.Contains([]intent.Act{"", intent.ActNote, intent.ActDismiss, intent.ActLock, intent.ActUnlock, intent.ActLook, intent.ActDrain, intent.ActCheck}, a)
}
