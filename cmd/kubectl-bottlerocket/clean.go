package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
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
	objects, err := kube.ReadObjects(ctx, client, p.namespace(), controller.DefaultOptions().AgentSelector)
	if err != nil {
		return err
	}
	nodes, err := o.choose(objects.Nodes, names)
	if err != nil {
		return err
	}
	agents := map[string]bool{}
	for _, pod := range objects.Agents {
		agents[pod.Spec.NodeName] = true
	}
	touched, left, failed := false, 0, 0
	for _, n := range nodes {
		did, err := p.cleanNode(ctx, client, n, o)
		if ctx.Err() != nil {
			return errors.Wrapf(ctx.Err(), "cleaning node %q", n.Name)
		}
		if err != nil {
			// What one node refuses keeps nothing from the others.
			fmt.Fprintf(p.ErrOut, "error: node/%s not cleaned: %s\n", n.Name, line(err.Error()))
			failed++
			continue
		}
		if did.nothing() && o.all {
			continue
		}
		touched = true
		if did.left {
			left++
		}
		p.did("node/"+n.Name, did.String(), &o.dryRun)
		if agents[n.Name] && !did.left {
			did.notes = append(did.notes, fmt.Sprintf("an agent's pod is still on node %q and may write its report again: clean once more when it is gone", n.Name))
		}
		warn(p.ErrOut, did.notes)
	}
	switch {
	case failed > 0:
		return errors.Errorf("%d of the nodes could not be cleaned, and %d were left as they are", failed, left)
	case left > 0:
		return errors.Errorf("%d of the nodes were left as they are", left)
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

// noController refuses while somebody is there who would do the work, and undo this one.
func (p *plugin) noController(ctx context.Context, client kubernetes.Interface) error {
	lease, err := client.CoordinationV1().Leases(p.namespace()).Get(ctx, controller.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "reading Lease %s/%s", p.namespace(), controller.LeaseName)
	}
	if pod, leads := holder(lease, p.now()); leads {
		return errors.Errorf("pod %s leads by Lease %s/%s: remove the nodes' labels and it takes everything back itself; when it was killed, wait until its Lease has run out; --force=%s goes on all the same",
			pod, p.namespace(), controller.LeaseName, forceController)
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

// cleaned is what became of a node.
type cleaned struct {
	// parts say what was done, or why nothing was if left.
	parts []string
	left  bool
	// notes are what people should know beside that.
	notes []string
}

func (c *cleaned) nothing() bool { return len(c.parts) == 0 }

func (c *cleaned) String() string {
	switch {
	case c.nothing():
		return "unchanged"
	case c.left:
		return "left: " + strings.Join(c.parts, ", ")
	}
	return "cleaned: " + strings.Join(c.parts, ", ")
}

// cleanNode decides anew on what somebody else wrote in between.
func (p *plugin) cleanNode(ctx context.Context, client kubernetes.Interface, n *corev1.Node, o *cleanOptions) (cleaned, error) {
	name, fresh := n.Name, true
	var done cleaned
	again := func(err error) bool { return errors.Is(err, kube.ErrConflict) }
	err := retry.OnError(retry.DefaultBackoff, again, func() error {
		if !fresh {
			read, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				done = cleaned{parts: []string{"it is gone"}}
				return nil
			}
			if err != nil {
				return errors.Wrapf(err, "reading node %q", name)
			}
			n = read
		}
		fresh = false
		v := kube.View(n)
		if why := o.leaves(&v); why != "" {
			done = cleaned{parts: []string{why}, left: true}
			return nil
		}
		change := lifecycle.Clean(&v)
		done = whatItDoes(n, &v, change)
		if !done.nothing() && o.sends() {
			options := metav1.PatchOptions{FieldManager: fieldManager, DryRun: o.options()}
			if _, err := kube.WriteOnce(ctx, client, n, change, options); err != nil {
				return err
			}
		}
		if o.labels {
			return p.removeUsers(ctx, client, n, o, &done)
		}
		return nil
	})
	return done, err
}

// leaves says why a node isn't touched.
func (o *cleanOptions) leaves(n *fleet.Node) string {
	switch {
	case len(n.Problems) > 0 && !o.forced(forceUnreadable):
		return fmt.Sprintf("annotation %s; correct or remove it, or give --force=%s", n.Problems[0], forceUnreadable)
	case len(n.Problems) == 0 && lifecycle.RebootBegun(n) && !o.forced(forceRebooting):
		return fmt.Sprintf("its reboot has begun; clean it when it is back, or give --force=%s", forceRebooting)
	}
	return ""
}

// whatItDoes says what a change does to a node.
func whatItDoes(n *corev1.Node, v *fleet.Node, c *plan.Change) cleaned {
	var done cleaned
	removed := len(c.Diff(n.Annotations))
	if removed == 0 && c.Unschedulable == nil {
		return done
	}
	if c.Unschedulable != nil {
		done.parts = append(done.parts, "uncordoned")
	}
	if removed > 0 {
		done.parts = append(done.parts, plural(removed, "annotation")+" removed")
	}
	kept := v.Unschedulable && c.Unschedulable == nil
	switch {
	case !v.Disrupted():
	case recordUnreadable(v):
		if stand := othersMarks(n, kept); len(stand) > 0 {
			done.parts = append(done.parts, strings.Join(stand, ", ")+" kept, nobody can tell whose it is")
		}
	case kept:
		done.parts = append(done.parts, "cordon kept, it is somebody else's")
	}
	if v.Phase() == intent.PhaseResetting && v.Marks.Report.Answer(v.Marks.Intent.ID) != marker.StateReady || lifecycle.RebootBegun(v) {
		done.notes = append(done.notes, fmt.Sprintf("the host of node %q may have an update activated, which its next reboot goes into", v.Name))
	}
	return done
}

// recordUnreadable tells if nobody knows what was done to the node.
func recordUnreadable(n *fleet.Node) bool {
	return slices.ContainsFunc(n.Problems, func(p marker.Problem) bool { return p.Key == marker.KeyDisruption })
}

// othersMarks are the cordon and the marks for load balancers and autoscalers that stand as the operator writes them.
func othersMarks(n *corev1.Node, cordoned bool) []string {
	var stand []string
	if cordoned {
		stand = append(stand, "cordon")
	}
	if n.Labels[marker.LabelExcluded] == marker.OthersValue {
		stand = append(stand, "label "+marker.LabelExcluded)
	}
	for _, k := range marker.AutoscalerMarks() {
		if n.Annotations[k] == marker.OthersValue {
			stand = append(stand, "annotation "+k)
		}
	}
	return stand
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// removeUsers takes away what users have set for the operator.
func (p *plugin) removeUsers(ctx context.Context, client kubernetes.Interface, n *corev1.Node, o *cleanOptions, done *cleaned) error {
	labels, annotations := map[marker.Key]any{}, map[marker.Key]any{}
	for _, e := range marker.Table() {
		if e.Writer != marker.WriterUser {
			continue
		}
		if _, there := n.Labels[string(e.Key)]; there && e.Kind == marker.KindLabel {
			labels[e.Key] = nil
			done.parts = append(done.parts, "label "+string(e.Key)+" removed")
		}
		if _, there := n.Annotations[string(e.Key)]; there && e.Kind == marker.KindAnnotation {
			annotations[e.Key] = nil
			done.parts = append(done.parts, "annotation "+string(e.Key)+" removed")
		}
	}
	if len(labels)+len(annotations) == 0 || !o.sends() {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager, DryRun: o.options()})
	return errors.Wrapf(err, "writing node %q", n.Name)
}
