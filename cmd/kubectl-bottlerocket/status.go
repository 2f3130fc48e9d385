package main

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
	// Since is when the phase began.
	Since      time.Time  `json:"since,omitzero"`
	WaitingFor WaitingFor `json:"waitingFor"`

	Ready    bool `json:"ready"`
	Cordoned bool `json:"cordoned"`
	// OSVersion and BootID are the kubelet's word.
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

// WaitingFor is why a node gets no further.
type WaitingFor struct {
	Reason  plan.Reason `json:"reason"`
	Message string      `json:"message"`
	// NotBefore is when that may be over, by the clock alone.
	NotBefore time.Time `json:"notBefore,omitzero"`
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
	l, err := p.look(ctx, client)
	if err != nil {
		return err
	}
	items, err := o.choose(l)
	if err != nil {
		return err
	}
	warn(p.ErrOut, l.notes)
	if printer := o.printer(); printer != nil {
		tell(p.ErrOut, l.outcome.Troubles())
		return printer.PrintObj(&StatusList{kind("StatusList"), items}, p.Out)
	}
	if len(items) == 0 {
		fmt.Fprintf(p.ErrOut, "No nodes found; label the ones to update with %s=%s\n", marker.KeyInterfaceVersion, fleet.InterfaceUpdateAPI)
		return nil
	}
	t := newTable(p.Out)
	t.row(o.header()...)
	for i := range items {
		t.row(o.row(l.now, &items[i])...)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	tell(p.ErrOut, append(l.counts(items), l.outcome.Troubles()...))
	return nil
}

// wants tells if a node is asked for.
func (o *statusOptions) wants(n *fleet.Node) bool {
	return (len(o.names) == 0 || slices.Contains(o.names, n.Name)) && o.labels.Matches(labels.Set(n.Labels))
}

// choose returns the nodes that are asked for, sorted by name.
func (o *statusOptions) choose(l *planned) ([]Status, error) {
	items := []Status{}
	for i := range l.outcome.Nodes {
		s := &l.outcome.Nodes[i]
		if n := l.nodes[s.Node]; n != nil && o.wants(n) {
			items = append(items, l.status(n, s))
		}
	}
	for _, name := range o.names {
		switch {
		case l.nodes[name] == nil:
			return nil, errors.Errorf("node %q not found", name)
		case !slices.ContainsFunc(items, func(s Status) bool { return s.Node == name }):
			return nil, errors.Errorf("node %q is not in the operator's care: label it with %s=%s", name, marker.KeyInterfaceVersion, fleet.InterfaceUpdateAPI)
		}
	}
	return items, nil
}

func (l *planned) status(n *fleet.Node, s *plan.Decision) Status {
	m := &n.Marks
	out := Status{
		printed: kind("Status"), Node: n.Name, Group: l.settings.GroupOf(n.Labels), Phase: s.Phase, Version: s.Version, Target: target(n),
		Since: since(n), WaitingFor: l.waitingFor(n, s),
		Ready: n.Ready, Cordoned: n.Unschedulable, OSVersion: n.OSVersion, BootID: n.BootID, AgentReady: n.AgentReady,
		Answer: m.Report.Answer(m.Intent.ID), Message: m.Report.Message, Failure: m.Failure,
	}
	if m.Paused {
		out.Paused = &m.PausedReason
	}
	return out
}

// target is the version that a node goes to, or is offered.
func target(n *fleet.Node) string {
	m := &n.Marks
	switch {
	case m.Intent.Target != "":
		return m.Intent.Target
	case m.Report.Available != m.Report.Current:
		return m.Report.Available
	}
	return ""
}

// since is when a node's phase began, by the controller's marks. A staged node counts from the beginning of its
// staging.
func since(n *fleet.Node) time.Time {
	m := &n.Marks
	switch d := m.Disruption; {
	case d == nil || len(n.Problems) > 0:
	case n.Phase() == intent.PhaseDraining:
		return d.Since
	case n.Phase() == intent.PhaseVerifying && d.Returned != nil:
		return *d.Returned
	}
	return m.Intent.Time
}

func (o *statusOptions) header() []string {
	h := []string{"NODE", "GROUP", "PHASE", "VERSION", "TARGET", "SINCE"}
	if o.wide() {
		h = append(h, "READY", "CORDONED", "OS-VERSION", "BOOT", "FAILURES", "RETRY-AFTER", "MESSAGE")
	}
	return append(h, "WAITING-FOR")
}

func (o *statusOptions) row(now time.Time, s *Status) []string {
	r := []string{s.Node, s.Group, string(s.Phase), s.Version, s.Target, age(now, s.Since)}
	if o.wide() {
		boot, _, _ := strings.Cut(s.BootID, "-")
		failures, after := "0", ""
		if f := s.Failure; f != nil {
			failures = strconv.Itoa(f.Count)
			if f.RetryAfter.After(now) {
				after = moment(f.RetryAfter)
			}
		}
		r = append(r, yes(s.Ready), yes(s.Cordoned), s.OSVersion, boot, failures, after, s.Message)
	}
	return append(r, string(s.WaitingFor.Reason)+": "+s.WaitingFor.Message)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// counts are the plan's, of the nodes that are shown.
func (l *planned) counts(items []Status) []string {
	shown := make(map[string]bool, len(items))
	for i := range items {
		shown[items[i].Node] = true
	}
	of := l.outcome
	of.Nodes = slices.DeleteFunc(slices.Clone(of.Nodes), func(s plan.Decision) bool { return !shown[s.Node] })
	return of.Counts()
}

// tell prints a plan's own lines.
func tell(out io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(out, line(l))
	}
}
