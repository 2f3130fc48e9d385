package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// What clean doesn't do unless it is forced to, each by its own word: nobody is to force more than he means.
const (
	forceController = "controller"
	forceRebooting  = "rebooting"
	forceUnreadable = "unreadable"
)

var forceWords = []string{forceController, forceRebooting, forceUnreadable}

type cleanOptions struct {
	dryRun
	all, labels, state bool
	force              []string
}

func (o *cleanOptions) forced(word string) bool { return slices.Contains(o.force, word) }

func (p *plugin) cleanCommand() *cobra.Command {
	o := &cleanOptions{}
	c := &cobra.Command{
		Use:   "clean (NODE... | --all)",
		Short: "Take from nodes what an operator that is gone has left on them",
		Long: "Take from nodes all that the operator put there, and undo what it did to them, from the record that each node carries.\n" +
			"This is for an operator that is gone. One that runs takes everything back itself, once the nodes' labels are removed.",
		Example: "  kubectl bottlerocket clean --all --dry-run\n  kubectl bottlerocket clean --all --labels\n" +
			"  kubectl bottlerocket clean node-1 --force=rebooting",
		ValidArgsFunction: p.completeNodes(inCare),
		RunE: func(c *cobra.Command, names []string) error {
			if err := o.validate(names); err != nil {
				return err
			}
			return p.clean(c.Context(), o, names)
		},
	}
	c.Flags().BoolVar(&o.all, "all", false, "All nodes of the cluster")
	c.Flags().BoolVar(&o.labels, "labels", false, "Take away what users have set for the operator too: the labels, paused and retry")
	c.Flags().BoolVar(&o.state, "state", false, "With --all: delete also what the operator keeps in its namespace: "+strings.Join(stateNames(), ", "))
	c.Flags().StringSliceVar(&o.force, "force", nil, "Any of: "+strings.Join(forceWords, ", ")+". Go on although a controller leads; "+
		"clean also nodes whose reboot has begun; clean also nodes whose annotations can't be read")
	_ = c.RegisterFlagCompletionFunc("force", cobra.FixedCompletions(forceWords, cobra.ShellCompDirectiveNoFileComp))
	o.addTo(c)
	return c
}

func (o *cleanOptions) validate(names []string) error {
	for _, word := range o.force {
		if !slices.Contains(forceWords, word) {
			return errors.Errorf("--force is %q: give any of %s", word, strings.Join(forceWords, ", "))
		}
	}
	switch {
	case len(names) == 0 && !o.all:
		return errors.New("name nodes, or give --all")
	case len(names) > 0 && o.all:
		return errors.New("nodes and --all exclude each other: give one of them")
	case o.state && !o.all:
		return errors.New("--state is of all nodes: give --all with it")
	}
	return nil
}

// clean cleans nodes, and then, if it is asked to, what the operator keeps beside them.
func (p *plugin) clean(ctx context.Context, o *cleanOptions, names []string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	if !o.forced(forceController) {
		if err := p.noController(ctx, client); err != nil {
			return err
		}
	}
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), kube.AgentSelector)
	if err != nil {
		return err
	}
	nodes, err := o.choose(objects.Nodes, names)
	if err != nil {
		return err
	}
	touched, err := p.cleanNodes(ctx, &cleaner{p, o, client}, nodes, objects.Agents)
	if err != nil {
		return err
	}
	if o.state {
		deleted, err := p.deleteState(ctx, client, o)
		if err != nil {
			return err
		}
		touched = touched || deleted
	}
	if !touched {
		fmt.Fprintln(p.ErrOut, "Nothing of the operator is left")
	}
	return nil
}

// noController refuses while a controller leads, which would do the work, and undo this one.
func (p *plugin) noController(ctx context.Context, client kubernetes.Interface) error {
	lease, err := p.lease(ctx, client)
	if err != nil || lease == nil {
		return err
	}
	if pod, leads := holder(lease, p.now()); leads {
		return errors.Errorf("pod %s leads by Lease %s/%s: remove the nodes' labels and it takes everything back itself; when it was killed, wait until its Lease has run out; --force=%s goes on all the same",
			pod, p.namespace(), kube.LeaseName, forceController)
	}
	return nil
}

// choose returns the nodes that are asked for, sorted by name.
func (o *cleanOptions) choose(all []*corev1.Node, names []string) ([]*corev1.Node, error) {
	var chosen []*corev1.Node
	for _, n := range all {
		if o.all || slices.Contains(names, n.Name) {
			chosen = append(chosen, n)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(chosen, func(n *corev1.Node) bool { return n.Name == name }) {
			return nil, errors.Errorf("node %q not found", name)
		}
	}
	slices.SortFunc(chosen, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return chosen, nil
}

// cleanNodes cleans one node after the other, whatever one of them refuses, and says of each what became of it. It
// reports whether there was anything to do.
func (p *plugin) cleanNodes(ctx context.Context, c *cleaner, nodes []*corev1.Node, agents []*corev1.Pod) (touched bool, err error) {
	left, failed := 0, 0
	for _, n := range nodes {
		done, err := c.clean(ctx, n)
		switch {
		case ctx.Err() != nil:
			return touched, errors.Wrapf(ctx.Err(), "cleaning node %q", n.Name)
		case err != nil:
			fmt.Fprintf(p.ErrOut, "error: node/%s not cleaned: %s\n", n.Name, line(err.Error()))
			failed++
			continue
		case done.unchanged() && c.all:
			continue
		}
		touched = true
		p.did("node/"+n.Name, done.String(), &c.dryRun)
		if done.left != "" {
			left++
		} else if slices.ContainsFunc(agents, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == n.Name }) {
			done.notes = append(done.notes, fmt.Sprintf("an agent's pod is still on node %q and may write its report again: clean once more when it is gone", n.Name))
		}
		warn(p.ErrOut, done.notes)
	}
	switch {
	case failed > 0:
		return touched, errors.Errorf("%d of the nodes could not be cleaned, and %d were left as they are", failed, left)
	case left > 0:
		return touched, errors.Errorf("%d of the nodes were left as they are", left)
	}
	return touched, nil
}
