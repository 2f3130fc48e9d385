package policy

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// String is the plan for people: what it would do next, and why each other node waits.
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d nodes that may be unavailable are", o.InHands-o.Lent+o.Others, o.Limit)
	if o.Others > 0 {
		fmt.Fprintf(&b, ", %d of them not by the operator's doing", o.Others)
	}
	if o.Lent > 0 {
		fmt.Fprintf(&b, "; %d Lost on top", o.Lent)
	}
	b.WriteString("\n")
	if o.PolicyProblem != "" {
		fmt.Fprintf(&b, "the policy is not in force: %s\n", o.PolicyProblem)
	}
	for _, w := range o.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, v := range o.Stopped {
		fmt.Fprintf(&b, "%s\n", v.Sentence)
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tPHASE\tVERSION\tTARGET\tNEXT\tREASON\tMESSAGE")
	for _, n := range o.Nodes {
		next := string(n.Act)
		if next == "" {
			next = "wait"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Node, n.Phase, orDash(n.Version), orDash(n.Target), next, n.Reason, n.Sentence)
	}
	_ = w.Flush()
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
