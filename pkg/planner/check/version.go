package check

import (
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Version is what the policy says of one version as a target.
type Version struct {
	Name string
	// Denied is why it is no target, and Young why it is none yet.
	Denied, Young plan.Refusal
}

// Known is what is known of a version in this cluster.
type Known struct {
	// Seen: it was known before now, since then.
	Seen  bool
	Since time.Time
	// Named: a node names it. Witnessed: enough nodes do for its age to begin.
	Named, Witnessed bool
	// Failed is on how many nodes it failed, and Limit from how many on nothing starts for it.
	Failed, Limit int
	// Acknowledged: an administrator lets it go on all the same.
	Acknowledged bool
}

// Judge says what the policy says of a version.
func Judge(version string, r *policy.HostVersions, k Known, now time.Time) *Version {
	return &Version{Name: version, Denied: denied(version, r, k), Young: young(version, r.MinAge, k, now)}
}

func denied(version string, r *policy.HostVersions, k Known) plan.Refusal {
	ranged := version
	if target := marker.PlanTargetOf(version); target != "" {
		ranged = strings.TrimPrefix(target, "v")
	}
	switch {
	case r.Deny != nil && r.Deny.Contains(ranged):
		return plan.Refuse(plan.ReasonVersionDenied, plan.Messagef("the policy denies %s: versions.deny has %s", version, r.Deny))
	case r.Allow != nil && !r.Allow.Contains(ranged):
		return plan.Refuse(plan.ReasonVersionDenied, plan.Messagef("the policy does not allow %s: versions.allow has %s", version, r.Allow))
	case r.Only() != "" && marker.CompareVersions(version, r.Only()) != 0:
		return plan.Refuse(plan.ReasonHeldAtVersion, plan.Messagef("the policy holds the fleet at %s, and %s is offered", r.Only(), version))
	case k.Failed >= k.Limit && !k.Acknowledged:
		return plan.Refuse(plan.ReasonVersionStopped, Stop(version, k.Failed, k.Limit))
	}
	return plan.Refusal{}
}

// Stop is what an administrator reads of a version that failed on too many nodes.
func Stop(version string, failed, limit int) plan.Message {
	name := version
	if marker.PlanOf(version) != "" {
		// A shell would take it apart at a space.
		name = "'" + strings.ReplaceAll(version, "'", `'\''`) + "'"
	}
	return plan.Messagef("%s failed on %d nodes, and nothing starts for a version that failed on %d: "+
		"the rollout goes on with a newer version, or after `kubectl bottlerocket acknowledge %s`", version, failed, limit, name).Dated()
}

func young(version string, minAge time.Duration, k Known, now time.Time) plan.Refusal {
	if minAge == 0 {
		return plan.Refusal{}
	}
	if !k.Seen && !k.Named {
		return plan.Refuse(plan.ReasonVersionTooNew, plan.Messagef(
			"no node would go to %s or runs it: its minimum age of %s begins when two nodes do", version, minAge))
	}
	if !k.Seen && !k.Witnessed {
		return plan.Refuse(plan.ReasonVersionTooNew, plan.Messagef(
			"only one node names %s: its minimum age of %s begins when a second node is offered it, or runs it", version, minAge))
	}
	since := k.Since
	if !k.Seen || since.After(now) {
		since = now
	}
	end := since.Add(minAge)
	if !now.Before(end) {
		return plan.Refusal{}
	}
	return plan.Refusal{Reason: plan.ReasonVersionTooNew, Again: end,
		Message: plan.Messagef("%s was first seen %s; the policy wants it known for %s", version, plan.Clock(since), minAge).Until(end)}
}
