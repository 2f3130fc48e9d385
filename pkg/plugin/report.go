package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

// Report is what `report -o json` prints.
type Report struct {
	printed `json:",inline"`
	Time    time.Time `json:"time"`
	rollout.Report
}

// DeepCopyObject is never called: what is printed isn't kept.
func (r *Report) DeepCopyObject() runtime.Object { return r }

func (p *plugin) reportCommand() *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use:   "report [VERSION]",
		Short: "Show how a rollout went: nodes, failures, time out of service, and what it waited for",
		Long: "Show how the rollout of a version went, or goes: the one that began last, if no version is given. It is made from what the\n" +
			"leading controller and the nodes remember, and says what they have forgotten. Nothing is written.",
		Example:           "  kubectl bottlerocket report\n  kubectl bottlerocket report 1.55.0 -o markdown",
		Args:              oneArgAtMost,
		ValidArgsFunction: p.completeOfferedVersions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return p.report(c.Context(), o, strings.TrimPrefix(strings.Join(args, ""), "v"))
		},
	}
	o.addTo(c, "json", "yaml", "markdown")
	return c
}

// reported are the versions whose rollouts are remembered, the latest first.
func reported(out *plan.Plan) []string {
	var versions []string
	for _, r := range slices.Backward(out.Rollouts) {
		if !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	return versions
}

func (p *plugin) report(ctx context.Context, o *output, version string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	out, err := p.ask(ctx, client, nil)
	switch {
	case err != nil:
		return err
	case out.Rollouts == nil:
		return errors.New("the leading controller is of an older version, which keeps no account of rollouts")
	case len(out.Rollouts) == 0:
		return errors.New("no rollout is remembered: none has begun since the controller keeps account of them")
	}
	at := len(out.Rollouts) - 1
	for at >= 0 && version != "" && out.Rollouts[at].Version != version {
		at--
	}
	if at < 0 {
		return errors.Errorf("no rollout of %s is remembered, but of %s", version, strings.Join(reported(&out), ", "))
	}
	s, err := p.look(ctx, client)
	if err != nil {
		return err
	}
	r := &Report{kind("Report"), out.Time, rollout.Of(out.Rollouts[at], seen(&out, s.nodes), out.Time)}
	switch printer := o.printer(); {
	case printer != nil:
		return printer.PrintObj(r, p.Out)
	case o.format == "markdown":
		_, err = io.WriteString(p.Out, r.markdown())
		return err
	}
	return r.print(p)
}

// seen brings what the plan says of each node together with what the node remembers.
func seen(out *plan.Plan, nodes []fleet.Node) []rollout.Seen {
	byName := make(map[string]*fleet.Node, len(nodes))
	for i := range nodes {
		byName[nodes[i].Name] = &nodes[i]
	}
	var all []rollout.Seen
	for _, d := range out.Nodes {
		n := byName[d.Node]
		if n == nil {
			continue
		}
		unreadable := slices.ContainsFunc(n.Problems, func(problem marker.Problem) bool { return problem.Key == marker.KeyHistory })
		all = append(all, rollout.Seen{Decision: d, Runs: n.OSVersion, History: n.Marks.History, Unreadable: unreadable})
	}
	return all
}

// head are the lines that say it all.
func (r *Report) head() []string {
	end := "ended " + moment(r.Ended)
	if r.UnderWay() {
		end = "is not over"
	}
	var outcomes []string
	all := 0
	for _, o := range rollout.Outcomes() {
		if n := r.Outcomes[o]; n > 0 {
			all += n
			outcomes = append(outcomes, fmt.Sprintf("%d %s", n, outcomeWords[o]))
		}
	}
	lines := []string{
		fmt.Sprintf("The rollout of %s began %s and %s: %s", r.Version, moment(r.Began), end, r.Took),
		strings.TrimSuffix(fmt.Sprintf("%d nodes: %s", all, strings.Join(outcomes, ", ")), ": "),
		fmt.Sprintf("Out of service: %s in sum; %d pods of workloads were on them before their drains", r.OutOfService, r.Pods),
	}
	if waits := r.waits(); len(waits) > 0 {
		lines = append(lines, "Waited, in sum over the nodes: "+strings.Join(waits, ", "))
	}
	return lines
}

var outcomeWords = map[rollout.Outcome]string{rollout.Updated: "updated", rollout.Before: "ran it before", rollout.UnderWay: "under way",
	rollout.Failed: "failed", rollout.Waiting: "not updated"}

// waits are what nodes waited for, the longest first.
func (r *Report) waits() []string {
	type wait struct {
		reason  plan.Reason
		seconds int
	}
	var all []wait
	for reason, seconds := range r.Waits {
		all = append(all, wait{reason, seconds})
	}
	slices.SortFunc(all, func(a, b wait) int {
		if a.seconds != b.seconds {
			return b.seconds - a.seconds
		}
		return strings.Compare(string(a.reason), string(b.reason))
	})
	var said []string
	for _, w := range all {
		said = append(said, fmt.Sprintf("%s %s", w.reason, plain.Duration(time.Duration(w.seconds)*time.Second)))
	}
	return said
}

// nodeCells are the columns of a node, under nodeHead.
var nodeHead = []string{"NODE", "GROUP", "OUTCOME", "ATTEMPTS", "OUT FROM", "ENDED", "OUT", "PODS", "REASON"}

func nodeCells(n *rollout.Node) []string {
	cells := []string{n.Node, n.Group, outcomeWords[n.Outcome], strconv.Itoa(n.Attempts), moment(n.Began), moment(n.Ended), "", "", string(n.Reason)}
	if n.Attempts > 0 {
		cells[6], cells[7] = n.OutOfService.String(), strconv.Itoa(n.Pods)
	}
	return cells
}

func (r *Report) print(p *plugin) error {
	printLines(p.Out, r.head())
	fmt.Fprintln(p.Out)
	t := newTable(p.Out)
	t.row(nodeHead...)
	for i := range r.Nodes {
		t.row(nodeCells(&r.Nodes[i])...)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	for _, section := range r.sections() {
		fmt.Fprintf(p.Out, "\n%s:\n", section.title)
		printLines(p.Out, section.lines)
	}
	return nil
}

// section is a list below the nodes.
type section struct {
	title string
	lines []string
}

func (r *Report) sections() []section {
	var failures, waiting []string
	for _, f := range r.Failures {
		failures = append(failures, fmt.Sprintf("%s: %s at %s", f.Node, f.Reason, moment(f.At)))
	}
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Message != "" {
			waiting = append(waiting, fmt.Sprintf("%s: %s: %s", n.Node, n.Reason, n.Message))
		}
	}
	all := []section{{"Failed attempts", failures}, {"Not updated, as of now", waiting}, {"Not known", r.Forgotten}}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.lines) == 0 })
}

