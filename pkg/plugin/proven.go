package plugin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Proven is what `proven -o json` prints.
type Proven struct {
	printed `json:",inline"`
	Time    time.Time `json:"time"`
	// Version is the one that all groups have proven; empty if there is none, or if they have proven several.
	Version string `json:"version,omitempty"`
	// Since is since when the last node of all of them has run it.
	Since time.Time `json:"since,omitzero"`
	// Items are the groups.
	Items []plan.Proof `json:"items"`
}

// DeepCopyObject is never called: what is printed isn't kept.
func (p *Proven) DeepCopyObject() runtime.Object { return p }

// errNotProven ends the command where nothing is proven, which stands above it.
var errNotProven = errors.New("no version is proven")

type provenOptions struct {
	output
	groups []string
	lasts  time.Duration
}

func (p *plugin) provenCommand() *cobra.Command {
	o := &provenOptions{}
	c := &cobra.Command{
		Use:   "proven",
		Short: "Show which version is proven, for the next cluster to be pinned to",
		Long: "Show which version every node in the operator's care runs, in the groups that are named or in the whole fleet, and has run\n" +
			"for its group's soak, without a failure of it on any. Nothing is written.\n" +
			"The status is 0 if there is one, 1 if there is none, and 2 if that could not be looked at.",
		Example: "  kubectl bottlerocket proven\n  kubectl bottlerocket proven --group canary --for 24h -o name",
		Args:    noArgs, Annotations: map[string]string{statusOfErrors: "2"},
		RunE: func(c *cobra.Command, _ []string) error { return p.proven(c.Context(), o) },
	}
	o.addTo(c, "json", "yaml", "name")
	c.Flags().StringSliceVar(&o.groups, "group", nil, "Groups of the policy, instead of the whole fleet")
	_ = c.RegisterFlagCompletionFunc("group", p.completeGroups)
	c.Flags().DurationVar(&o.lasts, "for", 0, "For how long each node must have run it, where that is longer than the soak")
	return c
}

func (p *plugin) proven(ctx context.Context, o *provenOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	out, err := p.ask(ctx, client, nil)
	if err != nil {
		return err
	}
	if out.Proofs == nil {
		return errors.New("the leading controller is of an older version, which doesn't say what is proven")
	}
	result, err := o.judge(&out)
	if err != nil {
		return err
	}
	switch printer := o.printer(); {
	case printer != nil:
		err = printer.PrintObj(result, p.Out)
	case o.format == "name":
		result.name(p)
	default:
		err = result.print(p)
	}
	if err == nil && result.Version == "" {
		return errNotProven
	}
	return err
}

// judge takes the groups that are named, and says what they have proven together.
func (o *provenOptions) judge(out *plan.Plan) (*Proven, error) {
	result := &Proven{printed: kind("Proven"), Time: out.Time, Items: []plan.Proof{}}
	var names []string
	for _, proof := range out.Proofs {
		if proof.Group != "" {
			names = append(names, proof.Group)
		}
		// A group without a node shows nothing; of the whole fleet it has no part.
		if slices.Contains(o.groups, proof.Group) || len(o.groups) == 0 && (proof.Nodes > 0 || proof.Reason == plan.LackPolicy) {
			result.Items = append(result.Items, o.longEnough(proof, out.Time))
		}
	}
	for _, name := range o.groups {
		if name == "" || !slices.Contains(names, name) {
			return nil, errors.Errorf("group %q is not in the policy in force: it has %q", name, names)
		}
	}
	for i, proof := range result.Items {
		if !proof.Proven || proof.Version != result.Items[0].Version {
			result.Version, result.Since = "", time.Time{}
			break
		}
		if i == 0 {
			result.Version = proof.Version
		}
		if proof.Since.After(result.Since) {
			result.Since = proof.Since
		}
	}
	return result, nil
}

// longEnough takes a proof back that is younger than what is asked for.
func (o *provenOptions) longEnough(proof plan.Proof, now time.Time) plan.Proof {
	if end := proof.Since.Add(o.lasts); proof.Proven && end.After(now) {
		proof.Proven, proof.Reason, proof.NotBefore = false, plan.LackTime, end
		proof.Message = plan.Messagef("all nodes must run %s until %s", proof.Version, plan.Clock(end))
	}
	return proof
}

// whyNot is why nothing is proven, a line for each group.
func (r *Proven) whyNot() []string {
	var lines []string
	for _, proof := range r.Items {
		of := "group " + proof.Group
		if proof.Group == "" {
			of = "nodes in no group"
		}
		said := of + ": " + proof.Version + " is proven"
		if !proof.Proven {
			said = fmt.Sprintf("%s: %s: %s", of, proof.Reason, proof.Message)
		}
		lines = append(lines, said)
	}
	if len(lines) == 0 {
		lines = append(lines, string(plan.LackNode)+": no node is in the operator's care")
	}
	return lines
}

// name prints the version, and nothing where there is none: why stands on standard error.
func (r *Proven) name(p *plugin) {
	if r.Version != "" {
		fmt.Fprintln(p.Out, line(r.Version))
		return
	}
	printLines(p.ErrOut, r.whyNot())
}

func (r *Proven) print(p *plugin) error {
	if len(r.Items) == 0 {
		printLines(p.ErrOut, r.whyNot())
		return nil
	}
	t := newTable(p.Out)
	t.row("GROUP", "NODES", "VERSION", "PROVEN", "SINCE", "WHY-NOT")
	for _, proof := range r.Items {
		why, since := "", ""
		if proof.Version != "" {
			since = moment(proof.Since)
		}
		if !proof.Proven {
			why = string(proof.Reason) + ": " + proof.Message.String()
		}
		t.row(proof.Group, strconv.Itoa(proof.Nodes), proof.Version, yes(proof.Proven), since, why)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	if r.Version == "" && !slices.ContainsFunc(r.Items, func(proof plan.Proof) bool { return !proof.Proven }) {
		printLines(p.ErrOut, []string{string(plan.LackOne) + ": each group has proven a version, and not all the same"})
	}
	return nil
}
