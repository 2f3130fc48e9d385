package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// pinOptions are those of pin, unpin and rollback.
type pinOptions struct {
	dryRun
	output
	group, to  string
	yes, force bool
}

func (p *plugin) pinCommand() *cobra.Command {
	o := &pinOptions{}
	c := &cobra.Command{
		Use:   "pin VERSION",
		Short: "Pin the fleet, or a group, to one version: write versions.pin in the policy",
		Long: "Write versions.pin in the policy, for the fleet or a group, and versions.downgrade where a node runs a higher version.\n" +
			"Hosts are then locked to that version and updated to it. All other lines of the policy stay as they are.\n" +
			"What changes, and what that means for which nodes, is shown first.",
		Example: "  kubectl bottlerocket pin 1.52.0 --dry-run\n  kubectl bottlerocket pin 1.53.0 --group canary\n" +
			"  kubectl bottlerocket pin 1.52.0 -o yaml > policy.yaml",
		Args:              oneArg("a version"),
		ValidArgsFunction: p.completeOfferedVersions,
		RunE: func(c *cobra.Command, args []string) error {
			return p.changePin(c.Context(), o, func(*pinning) (string, error) { return args[0], nil })
		},
	}
	p.addPin(c, o)
	return c
}

func (p *plugin) unpinCommand() *cobra.Command {
	o := &pinOptions{}
	c := &cobra.Command{
		Use:   "unpin",
		Short: "Take the pin of the fleet, or of a group, out of the policy",
		Long: "Take versions.pin out of the policy, for the fleet or a group, and the versions.downgrade that came with it.\n" +
			"Hosts get back the lock that they had before, and go on to what they choose.",
		Example: "  kubectl bottlerocket unpin\n  kubectl bottlerocket unpin --group canary",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.changePin(c.Context(), o, func(*pinning) (string, error) { return "", nil })
		},
	}
	p.addPin(c, o)
	return c
}

func (p *plugin) rollbackCommand() *cobra.Command {
	o := &pinOptions{}
	c := &cobra.Command{
		Use:   "rollback",
		Short: "Pin the fleet, or a group, to the version that ran before",
		Long: "Pin the fleet, or a group, to the version that its nodes ran before, by their histories: as pin does.\n" +
			"Where the nodes don't agree on one, it is asked for with --to.",
		Example: "  kubectl bottlerocket rollback --dry-run\n  kubectl bottlerocket rollback --group canary",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.changePin(c.Context(), o, func(in *pinning) (string, error) {
				if o.to != "" {
					return o.to, nil
				}
				return plan.RollbackOf(in.nodes)
			})
		},
	}
	c.Flags().StringVar(&o.to, "to", "", "The version to go back to, instead of the one that ran before")
	_ = c.RegisterFlagCompletionFunc("to", p.completeOfferedVersions)
	p.addPin(c, o)
	return c
}

func (p *plugin) addPin(c *cobra.Command, o *pinOptions) {
	c.Flags().StringVar(&o.group, "group", "", "A group of the policy, instead of the whole fleet")
	_ = c.RegisterFlagCompletionFunc("group", p.completeGroups)
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Don't ask")
	c.Flags().BoolVar(&o.force, "force", false, "Write although something else keeps the ConfigMap, and may take the change back")
	c.Flags().StringVarP(&o.format, "output", "o", "", "Print the policy with the change, for a file of your own, and write nothing: yaml")
	o.formats = []string{"yaml"}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formats, cobra.ShellCompDirectiveNoFileComp))
	o.dryRun.addTo(c)
}

