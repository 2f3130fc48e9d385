package plugin

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func (p *plugin) retryCommand() *cobra.Command {
	dry := &dryRun{}
	c := &cobra.Command{
		Use:   "retry NODE...",
		Short: "Let nodes that failed try again now",
		Long:  "Let the controller forget the failure of the nodes that are named, so that they may try again at once.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.Errorf("name at least one node; see '%s --help'", c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: p.completeNodes(failed),
		RunE:              func(c *cobra.Command, args []string) error { return p.retry(c.Context(), dry, args) },
	}
	dry.addTo(c)
	return c
}

func (p *plugin) retry(ctx context.Context, dry *dryRun, names []string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	nodes, err := readNodes(ctx, client, names)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if !labelled(n) {
			return errors.Errorf("node %q is not in the operator's care: label it with %s=%s", n.Name, marker.KeyInterfaceVersion, fleet.InterfaceUpdateAPI)
		}
	}
	for _, n := range nodes {
		_, failed := n.Annotations[string(marker.KeyFailure)]
		if report, _ := marker.DecodeReport(n.Annotations); !failed && report.Reason != marker.ReasonUnrequestedActivation {
			warn(p.ErrOut, []string{fmt.Sprintf("node %q has no recorded failure: there is nothing to retry", n.Name)})
			p.did("node/"+n.Name, "unchanged", dry)
			continue
		}
		if err := p.annotate(ctx, client, n, marker.KeyRetry, new(""), "will be retried", dry); err != nil {
			return err
		}
	}
	return nil
}
