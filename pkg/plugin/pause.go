package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// pauseOptions are those of pause and of resume.
type pauseOptions struct {
	dryRun
	group, reason string
	inFlight      policy.Ending
}

func (p *plugin) pauseCommand() *cobra.Command {
	o := &pauseOptions{}
	var inFlight string
	c := &cobra.Command{
		Use:   "pause [NODE...] --reason TEXT",
		Short: "Let nothing start on nodes, in a group, or anywhere",
		Long: "Let nothing start on the nodes that are named, in a group of the policy, or, with neither, anywhere.\n" +
			"A paused node that has not begun to reboot is given back; of a group and the fleet --in-flight decides.",
		Example: "  kubectl bottlerocket pause node-1 --reason 'Ann debugs here until Friday'\n" +
			"  kubectl bottlerocket pause --reason 'the database moves today'\n  kubectl bottlerocket pause --group canary --reason 'bad canary'",
		ValidArgsFunction: p.completeNodes(notPaused),
		RunE: func(c *cobra.Command, nodes []string) error {
			o.inFlight = policy.Ending(inFlight)
			switch {
			case strings.TrimSpace(o.reason) == "":
				return errors.New("give a --reason: people read it on every node that waits")
			case len(nodes) > 0 && (o.group != "" || inFlight != ""):
				return errors.New("--group and --in-flight are about the policy: name no nodes with them")
			case inFlight != "" && o.inFlight != policy.Finish && o.inFlight != policy.Return:
				return errors.Errorf("--in-flight is %q: give %s or %s", inFlight, policy.Finish, policy.Return)
			}
			return p.pause(c.Context(), o, nodes)
		},
	}
	c.Flags().StringVar(&o.reason, "reason", "", "Why; people read it, with who says it and when")
	c.Flags().StringVar(&inFlight, "in-flight", "", "What becomes of nodes of the group or fleet that are out of service and have not begun to reboot: "+
		string(policy.Finish)+" (the default) or "+string(policy.Return))
	_ = c.RegisterFlagCompletionFunc("in-flight", cobra.FixedCompletions([]string{string(policy.Finish), string(policy.Return)}, cobra.ShellCompDirectiveNoFileComp))
	p.addGroup(c, o)
	o.addTo(c)
	return c
}

func (p *plugin) resumeCommand() *cobra.Command {
	o := &pauseOptions{}
	c := &cobra.Command{
		Use:               "resume [NODE...]",
		Short:             "Take a pause back",
		Long:              "Take back the pause of the nodes that are named, of a group of the policy, or, with neither, that of the fleet.",
		ValidArgsFunction: p.completeNodes(paused),
		RunE: func(c *cobra.Command, nodes []string) error {
			if len(nodes) > 0 && o.group != "" {
				return errors.New("nodes and a group exclude each other: give one of them")
			}
			return p.resume(c.Context(), o, nodes)
		},
	}
	p.addGroup(c, o)
	o.addTo(c)
	return c
}

func (p *plugin) addGroup(c *cobra.Command, o *pauseOptions) {
	c.Flags().StringVar(&o.group, "group", "", "A group of the policy, instead of the whole fleet")
	_ = c.RegisterFlagCompletionFunc("group", p.completeGroups)
}

func (p *plugin) pause(ctx context.Context, o *pauseOptions, names []string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		w := p.say(ctx, client, o.reason)
		return p.editPolicy(ctx, client, o, "paused", func(text string) (string, error, error) { return withPause(text, o.group, w, o.inFlight) })
	}
	nodes, err := readNodes(ctx, client, names)
	if err != nil {
		return err
	}
	w := p.say(ctx, client, o.reason)
	for _, n := range nodes {
		if !labelled(n) {
			warn(p.ErrOut, []string{fmt.Sprintf("node %q is not labelled, so the operator starts nothing there anyhow", n.Name)})
		}
		value := w.String()
		if stands, paused := n.Annotations[string(marker.KeyPaused)]; paused && w.repeats(stands) {
			value = stands
		}
		if err := p.annotate(ctx, client, n, marker.KeyPaused, &value, "paused", &o.dryRun); err != nil {
			return err
		}
	}
	return nil
}

func (p *plugin) resume(ctx context.Context, o *pauseOptions, names []string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return p.editPolicy(ctx, client, o, "resumed", func(text string) (string, error, error) { return withoutPause(text, o.group) })
	}
	nodes, err := readNodes(ctx, client, names)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := p.annotate(ctx, client, n, marker.KeyPaused, nil, "resumed", &o.dryRun); err != nil {
			return err
		}
	}
	return nil
}

// editPolicy changes the policy's text, and says what was done.
func (p *plugin) editPolicy(ctx context.Context, client kubernetes.Interface, o *pauseOptions, did string, edit func(text string) (after string, mistake, err error)) error {
	key := configKey{p.namespace(), kube.PolicyConfigMap, kube.PolicyKey}
	var mistake error
	changed, err := key.change(ctx, client, &o.dryRun, func(stands *string) (*string, error) {
		text := emptyPolicy
		if stands != nil {
			text = *stands
		} else if had, err := kube.HadPolicy(ctx, client, p.namespace()); err != nil {
			return nil, err
		} else if had {
			// A policy made here would pass for the one that is gone.
			return nil, errors.New(kube.PolicyGone)
		}
		var after string
		var err error
		if after, mistake, err = edit(text); err != nil {
			return nil, errors.WithMessagef(err, "ConfigMap %s/%s", key.namespace, key.name)
		}
		if after == text {
			return nil, nil
		}
		return &after, nil
	})
	if err != nil {
		return err
	}
	object := "configmap/" + kube.PolicyConfigMap
	if o.group != "" {
		object += " group " + o.group
	}
	if !changed {
		did = "unchanged"
	}
	if mistake != nil {
		warn(p.ErrOut, []string{fmt.Sprintf("the policy has a mistake, and of what stands in it only the pause of the fleet counts; one that was good before stays in force, and so does its pause: %v", mistake)})
	}
	p.did(object, did, &o.dryRun)
	return nil
}
