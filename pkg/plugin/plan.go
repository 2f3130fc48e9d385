package plugin

import (
	"context"
	"io"
	"os"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Plan is what `plan -o json` prints: the leader's own plan.
type Plan struct {
	printed   `json:",inline"`
	plan.Plan `json:",inline"`
}

// DeepCopyObject is never called: what is printed isn't kept.
func (p *Plan) DeepCopyObject() runtime.Object { return p }

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
			"The controller that leads is asked for it, through the API server. Nothing is written.",
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
	by, err := p.policyFile(o.file)
	if err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	out, err := p.ask(ctx, client, by)
	if err != nil {
		return err
	}
	if by != nil {
		out.Policy = by.name
	}
	if printer := o.printer(); printer != nil {
		return printer.PrintObj(&Plan{kind("Plan"), out}, p.Out)
	}
	return printPlan(&out, p.Out, o.wide())
}

// policyFile reads the file that a plan is to go by; nil if there is none.
func (p *plugin) policyFile(path string) (*policyFile, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		content, err := io.ReadAll(p.In)
		return &policyFile{"standard input", content}, errors.Wrap(err, "reading the policy from standard input")
	}
	content, err := os.ReadFile(path)
	return &policyFile{path, content}, errors.Wrap(err, "reading the policy")
}
