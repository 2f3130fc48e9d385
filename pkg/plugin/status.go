package plugin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// StatusList is what `status -o json` prints.
type StatusList struct {
	printed `json:",inline"`
	Items   []Status `json:"items"`
}

// DeepCopyObject is never called: what is printed isn't kept.
func (l *StatusList) DeepCopyObject() runtime.Object { return l }

// Status is one node.
type Status struct {
	printed `json:",inline"`
	Node    string       `json:"node"`
	Group   string       `json:"group,omitempty"`
	Phase   intent.Phase `json:"phase"`
	// Version is the one that runs, Target the one that the node goes to or is offered.
	Version string `json:"version,omitempty"`
	Target  string `json:"target,omitempty"`
	// attempt is the version that the controller has asked of the node; empty while it only is offered one.
	attempt string
	// Since is when the phase began.
	Since time.Time `json:"since,omitzero"`
	// WaitingFor is empty where only the plan knows.
	WaitingFor WaitingFor `json:"waitingFor,omitzero"`

	Ready    bool `json:"ready"`
	Cordoned bool `json:"cordoned"`
	// OSVersion and BootID are reported by the kubelet.
	OSVersion  string `json:"osVersion,omitempty"`
	BootID     string `json:"bootID,omitempty"`
	AgentReady bool   `json:"agentReady"`
	// Answer and Message are the agent's.
	Answer  marker.State `json:"answer,omitempty"`
	Message string       `json:"message,omitempty"`
	// Paused is the reason of the node's own pause.
	Paused  *string         `json:"paused,omitempty"`
	Failure *marker.Failure `json:"failure,omitempty"`
}

// WaitingFor is why a node gets no further, as its Node says.
type WaitingFor struct {
	Reason  plan.Reason `json:"reason"`
	Message string      `json:"message"`
	// NotBefore is when that may be over, by the clock alone.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

func (w WaitingFor) String() string {
	if w.Reason == "" {
		return ""
	}
	return string(w.Reason) + ": " + w.Message
}

// DeepCopyObject is never called: what is printed isn't kept.
func (s *Status) DeepCopyObject() runtime.Object { return s }

type statusOptions struct {
	output
	selector string
	watch    bool
	names    []string
	labels   labels.Selector
}

func (p *plugin) statusCommand() *cobra.Command {
	o := &statusOptions{}
	c := &cobra.Command{
		Use:   "status [NODE...]",
		Short: "Show all nodes in the operator's care",
		Long: "Show all nodes in the operator's care, as their Nodes say. What more a node waits for, 'kubectl bottlerocket plan' says.\n" +
			"Nothing is written.",
		Example: "  kubectl bottlerocket status\n  kubectl bottlerocket status -o wide --watch\n" +
			"  kubectl bottlerocket status -l topology.kubernetes.io/zone=eu-central-1a -o json",
		ValidArgsFunction: p.completeNodes(inCare),
		RunE: func(c *cobra.Command, args []string) error {
			o.names = args
			if err := o.validate(); err != nil {
				return err
			}
			return p.status(c.Context(), o)
		},
	}
	o.addTo(c, "wide", "json", "yaml")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "Label selector of the nodes to show")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print nodes again as they change")
	return c
}

func (o *statusOptions) validate() (err error) {
	if len(o.names) > 0 && o.selector != "" {
		return errors.New("nodes and a selector exclude each other: give one of them")
	}
	if o.labels, err = labels.Parse(o.selector); err != nil {
		return errors.Errorf("selector %q: %v", o.selector, err)
	}
	return o.output.validate()
}

