package main

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func (p *plugin) acknowledgeCommand() *cobra.Command {
	dry := &dryRun{}
	c := &cobra.Command{
		Use:               "acknowledge VERSION",
		Short:             "Let a version that failed on many nodes go on",
		Long:              "Let a version go on that was stopped because it failed on as many nodes as the policy's maxFailed.",
		Args:              oneArg("a version"),
		ValidArgsFunction: p.completeFailedVersions,
		RunE:              func(c *cobra.Command, args []string) error { return p.acknowledge(c.Context(), dry, args[0]) },
	}
	dry.addTo(c)
	return c
}

func (p *plugin) acknowledge(ctx context.Context, dry *dryRun, version string) error {
	switch {
	case !marker.ValidVersion(version):
		return errors.Errorf("%q is not a version: give one such as 1.51.0", version)
	case strings.Contains(version, "+"):
		return errors.Errorf("version %q has build metadata, which a ConfigMap can't hold as a key", version)
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	key := configKey{p.namespace(), kube.AcknowledgedConfigMap, version}
	changed, err := key.change(ctx, client, dry, func(stands *string) (*string, error) {
		if stands != nil {
			return nil, nil
		}
		// The key counts; what stands there is for people.
		return new("acknowledged " + p.now().UTC().Format(time.RFC3339)), nil
	})
	if err != nil {
		return err
	}
	did := "unchanged"
	if changed {
		did = version + " acknowledged"
	}
	p.did("configmap/"+kube.AcknowledgedConfigMap, did, dry)
	return nil
}
