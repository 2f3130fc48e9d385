package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// did says what was done, as kubectl does.
func (p *plugin) did(object, what string, dry *dryRun) {
	fmt.Fprintf(p.Out, "%s %s%s\n", line(object), line(what), dry.suffix())
}

// dryRun is the flag of that name, as kubectl has it.
type dryRun struct{ mode string }

var dryRunModes = []string{"none", "client", "server"}

func (d *dryRun) addTo(c *cobra.Command) {
	c.Flags().Var(d, "dry-run", "Must be one of: "+strings.Join(dryRunModes, ", ")+". With client nothing is sent, with server nothing is kept")
	c.Flags().Lookup("dry-run").NoOptDefVal = "client"
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRunModes, cobra.ShellCompDirectiveNoFileComp))
}

// Set reads the flag.
func (d *dryRun) Set(s string) error {
	if !slices.Contains(dryRunModes, s) {
		return errors.Errorf("give one of %s", strings.Join(dryRunModes, ", "))
	}
	d.mode = s
	return nil
}

func (d *dryRun) String() string {
	if d.mode == "" {
		return dryRunModes[0]
	}
	return d.mode
}

// Type is for the help text.
func (d *dryRun) Type() string { return "string" }

func (d *dryRun) sends() bool { return d.mode != "client" }

func (d *dryRun) options() []string {
	if d.mode == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (d *dryRun) suffix() string {
	switch d.mode {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}
