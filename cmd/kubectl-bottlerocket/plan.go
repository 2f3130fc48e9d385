package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// Plan is what `plan -o json` prints.
type Plan struct {
	printed `json:",inline"`
	// Time is when it was made, and Policy what by: a file, the ConfigMap, or the defaults.
	Time   time.Time `json:"time"`
	Policy string    `json:"policy"`
	// Live: it is the controller's own, and not made here in its place.
	Live bool `json:"live"`
	// Warnings are what to know before the rest is believed, and what the policy allows and may not mean.
	Warnings []string `json:"warnings"`
	// PolicyProblem is why the policy is not in force.
	PolicyProblem string `json:"policyProblem,omitempty"`
	// Lost is how many nodes are; Lent of them are on top of the budgets.
	Lost int `json:"lost"`
	Lent int `json:"lent"`
	// Budgets are empty where it isn't known which policy is in force.
	Budgets []plan.Usage `json:"budgets"`
	// Groups in the policy's order; the last one, without a name, are the nodes in no group. Where the policy that stands
	// there is not in force there are none.
	Groups  []Wave                `json:"groups"`
	Stopped []plan.StoppedVersion `json:"stopped"`
	// Starts are the steps that would be taken now, in their order, and Waits all other nodes, by name.
	Starts []Start `json:"starts"`
	Waits  []Wait  `json:"waits"`
	// Next is when the plan may differ, by the clock alone.
	Next time.Time `json:"next,omitzero"`

	// counts and troubles are the controller's own words.
	counts, troubles []string
}

// DeepCopyObject is never called: what is printed isn't kept.
func (p *Plan) DeepCopyObject() runtime.Object { return p }

// Start is one step.
type Start struct {
	Node    string      `json:"node"`
	Group   string      `json:"group,omitempty"`
	Act     intent.Act  `json:"act"`
	Version string      `json:"version,omitempty"`
	Target  string      `json:"target,omitempty"`
	Reason  plan.Reason `json:"reason"`
	Message string      `json:"message"`
}

// Wait is a node that gets no step.
type Wait struct {
	Node    string       `json:"node"`
	Group   string       `json:"group,omitempty"`
	Phase   intent.Phase `json:"phase"`
	Version string       `json:"version,omitempty"`
	Target  string       `json:"target,omitempty"`
	// NotBefore of it takes the group's window into account too: when the node could be taken out of service.
	WaitingFor
}

type planOptions struct {
	output
	file string
}

func (p *plugin) planCommand() *cobra.Command {
	o := &planOptions{}
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what would start now, and for every other node why not and when it could",
		Long: "Show what the controller would start now and in which order, and for every other node why not and when it could.\n" +
			"It reads and writes nothing.",
		Example: "  kubectl bottlerocket plan\n  kubectl bottlerocket plan --policy policy.yaml",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return p.plan(c.Context(), o) },
	}
	o.addTo(c, "wide", "json", "yaml")
	c.Flags().StringVar(&o.file, "policy", "", "Plan by this policy file, - for standard input, instead of the policy in force")
	_ = c.MarkFlagFilename("policy", "yaml", "yml")
	return c
}

// noArgs says in which words a command takes none.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errors.Errorf("%q is one argument too many; see '%s --help'", args[0], c.CommandPath())
	}
	return nil
}

func (p *plugin) plan(ctx context.Context, o *planOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	content, err := p.policyFile(o.file)
	if err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	now := p.now()
	lead := findLeader(ctx, client, p.namespace(), now)
	by := o.file
	if by == "-" {
		by = "standard input"
	}
	var instead policy.Settings
	if o.file != "" {
		if instead, err = file.Decode(content, lead.options.Policy, time.LoadLocation); err != nil {
			return mistakes{by, file.Lines(err)}
		}
	}
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), lead.options.AgentSelector)
	if err != nil {
		return err
	}
	var l *planned
	if o.file != "" {
		l = planHere(objects, lead, now, &instead)
	} else {
		l, by = p.judge(ctx, client, objects, lead, now), p.inForce(objects)
	}
	made := report(l, by)
	if printer := o.printer(); printer != nil {
		return printer.PrintObj(made, p.Out)
	}
	warn(p.ErrOut, l.notes)
	return made.print(p.Out, o.wide())
}

