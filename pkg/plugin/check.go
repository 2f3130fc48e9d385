package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

// Check is what `check -o json` prints.
type Check struct {
	printed `json:",inline"`
	// Time is by this machine's clock.
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	// Server is the API server's version.
	Server string `json:"server"`
	// Summary counts the findings of each verdict.
	Summary map[preflight.Verdict]int `json:"summary"`
	// Findings are sorted, the worst first.
	Findings []preflight.Finding `json:"findings"`
}

// DeepCopyObject is never called: what is printed isn't kept.
func (c *Check) DeepCopyObject() runtime.Object { return c }

// errFailed ends a check that has found something to fail.
var errFailed = errors.New("at least one check failed")

// statusOfErrors is the annotation of a command whose errors have another status than 1.
const statusOfErrors = "statusOfErrors"

func (p *plugin) checkCommand() *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the cluster before and after the operator is installed, and say how to mend what isn't well",
		Long: "Check the cluster before and after the operator is installed, and say how to mend what isn't well. Nothing is written.\n" +
			"The status is 0 if no check failed, 1 if one did, and 2 if the cluster could not be checked.",
		Example:     "  kubectl bottlerocket check\n  kubectl bottlerocket check -o json | jq -r '.findings[] | select(.verdict == \"fail\") | .remedy'",
		Args:        noArgs,
		Annotations: map[string]string{statusOfErrors: "2"},
		RunE:        func(c *cobra.Command, _ []string) error { return p.check(c.Context(), o) },
	}
	o.addTo(c, "json", "yaml")
	return c
}

func (p *plugin) check(ctx context.Context, o *output) error {
	if err := o.validate(); err != nil {
		return err
	}
	result, err := p.checked(ctx)
	if err != nil {
		return err
	}
	if printer := o.printer(); printer != nil {
		err = printer.PrintObj(result, p.Out)
	} else {
		err = result.print(p.Out)
	}
	if err == nil && result.Summary[preflight.VerdictFail] > 0 {
		return errFailed
	}
	return err
}

// checked looks at the cluster, and judges it.
func (p *plugin) checked(ctx context.Context) (*Check, error) {
	s, err := p.gather(ctx)
	if err != nil {
		return nil, err
	}
	c := &Check{printed: kind("Check"), Time: p.now(), Namespace: p.namespace(), Server: s.Server.Value,
		Summary: map[preflight.Verdict]int{}, Findings: preflight.Judge(s)}
	for _, v := range preflight.Verdicts() {
		c.Summary[v] = 0
	}
	for _, f := range c.Findings {
		c.Summary[f.Verdict]++
	}
	preflight.WorstFirst(c.Findings)
	return c, nil
}

// print prints a table, the remedy of each finding on a line below it, and sums up.
func (c *Check) print(out io.Writer) error {
	width := 0
	for _, name := range preflight.Checks() {
		width = max(width, len(name))
	}
	var b strings.Builder
	row := func(verdict, check, said string) {
		fmt.Fprintf(&b, "%-8s %-*s  %s\n", verdict, width, check, line(said))
	}
	row("VERDICT", "CHECK", "FOUND")
	for _, f := range c.Findings {
		row(string(f.Verdict), string(f.Check), f.Message)
		if f.Remedy != "" {
			row("", "", "-> "+f.Remedy)
		}
	}
	var counts []string
	for _, v := range preflight.Verdicts() {
		if n := c.Summary[v]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, v))
		}
	}
	fmt.Fprintf(&b, "\n%s: %s\n", c.sum(), strings.Join(counts, ", "))
	_, err := io.WriteString(out, b.String())
	return err
}

// sum is what all findings come to.
func (c *Check) sum() string {
	is := func(v preflight.Verdict) func(preflight.Finding) bool {
		return func(f preflight.Finding) bool { return f.Verdict == v }
	}
	switch {
	case slices.ContainsFunc(c.Findings, is(preflight.VerdictFail)):
		return "Something must be mended"
	case slices.ContainsFunc(c.Findings, is(preflight.VerdictUnknown)):
		return "Nothing is known to be wrong, but not all could be looked at"
	case slices.ContainsFunc(c.Findings, is(preflight.VerdictAbsent)):
		return "Ready to install"
	}
	return "All is well"
}
