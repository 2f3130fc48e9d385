package plugin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// VersionList is what `versions -o json` prints.
type VersionList struct {
	printed `json:",inline"`
	Time    time.Time `json:"time"`
	// Items are the versions, the newest first. LeftOut is how many more some node names.
	Items   []plan.Version `json:"items"`
	LeftOut int            `json:"leftOut,omitempty"`
}

// DeepCopyObject is never called: what is printed isn't kept.
func (l *VersionList) DeepCopyObject() runtime.Object { return l }

type versionsOptions struct {
	output
	all bool
}

func (p *plugin) versionsCommand() *cobra.Command {
	o := &versionsOptions{}
	c := &cobra.Command{
		Use:   "versions",
		Short: "Show which versions run, which are offered to how many nodes, and when to the others",
		Long: "Show which versions of Bottlerocket run, how many nodes are offered each, how many would go to it, and whether the policy allows\n" +
			"that; and by when the waves of a release are open to the nodes that are not offered it yet. Versions that are lower than all\n" +
			"that run are left out. Nothing is written.",
		Example: "  kubectl bottlerocket versions\n  kubectl bottlerocket versions --all -o json",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return p.showVersions(c.Context(), o) },
	}
	o.addTo(c, "json", "yaml")
	c.Flags().BoolVar(&o.all, "all", false, "Show also versions that are lower than all that run")
	return c
}

func (p *plugin) showVersions(ctx context.Context, o *versionsOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	list, err := p.versionList(ctx, client)
	if err != nil {
		return err
	}
	if !o.all {
		list.Items = plan.FromLowestRun(list.Items)
	}
	if printer := o.printer(); printer != nil {
		return printer.PrintObj(list, p.Out)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(p.ErrOut, "No version of Bottlerocket is known: no node in the operator's care runs any, or is offered one")
		return nil
	}
	return p.printVersions(list)
}

// versionList asks the leader, and where it can't be asked the Nodes, which say less.
func (p *plugin) versionList(ctx context.Context, client kubernetes.Interface) (*VersionList, error) {
	out, err := p.ask(ctx, client, nil)
	if err == nil && out.Versions == nil {
		err = errors.New("the leading controller is of an older version, which doesn't say")
	}
	list := &VersionList{kind("VersionList"), out.Time, out.Versions, out.VersionsLeftOut}
	if err == nil {
		return list, nil
	}
	s, failed := p.look(ctx, client)
	if failed != nil {
		return nil, failed
	}
	warn(p.ErrOut, []string{"FAILED, SINCE and TARGET are not known: " + err.Error()})
	var nodes []*fleet.Node
	for i := range s.nodes {
		if n := &s.nodes[i]; cared(n) {
			nodes = append(nodes, n)
		}
	}
	list.Time = s.now.UTC().Truncate(time.Second)
	list.Items, list.LeftOut = plan.VersionsOf(nodes, nil, s.now)
	return list, nil
}

func (p *plugin) printVersions(list *VersionList) error {
	t := newTable(p.Out)
	t.row("VERSION", "NODES", "OFFERED", "CHOSEN", "FAILED", "SINCE", "TARGET")
	var notes []string
	for i := range list.Items {
		v := &list.Items[i]
		failed := ""
		if v.Failed != nil {
			failed = strconv.Itoa(*v.Failed)
		}
		t.row(v.Version, strconv.Itoa(v.Nodes), strconv.Itoa(v.Offered), strconv.Itoa(v.Chosen), failed, age(list.Time, v.Since), targetCell(v.Target))
		for _, n := range v.Notes {
			notes = append(notes, n.String())
		}
	}
	if list.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%d more versions are left out, which the fewest nodes name", list.LeftOut))
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	if len(notes) > 0 {
		fmt.Fprintln(p.Out)
	}
	printLines(p.Out, notes)
	return nil
}

// targetCell says whether nodes may go to a version, or why not.
func targetCell(t *plan.Target) string {
	switch {
	case t == nil:
		return ""
	case t.Allowed:
		return yes(true)
	}
	return string(t.Reason) + ": " + t.Message.String()
}
