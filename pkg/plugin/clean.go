package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// Values of --force. Each is for one thing that clean doesn't do by itself, so that nothing else is forced with it.
const (
	forceController = "controller"
	forceRebooting  = "rebooting"
	forceUnreadable = "unreadable"
	forceLock       = "lock"
)

var forceWords = []string{forceController, forceRebooting, forceUnreadable, forceLock}

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
		"clean also nodes whose reboot has begun; clean also nodes whose annotations can't be read; forget what a host was locked to before")
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

// clean cleans nodes, and then, with --state, deletes what the operator keeps in its namespace.
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
	found, err := p.cleanNodes(ctx, client, o, nodes, objects.Agents)
	if err != nil {
		return err
	}
	deleted := false
	if o.state {
		if deleted, err = p.deleteState(ctx, o); err != nil {
			return err
		}
	}
	if !found && !deleted {
		fmt.Fprintln(p.ErrOut, "Nothing of the operator is left")
	}
	return nil
}

// noController returns an error while a controller leads: it would undo this work, and does it by itself.
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

// cleanNodes cleans one node after the other and prints what became of each. One that is left or fails does not stop
// it, but is an error at the end. It reports whether it printed any, which with --all leaves out those that are clean.
func (p *plugin) cleanNodes(ctx context.Context, client kubernetes.Interface, o *cleanOptions, nodes []*corev1.Node,
	agents []*corev1.Pod) (found bool, err error) {
	left, failed := 0, 0
	for _, n := range nodes {
		c, err := p.cleanNode(ctx, client, o, n)
		if ctx.Err() != nil {
			return found, errors.Wrapf(ctx.Err(), "cleaning node %q", n.Name)
		}
		if err != nil {
			fmt.Fprintf(p.ErrOut, "error: node/%s not cleaned: %s\n", n.Name, line(err.Error()))
			failed++
			continue
		}
		if o.all && c.unchanged() {
			continue
		}
		found = true
		p.did("node/"+n.Name, c.String(), &o.dryRun)
		if c.left != "" {
			left++
		} else if slices.ContainsFunc(agents, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == n.Name }) {
			c.notes = append(c.notes, fmt.Sprintf("an agent's pod is still on node %q and may write its report again: "+
				"clean once more when it is gone", n.Name))
		}
		warn(p.ErrOut, c.notes)
	}
	switch {
	case failed > 0:
		return found, errors.Errorf("%d of the nodes could not be cleaned, and %d were left as they are", failed, left)
	case left > 0:
		return found, errors.Errorf("%d of the nodes were left as they are", left)
	}
	return found, nil
}

// cleanNode cleans one node. If something else writes to it meanwhile, it is read and cleaned again.
func (p *plugin) cleanNode(ctx context.Context, client kubernetes.Interface, o *cleanOptions, n *corev1.Node) (c cleanup, err error) {
	conflict := func(err error) bool { return errors.Is(err, kube.ErrConflict) }
	name, fresh := n.Name, true
	err = retry.OnError(retry.DefaultBackoff, conflict, func() (err error) {
		if !fresh {
			n, err = client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				c = cleanup{parts: []string{"it is gone"}}
				return nil
			}
			if err != nil {
				return errors.Wrapf(err, "reading node %q", name)
			}
		}
		fresh = false
		c = o.cleanup(n)
		return c.apply(ctx, client, &o.dryRun)
	})
	return c, err
}
