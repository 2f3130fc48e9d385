package plugin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			"A paused node that has not begun to reboot is uncordoned; of a group and the fleet --in-flight decides.\n" +
			"A pause of a group or the fleet is written to the ConfigMap " + kube.PauseConfigMap + ". The policy stays as it is.",
		Example: "  kubectl bottlerocket pause node-1 --reason 'Ann debugs here until Friday'\n" +
			"  kubectl bottlerocket pause --reason 'the database moves today'\n  kubectl bottlerocket pause --group canary --reason 'bad canary'",
		ValidArgsFunction: p.completeNodes(notPaused),
		RunE: func(c *cobra.Command, nodes []string) error {
			o.inFlight = policy.Ending(inFlight)
			switch {
			case strings.TrimSpace(o.reason) == "":
				return errors.New("give a --reason: it is shown on every node that waits")
			case len(nodes) > 0 && (o.group != "" || inFlight != ""):
				return errors.New("--group and --in-flight are about a group or the fleet: name no nodes with them")
			case inFlight != "" && o.inFlight != policy.Finish && o.inFlight != policy.Return:
				return errors.Errorf("--in-flight is %q: give %s or %s", inFlight, policy.Finish, policy.Return)
			}
			return p.pause(c.Context(), o, nodes)
		},
	}
	c.Flags().StringVar(&o.reason, "reason", "", "Why; shown with your name and the time on every node that waits")
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
		Use:   "resume [NODE...]",
		Short: "Take a pause back",
		Long: "Take back the pause of the nodes that are named, of a group of the policy, or, with neither, that of the fleet.\n" +
			"A pause in the policy itself stays.",
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
		return p.pauseFleet(ctx, client, o)
	}
	nodes, err := readNodes(ctx, client, names)
	if err != nil {
		return err
	}
	pause := p.newPause(ctx, client, o.reason)
	for _, n := range nodes {
		if !labelled(n) {
			warn(p.ErrOut, []string{fmt.Sprintf("node %q is not labelled, so the operator starts nothing there anyhow", n.Name)})
		}
		value := pausedValue(pause, n.Annotations[string(marker.KeyPaused)])
		if err := p.annotate(ctx, client, n, marker.KeyPaused, &value, "paused", &o.dryRun); err != nil {
			return err
		}
	}
	return nil
}

// newPause returns a pause that begins now, set by the user as the API server names them.
func (p *plugin) newPause(ctx context.Context, client kubernetes.Interface, reason string) *kube.Pause {
	pause := &kube.Pause{Reason: strings.TrimSpace(reason), By: "unknown", At: p.now().UTC().Truncate(time.Second)}
	r, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		warn(p.ErrOut, []string{fmt.Sprintf("it is written without a name, since the API server doesn't say who you are: %v", err)})
		return pause
	}
	pause.By = r.Status.UserInfo.Username
	return pause
}

// pausedValue returns the annotation's value for a pause. If the node has been paused by the same user for the same
// reason before, that is the value it has: the first time stays.
func pausedValue(pause *kube.Pause, before string) string {
	begin := pause.Reason + " (by " + pause.By + " at "
	if strings.HasPrefix(before, begin) && strings.HasSuffix(before, ")") {
		return before
	}
	return begin + moment(pause.At) + ")"
}

func (p *plugin) resume(ctx context.Context, o *pauseOptions, names []string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return p.resumeFleet(ctx, client, o)
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