// markdown is the report for a ticket.
func (r *Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Rollout of %s\n\n", escapeMarkdown(r.Version))
	for _, l := range r.head() {
		fmt.Fprintf(&b, "- %s\n", escapeMarkdown(l))
	}
	row := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + escapeMarkdown(c) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n")
	row(nodeHead)
	b.WriteString(strings.Repeat("|---", len(nodeHead)) + "|\n")
	for i := range r.Nodes {
		row(nodeCells(&r.Nodes[i]))
	}
	for _, section := range r.sections() {
		fmt.Fprintf(&b, "\n### %s\n\n", section.title)
		for _, l := range section.lines {
			fmt.Fprintf(&b, "- %s\n", escapeMarkdown(l))
		}
	}
	return b.String()
}

// escapeMarkdown makes a text one line that no reader of Markdown takes for markup, a link, or a mention: that has no
// escape, so the character of full width stands for it.
func escapeMarkdown(said string) string {
	return inMarkdown.Replace(line(said))
}

var inMarkdown = func() *strings.Replacer {
	pairs := []string{"@", "\uff20", "://", "\\:\\/\\/", "www.", "www\\."}
	for _, c := range "\\`*_{}[]<>#|!~$&" {
		pairs = append(pairs, string(c), "\\"+string(c))
	}
	return strings.NewReplacer(pairs...)
}()
