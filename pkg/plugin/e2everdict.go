package plugin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// verdict is how a run ended.
type verdict struct {
	passed bool
	text   string
	// facts are what was seen, each with its name.
	facts [][2]string
}

// verdict returns how the run ended; nil: it has not.
func (j *journal) verdict() *verdict {
	n := &j.node
	at := slices.IndexFunc(n.Marks.History, func(a marker.Attempt) bool { return a.Cycle == j.id })
	switch {
	case n.UID != j.before.UID:
		return j.failed("the Node was deleted, and another one has its name")
	case !n.Labelled():
		return j.failed("the node's label was removed: the operator undoes what it did, and lets go of it")
	case n.Disrupted() || n.Marks.Cycle == j.id:
		return nil
	case at < 0:
		return j.failed("the request was removed, and no attempt for it has ended: it was refused, or taken back by another")
	}
	a := &n.Marks.History[at]
	v := j.ended(a)
	if wrong := j.wrong(a); wrong != "" {
		v.passed, v.text = false, wrong
	}
	return v
}

func (j *journal) failed(why string) *verdict { return &verdict{text: why, facts: j.facts(nil)} }

// ended is the verdict by the controller's word.
func (j *journal) ended(a *marker.Attempt) *verdict {
	v := &verdict{passed: a.Outcome.Succeeded(), facts: j.facts(a)}
	switch a.Outcome {
	case marker.OutcomeCycled:
		v.text = fmt.Sprintf("%s went through a cycle on %s", j.node.Name, a.Version)
	case marker.OutcomeUpdated:
		v.text = fmt.Sprintf("%s was updated to %s", j.node.Name, marker.ShortVersion(a.Version))
	default:
		v.text = fmt.Sprintf("the attempt at %s on %s ended as %s: %s; see the Events on the node", marker.ShortVersion(a.Version), j.node.Name, a.Outcome, a.Reason)
	}
	return v
}

// wrong is what contradicts a success as far as the run itself has seen it; empty if nothing does.
func (j *journal) wrong(a *marker.Attempt) string {
	n := &j.node
	planned := marker.PlanOf(a.Version) != ""
	switch {
	case !a.Outcome.Succeeded():
		return ""
	case !planned && n.BootID == j.before.BootID:
		return "the operator calls it done, and the kubelet is in the boot from before"
	case !planned && n.OSVersion != a.Version:
		return fmt.Sprintf("the operator calls it done with %s, and the kubelet runs %q", a.Version, n.OSVersion)
	case n.Unschedulable != j.before.Unschedulable:
		return fmt.Sprintf("the node ends with cordoned=%t, and it was %t before", n.Unschedulable, j.before.Unschedulable)
	case !planned && len(j.boots) > 2:
		return fmt.Sprintf("the node booted %d times", len(j.boots)-1)
	}
	return ""
}

// facts are what was seen; a is nil if no attempt ended.
func (j *journal) facts(a *marker.Attempt) [][2]string {
	add := func(all [][2]string, name, value string) [][2]string {
		if value == "" {
			return all
		}
		return append(all, [2]string{name, value})
	}
	all := add(nil, "request", j.id)
	if a != nil {
		all = add(all, "attempt", fmt.Sprintf("%s: %s, %s to %s", a.Outcome, a.Reason, moment(a.Started), moment(a.Ended)))
	}
	all = add(all, "version", runs(&j.before)+" before, "+runs(&j.node)+" now")
	all = add(all, "boot", strings.Join(j.boots, " -> "))
	if !j.cordoned.IsZero() {
		all = add(all, "out of service", j.away(a))
		all = add(all, "pods that left", fmt.Sprintf("%d%s", len(j.evicted), list(j.evicted)))
		all = add(all, "hooks awaited", fmt.Sprintf("%d%s", len(j.hooks), list(j.hooks)))
	}
	return add(all, "watched for", j.at.Sub(j.began).Round(time.Second).String())
}

// away is how long the node was out of service, by the controller's clock; a is nil if no attempt ended.
func (j *journal) away(a *marker.Attempt) string {
	from, to, most := j.cordoned.Truncate(time.Second), j.returned.Truncate(time.Second), ""
	switch {
	case !j.returned.IsZero():
	case a != nil:
		// The return came and went between two looks, or there was none.
		to, most = a.Ended, "at most "
	default:
		return "since " + moment(from)
	}
	return fmt.Sprintf("%s%s, from %s to %s", most, to.Sub(from), moment(from), moment(to))
}

// runs is the version that a kubelet shows.
func runs(n *fleet.Node) string {
	switch {
	case n.OSVersion != "":
		return n.OSVersion
	case n.Info != nil:
		return n.Info.Kubelet
	}
	return "unknown"
}

// list is a list behind its count.
func list(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}