// mistakes are those of a policy file, the only error of several lines.
type mistakes struct {
	in    string
	lines []string
}

func (m mistakes) Error() string {
	said := make([]string, len(m.lines))
	for i, l := range m.lines {
		said[i] = line(m.in + ": " + l)
	}
	return strings.Join(said, "\n")
}

// inForce says what the controller goes by.
func (p *plugin) inForce(objects *kube.Objects) string {
	switch {
	case objects.Policy == nil && objects.HadPolicy():
		return "no policy; the ConfigMap " + kube.PolicyConfigMap + " is gone"
	case objects.Policy == nil:
		return "the controller's flags; there is no ConfigMap " + kube.PolicyConfigMap
	}
	return "ConfigMap " + p.namespace() + "/" + kube.PolicyConfigMap
}

// policyFile reads the file that a plan is to go by; nothing if there is none.
func (p *plugin) policyFile(path string) ([]byte, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		content, err := io.ReadAll(p.In)
		return content, errors.Wrap(err, "reading the policy from standard input")
	}
	content, err := os.ReadFile(path)
	return content, errors.Wrap(err, "reading the policy")
}

// report puts a plan into the structure that is printed.
func report(l *planned, by string) *Plan {
	o := &l.outcome
	out := &Plan{
		printed: kind("Plan"), Time: l.now.UTC().Truncate(time.Second), Policy: by, Live: l.live, Warnings: l.warnings(), PolicyProblem: o.PolicyProblem,
		Lost: o.Phases()[intent.PhaseLost], Lent: o.Lent, Budgets: append([]plan.Usage{}, o.Budgets...), Groups: []Wave{}, Stopped: append([]plan.StoppedVersion{}, o.Stopped...),
		Starts: []Start{}, Waits: []Wait{}, Next: o.Wake, counts: o.Counts(), troubles: o.Troubles(),
	}
	standing := make(map[string]*plan.Decision, len(l.outcome.Nodes))
	for i := range l.outcome.Nodes {
		standing[l.outcome.Nodes[i].Node] = &l.outcome.Nodes[i]
	}
	for i := range l.outcome.Steps {
		s := &l.outcome.Steps[i]
		if waits(s.Act) {
			continue
		}
		start := Start{Node: s.Node, Act: s.Act, Reason: s.Reason, Message: s.Message}
		// The node of a slot that is freed may be gone.
		if n, at := l.nodes[s.Node], standing[s.Node]; n != nil && at != nil {
			start.Group, start.Version, start.Target = l.settings.GroupOf(n.Labels), at.Version, target(n)
		}
		out.Starts = append(out.Starts, start)
	}
	waves := newWaves(l)
	for i := range o.Nodes {
		s := &o.Nodes[i]
		n := l.nodes[s.Node]
		if n == nil {
			// It came or went between the two looks.
			continue
		}
		w := waves.of(n.Labels)
		w.count(s)
		if !waits(s.Act) {
			continue
		}
		seen := l.status(n, s)
		wait := Wait{Node: s.Node, Group: seen.Group, Phase: s.Phase, Version: s.Version, Target: seen.Target, WaitingFor: seen.WaitingFor}
		if wait.Target != "" && !n.Disrupted() {
			wait.NotBefore = w.opening(wait.NotBefore)
		}
		out.Waits = append(out.Waits, wait)
	}
	if l.snapshot.PolicyProblem == "" {
		out.Groups = waves.all
	}
	return out
}

// waits tells of acts by which nothing starts: what people read is written, a node is looked at, or a drain goes on.
func waits(a intent.Act) bool {
	return slices.Contains([]intent.Act{"", intent.ActNote, intent.ActLook, intent.ActDrain, intent.ActCheck}, a)
}
