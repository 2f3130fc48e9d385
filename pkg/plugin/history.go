package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// History is what `history -o json` prints.
type History struct {
	printed `json:",inline"`
	Node    string `json:"node"`
	// Attempts are the last ones, the oldest first.
	Attempts []Attempt `json:"attempts"`
}

// DeepCopyObject is never called: what is printed isn't kept.
func (h *History) DeepCopyObject() runtime.Object { return h }

// Attempt is one line of it.
type Attempt struct {
	Version string `json:"version"`
	// From is what the node ran before; empty where that isn't remembered.
	From    string         `json:"from,omitempty"`
	Outcome marker.Outcome `json:"outcome"`
	Reason  string         `json:"reason,omitempty"`
	Started time.Time      `json:"started"`
	Ended   time.Time      `json:"ended"`
	// Took is from the cordon to the end; of an attempt that had no cordon, from its staging.
	Took plain.Duration `json:"took"`
}

func (p *plugin) historyCommand() *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use:               "history NODE",
		Short:             "Show the last attempts to update a node",
		Args:              oneArg("a node"),
		ValidArgsFunction: p.completeNodes(withHistory),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return p.history(c.Context(), o, args[0])
		},
	}
	o.addTo(c, "json", "yaml")
	return c
}

func (p *plugin) history(ctx context.Context, o *output, name string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	n, err := readNode(ctx, client, name)
	if err != nil {
		return err
	}
	marks, _ := marker.Decode(n.Annotations)
	if n.Annotations[string(marker.KeyHistory)] != "" && marks.History == nil {
		warn(p.ErrOut, []string{fmt.Sprintf("annotation %s of node %q can't be read", marker.KeyHistory, name)})
	}
	h := &History{printed: kind("History"), Node: name, Attempts: []Attempt{}}
	for _, a := range marks.History {
		h.Attempts = append(h.Attempts, Attempt{a.Version, a.From, a.Outcome, a.Reason, a.Started.UTC(), a.Ended.UTC(), plain.Duration(a.Ended.Sub(a.Started))})
	}
	if printer := o.printer(); printer != nil {
		return printer.PrintObj(h, p.Out)
	}
	if len(h.Attempts) == 0 {
		fmt.Fprintf(p.ErrOut, "No attempt to update node %q is remembered\n", name)
		return nil
	}
	t := newTable(p.Out)
	t.row("FROM", "VERSION", "OUTCOME", "REASON", "STARTED", "ENDED", "TOOK")
	for _, a := range h.Attempts {
		t.row(a.From, a.Version, string(a.Outcome), a.Reason, moment(a.Started), moment(a.Ended), a.Took.String())
	}
	return t.w.Flush()
}
