package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func (p *plugin) acknowledgeCommand() *cobra.Command {
	o := &acknowledgeOptions{}
	c := &cobra.Command{
		Use:               "acknowledge VERSION",
		Short:             "Let a version that failed on many nodes go on",
		Long:              "Let a version go on that was stopped because it failed on as many nodes as the policy's maxFailed.",
		Args:              oneArg("a version"),
		ValidArgsFunction: p.completeFailedVersions,
		RunE:              func(c *cobra.Command, args []string) error { return p.acknowledge(c.Context(), o, args[0]) },
	}
	c.Flags().BoolVar(&o.remove, "remove", false, "Take the acknowledgement back")
	c.Flags().BoolVar(&o.force, "force", false, "Acknowledge a version that no node runs, is offered, or failed at")
	o.addTo(c)
	return c
}

type acknowledgeOptions struct {
	dryRun
	remove, force bool
}

func (p *plugin) acknowledge(ctx context.Context, o *acknowledgeOptions, version string) error {
	switch {
	case marker.ValidPlanVersion(version):
	case !marker.ValidVersion(version):
		return errors.Errorf("%q is not a version: give one such as 1.51.0", version)
	case strings.Contains(version, "+"):
		return errors.Errorf("version %q has build metadata, which a ConfigMap can't hold as a key", version)
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	key := configKey{p.namespace(), kube.AcknowledgedConfigMap, marker.VersionKey(version)}
	if o.remove {
		removed, err := key.remove(ctx, client, &o.dryRun)
		if err != nil {
			return err
		}
		p.didOrNot(removed, version+" not acknowledged any more", o)
		return nil
	}
	if !o.force {
		known, err := p.versions(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(known, version) {
			return errors.Errorf("no node runs version %s, is offered it, or failed at it: give one of %s, or --force", version, strings.Join(known, ", "))
		}
	}
	changed, err := key.change(ctx, client, &o.dryRun, func(data map[string]string) (*string, error) {
		if _, stands := data[marker.VersionKey(version)]; stands {
			return nil, nil
		}
		// The key counts; its value is only shown.
		return new("acknowledged " + p.now().UTC().Format(time.RFC3339)), nil
	})
	if err != nil {
		return err
	}
	p.didOrNot(changed, version+" acknowledged", o)
	return nil
}

func (p *plugin) didOrNot(changed bool, did string, o *acknowledgeOptions) {
	if !changed {
		did = "unchanged"
	}
	p.did("configmap/"+kube.AcknowledgedConfigMap, did, &o.dryRun)
}

// versionsTime is enough for the nodes of a large cluster over a slow link.
const versionsTime = time.Minute

// versions are those that a node runs, is offered, or failed at, the lowest first.
func (p *plugin) versions(ctx context.Context) ([]string, error) {
	seen := map[string]bool{}
	err := p.eachNode(ctx, versionsTime, func(n *metav1.PartialObjectMetadata) {
		marks, _ := marker.Decode(n.Annotations)
		seen[marks.Report.Current], seen[marks.Report.Available] = true, true
		if marks.Failure != nil {
			for _, v := range marks.Failure.Versions {
				seen[v] = true
			}
		}
	})
	delete(seen, "")
	return slices.SortedFunc(maps.Keys(seen), marker.CompareVersions), errors.Wrap(err, "listing nodes")
}
