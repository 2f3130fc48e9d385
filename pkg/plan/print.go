package plan

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// Phases returns how many nodes are in each phase. It counts the nodes that are shown, so that both agree.
func (o Plan) Phases() map[intent.Phase]int {
	counts := map[intent.Phase]int{}
	for i := range o.Nodes {
		counts[o.Nodes[i].Phase]++
	}
	return counts
}

// PhaseCounts is a line that says how many nodes are in which phase.
func (o Plan) PhaseCounts() string {
	phases := o.Phases()
	var each []string
	for _, phase := range intent.Phases() {
		if n := phases[phase]; n > 0 {
			each = append(each, fmt.Sprintf("%d %s", n, phase))
		}
	}
	nodes := fmt.Sprintf("%d nodes", len(o.Nodes))
	if len(o.Nodes) == 1 {
		nodes = "1 node"
	}
	if len(each) > 0 {
		nodes += ": " + strings.Join(each, ", ")
	}
	return nodes
}

// Counts returns how many nodes are in which phase, and how many of the fleet are out of service once the plan is
// carried out, a line each.
func (o Plan) Counts() []string {
	starting, gone := 0, 0
	for i := range o.Steps {
		switch {
		case o.Steps[i].Act == intent.ActCordon:
			starting++
		case o.Steps[i].Before == LookGone:
			gone++
		}
	}
	var of []string
	for _, part := range []struct {
		n  int
		is string
	}{{starting, "from now on"}, {o.ByOthers, "not by the operator"}, {gone, "a slot of a node that is gone"}} {
		if part.n > 0 {
			of = append(of, fmt.Sprintf("%d %s", part.n, part.is))
		}
	}
	limit := fmt.Sprintf("out of service: %d of %d allowed", o.Disrupted-o.LostUncounted+o.ByOthers, o.Limit)
	if len(of) > 0 {
		limit += " (" + strings.Join(of, ", ") + ")"
	}
	if o.LostUncounted > 0 {
		limit += fmt.Sprintf("; %d Lost not counted", o.LostUncounted)
	}
	return []string{o.PhaseCounts(), limit}
}

// Troubles returns what is wrong for more than one node, a line each: with the policy, and with versions.
func (o Plan) Troubles() []string {
	var lines []string
	if o.PolicyProblem != "" {
		lines = append(lines, "the policy is not in force: "+o.PolicyProblem)
	}
	if o.AdmissionProblem != "" {
		lines = append(lines, "warning: "+o.AdmissionProblem)
	}
	for _, w := range o.Warnings {
		lines = append(lines, "warning: "+w.String())
	}
	for _, v := range o.Stopped {
		lines = append(lines, v.Message.String())
	}
	return lines
}

// maxCell bounds what is printed of a message or a line of the plan, in bytes: both quote nodes and the API server.
const maxCell = 1024

// String returns the plan as text: what it would do next, and why each other node waits.
func (o Plan) String() string {
	var b strings.Builder
	for _, line := range append(o.Counts(), o.Troubles()...) {
		fmt.Fprintln(&b, plain.Line(line, maxCell))
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tPHASE\tVERSION\tTARGET\tNEXT\tREASON\tMESSAGE")
	for _, n := range o.Nodes {
		next := string(n.Act)
		if next == "" {
			next = "wait"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Node, n.Phase, orDash(marker.ShortVersion(n.Version)), orDash(marker.ShortVersion(n.Target)), next, n.Reason,
			plain.Line(n.Message.String(), maxCell))
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