func (p *plugin) status(ctx context.Context, o *statusOptions) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	if o.watch {
		return p.watchStatus(ctx, client, o)
	}
	s, err := p.look(ctx, client)
	if err != nil {
		return err
	}
	items, err := o.choose(s)
	if err != nil {
		return err
	}
	warn(p.ErrOut, s.notes)
	if printer := o.printer(); printer != nil {
		return printer.PrintObj(&StatusList{kind("StatusList"), items}, p.Out)
	}
	if len(items) == 0 {
		fmt.Fprintf(p.ErrOut, "No nodes found; label the ones to update with %s=%s\n", marker.KeyInterfaceVersion, fleet.InterfaceUpdateAPI)
		return nil
	}
	t := newTable(p.Out)
	t.row(o.header()...)
	for i := range items {
		t.row(o.row(s.now, &items[i])...)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	printLines(p.ErrOut, []string{phases(items)})
	return nil
}

// wants reports whether a node is asked for.
func (o *statusOptions) wants(n *fleet.Node) bool {
	return (len(o.names) == 0 || slices.Contains(o.names, n.Name)) && o.labels.Matches(labels.Set(n.Labels))
}

// choose returns the nodes that are asked for, sorted by name.
func (o *statusOptions) choose(s *snapshot) ([]Status, error) {
	items, known := []Status{}, map[string]bool{}
	for i := range s.nodes {
		n := &s.nodes[i]
		known[n.Name] = true
		if cared(n) && o.wants(n) {
			items = append(items, s.status(n))
		}
	}
	for _, name := range o.names {
		switch {
		case !known[name]:
			return nil, errors.Errorf("node %q not found", name)
		case !slices.ContainsFunc(items, func(s Status) bool { return s.Node == name }):
			return nil, errors.Errorf("node %q is not in the operator's care: label it with %s=%s", name, marker.KeyInterfaceVersion, fleet.InterfaceUpdateAPI)
		}
	}
	return items, nil
}

// phases counts the nodes that are shown.
func phases(items []Status) string {
	var p plan.Plan
	for i := range items {
		p.Nodes = append(p.Nodes, plan.Decision{Phase: items[i].Phase})
	}
	return p.PhaseCounts()
}

func (o *statusOptions) header() []string {
	h := []string{"NODE", "GROUP", "PHASE", "VERSION", "TARGET", "SINCE"}
	if o.wide() {
		h = append(h, "TARGET-VERSION", "TARGET-STATE", "READY", "CORDONED", "OS-VERSION", "BOOT", "FAILURES", "RETRY-AFTER", "MESSAGE")
	}
	return append(h, "WAITING-FOR")
}

func (o *statusOptions) row(now time.Time, s *Status) []string {
	r := []string{s.Node, s.Group, string(s.Phase), marker.ShortVersion(s.Version), marker.ShortVersion(s.Target), age(now, s.Since)}
	if o.wide() {
		boot, _, _ := strings.Cut(s.BootID, "-")
		failures, after := "0", ""
		if f := s.Failure; f != nil {
			failures = strconv.Itoa(f.Count)
			if f.RetryAfter.After(now) {
				after = moment(f.RetryAfter)
			}
		}
		r = append(r, marker.ShortVersion(s.attempt), string(targetState(s.Phase)), yes(s.Ready), yes(s.Cordoned), s.OSVersion, boot, failures, after, s.Message)
	}
	return append(r, s.WaitingFor.String())
}

// targetState is the phase that a node reaches once what was asked of it, or what the controller does to it, is done:
// its own if that is nothing. Users of Brupop know it as the target state.
func targetState(p intent.Phase) intent.Phase {
	switch p {
	case intent.PhaseStaging:
		return intent.PhaseStaged
	case intent.PhaseDraining:
		return intent.PhaseRebooting
	case intent.PhaseRebooting, intent.PhaseLost:
		return intent.PhaseReturning
	case intent.PhaseReturning:
		return intent.PhaseVerifying
	case intent.PhaseVerifying:
		return intent.PhaseUpToDate
	case intent.PhaseNew, intent.PhaseResetting:
		return intent.PhaseWaiting
	case intent.PhaseWaiting, intent.PhaseUpToDate, intent.PhaseStaged:
		return p
	case intent.PhaseUnreadable:
	}
	return ""
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
