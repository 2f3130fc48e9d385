package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Report is how a rollout went, by what is remembered of it.
type Report struct {
	plan.Rollout
	// Took is from its beginning to its end, or until now.
	Took plain.Duration `json:"took"`
	// Outcomes counts the nodes by theirs.
	Outcomes map[Outcome]int `json:"outcomes"`
	// OutOfService is for how long the operator kept nodes out of service, the sum of all nodes' times, and Pods how many
	// pods of workloads were on them before their drains.
	OutOfService plain.Duration `json:"outOfService"`
	Pods         int            `json:"pods"`
	// Nodes are those that the rollout is about, in the order in which they were taken out of service; those that were
	// not come last.
	Nodes []Node `json:"nodes"`
	// Failures are the attempts that failed, the oldest first.
	Failures []Failure `json:"failures"`
	// Forgotten says what is not known of it any more.
	Forgotten []string `json:"forgotten,omitempty"`
}

// Outcome is how a rollout ended for a node, or how far it is.
type Outcome string

// The outcomes, in their order.
const (
	// Updated: it runs the version.
	Updated Outcome = "updated"
	// Before: it runs the version, and no attempt of this rollout is remembered.
	Before Outcome = "before"
	// UnderWay: it is on its way to the version.
	UnderWay Outcome = "underWay"
	// Failed: its last attempt failed.
	Failed Outcome = "failed"
	// Waiting: it does not run the version yet, or any more.
	Waiting Outcome = "waiting"
)

// Outcomes is the closed list.
func Outcomes() []Outcome { return []Outcome{Updated, Before, UnderWay, Failed, Waiting} }

// Node is what is remembered of one node.
type Node struct {
	Node    string  `json:"node"`
	Group   string  `json:"group,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Reason and Message are of a node that is not updated: what it waits for now.
	Reason  plan.Reason `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	// Attempts is how many are remembered. Began is when the first took the node out of service, Ended when the last
	// ended.
	Attempts int       `json:"attempts"`
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// OutOfService and Pods are the sums of all attempts.
	OutOfService plain.Duration `json:"outOfService"`
	Pods         int            `json:"pods"`
}

// Failure is an attempt that failed.
type Failure struct {
	Node   string    `json:"node"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// Seen is a node as it is now.
type Seen struct {
	plan.Decision
	// Runs is the version that its kubelet reports, and Unreadable: what it remembers can't be read.
	Runs       string
	History    []marker.Attempt
	Unreadable bool
}

// Of returns the report on a rollout. The nodes are those in the operator's care now.
func Of(r plan.Rollout, nodes []Seen, now time.Time) Report {
	end := r.Ended
	if r.UnderWay() {
		end = now
	}
	out := Report{Rollout: r, Took: plain.Duration(max(0, end.Sub(r.Began)).Round(time.Second)), Outcomes: map[Outcome]int{}, Nodes: []Node{}, Failures: []Failure{}}
	full, unreadable := 0, 0
	for i := range nodes {
		n, attempts := &nodes[i], nodes[i].of(&r)
		if n.Unreadable {
			unreadable++
		}
		if len(n.History) >= marker.HistoryLength && !n.History[0].Started.Before(r.Began) {
			full++
		}
		one := n.report(r.Version, attempts)
		if one.Outcome == "" {
			continue
		}
		for _, a := range attempts {
			if a.Outcome == marker.OutcomeFailed {
				out.Failures = append(out.Failures, Failure{n.Node, a.Ended.UTC(), a.Reason})
			}
		}
		out.Outcomes[one.Outcome]++
		out.OutOfService += one.OutOfService
		out.Pods += one.Pods
		out.Nodes = append(out.Nodes, one)
	}
	slices.SortFunc(out.Nodes, func(a, b Node) int {
		if a.Began.IsZero() != b.Began.IsZero() {
			return cmp.Compare(b.Began.Unix(), a.Began.Unix())
		}
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Node, b.Node))
	})
	slices.SortFunc(out.Failures, func(a, b Failure) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node)) })
	out.Forgotten = forgotten(&r, &out, full, unreadable)
	return out
}

// of are the attempts of a node that belong to a rollout.
func (n *Seen) of(r *plan.Rollout) []marker.Attempt {
	var all []marker.Attempt
	for _, a := range n.History {
		if a.Version == r.Version && a.Cycle == "" && !a.Ended.Before(r.Began) && (r.UnderWay() || !a.Started.After(r.Ended)) {
			all = append(all, a)
		}
	}
	return all
}

// report is what is said of one node; without an outcome the rollout is not about it.
func (n *Seen) report(version string, attempts []marker.Attempt) Node {
	one := Node{Node: n.Node, Group: n.Group, Attempts: len(attempts)}
	for _, a := range attempts {
		one.OutOfService += plain.Duration(time.Duration(a.Out) * time.Second)
		one.Pods += a.Pods
		one.Ended = a.Ended.UTC()
	}
	if len(attempts) > 0 {
		one.Began = attempts[0].Started.UTC()
	}
	switch last := len(attempts) - 1; {
	case n.Runs == version && last >= 0:
		one.Outcome = Updated
		return one
	case n.Runs == version:
		one.Outcome = Before
		return one
	case n.Target == version && underWay(&n.Decision):
		one.Outcome = UnderWay
	case last >= 0 && attempts[last].Outcome == marker.OutcomeFailed:
		one.Outcome = Failed
	case last >= 0 || n.Target == version:
		one.Outcome = Waiting
	default:
		return one
	}
	one.Reason, one.Message = n.Decision.Reason, n.Decision.Message.String()
	return one
}

// forgotten says what is not known of a rollout.
func forgotten(r *plan.Rollout, out *Report, full, unreadable int) []string {
	var said []string
	if full > 0 {
		said = append(said, fmt.Sprintf("%d nodes have had more attempts than the %d that a node remembers: earlier ones are not counted", full, marker.HistoryLength))
	}
	if unreadable > 0 {
		said = append(said, fmt.Sprintf("what %d nodes remember can't be read", unreadable))
	}
	if here := len(out.Nodes); r.Most > here {
		said = append(said, fmt.Sprintf("%d nodes were to go to it, and %d of them are gone or in no care any more", r.Most, r.Most-here))
	}
	if r.Unseen > 0 {
		said = append(said, fmt.Sprintf("what nodes waited for was not seen for %s, when no controller led or a new one took over",
			plain.Duration(time.Duration(r.Unseen)*time.Second)))
	}
	return said
}