// changePin writes the pin that wanted returns, empty for none, once it has shown what that means and is told to.
func (p *plugin) changePin(ctx context.Context, o *pinOptions, wanted func(*pinning) (string, error)) error {
	if err := o.validate(); err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	in, err := p.newPinning(ctx, client, o.group)
	if err != nil {
		return err
	}
	if in.Version, err = wanted(in); err != nil {
		return err
	}
	if err := in.write(); err != nil {
		return err
	}
	object := "configmap/" + kube.PolicyConfigMap
	if o.format != "" {
		_, err := fmt.Fprint(p.Out, in.after)
		return err
	}
	if in.after == in.before {
		p.did(object, "unchanged", &o.dryRun)
		return nil
	}
	// Indentation is part of what is shown.
	fmt.Fprintln(p.Out, strings.Join(in.difference(), "\n"))
	printLines(p.Out, in.means())
	if err := p.foresee(ctx, client, in); err != nil {
		return err
	}
	if keeper := keeperOf(in.config); keeper != "" && !o.force {
		return errors.Errorf("ConfigMap %s/%s is kept by %s, which would take this back: change these lines where that has them (-o yaml prints the whole policy), or --force",
			p.namespace(), kube.PolicyConfigMap, keeper)
	}
	did := "not pinned any more"
	if in.Version != "" {
		did = "pinned to " + in.Version
	}
	if o.group != "" {
		object += " group " + o.group
	}
	if o.mode == "" && !o.yes {
		if err := p.confirm(in.question()); err != nil {
			return err
		}
	}
	if err := in.send(ctx, client, o); err != nil {
		return err
	}
	p.did(object, did, &o.dryRun)
	return nil
}

// newPinning reads the policy and the nodes.
func (p *plugin) newPinning(ctx context.Context, client kubernetes.Interface, group string) (*pinning, error) {
	config, err := p.policyConfigMap(ctx, client)
	if err != nil {
		return nil, err
	}
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), kube.AgentSelector)
	if err != nil {
		return nil, err
	}
	in := &pinning{Pin: file.Pin{Group: group}, config: config, key: configKey{p.namespace(), kube.PolicyConfigMap, kube.PolicyKey}}
	if config != nil {
		in.before = config.Data[kube.PolicyKey]
	}
	views := objects.Views()
	return in, in.choose(views)
}

// send writes the policy, unless another than the one that was shown stands there by now.
func (in *pinning) send(ctx context.Context, client kubernetes.Interface, o *pinOptions) error {
	_, err := in.key.change(ctx, client, &o.dryRun, func(data map[string]string) (*string, error) {
		if data[in.key.key] != in.before {
			return nil, errors.Errorf("the policy has been changed since it was shown, and nothing was written: say it again")
		}
		return &in.after, nil
	})
	return err
}

// foresee prints what the leader would do by the policy with the change. Where it can't be asked that is not known, and
// the change may still be wanted.
func (p *plugin) foresee(ctx context.Context, client kubernetes.Interface, in *pinning) error {
	out, err := p.ask(ctx, client, &policyFile{"the policy with this change", []byte(in.after)})
	var wrong mistakes
	switch {
	case errors.As(err, &wrong):
		return err
	case err != nil:
		warn(p.ErrOut, []string{"what would happen by the policy with this change is not known: " + err.Error()})
		return nil
	}
	printLines(p.Out, in.planned(&out))
	return nil
}

// keepers are what puts back a ConfigMap that it keeps, by the marks by which it knows it as its own. A Helm release is
// written again by its next upgrade.
var keepers = []struct{ name, annotation, label, value string }{
	{name: "Argo CD", annotation: "argocd.argoproj.io/tracking-id"},
	{name: "Argo CD", label: "argocd.argoproj.io/instance"},
	{name: "Flux", label: "kustomize.toolkit.fluxcd.io/name"},
	{name: "Flux", label: "helm.toolkit.fluxcd.io/name"},
	{name: "Helm", label: "app.kubernetes.io/managed-by", value: "Helm"},
	// By which Argo CD knew its own before its version 3, and what a chart sets for others to read.
	{name: "Argo CD or Helm", label: "app.kubernetes.io/instance"},
}

// keeperOf says what keeps an object, and by which mark that is known; empty if nothing does.
func keeperOf(c *corev1.ConfigMap) string {
	if c == nil {
		return ""
	}
	for _, k := range keepers {
		marks, key, what := c.Labels, k.label, "label"
		if k.annotation != "" {
			marks, key, what = c.Annotations, k.annotation, "annotation"
		}
		if value, there := marks[key]; there && (k.value == "" || k.value == value) && c.Annotations["kustomize.toolkit.fluxcd.io/reconcile"] != "disabled" {
			return fmt.Sprintf("%s (%s %s=%s)", k.name, what, key, value)
		}
	}
	return ""
}

// zones finds time zones as the controller does.
var zones = time.LoadLocation
