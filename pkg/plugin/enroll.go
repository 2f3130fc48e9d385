package plugin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// enrollAtOnce is how many nodes are labelled at the same time. The client's own limit of requests comes before that
// where the API server is near.
const enrollAtOnce = 10

type enrollOptions struct {
	dryRun
	selector string
	yes      bool
	labels   labels.Selector
}

func (p *plugin) enrollCommand() *cobra.Command {
	o := &enrollOptions{}
	c := &cobra.Command{
		Use:   "enroll [NODE...]",
		Short: "Put Bottlerocket nodes into the operator's care",
		Long: "Label the nodes that are named, or all of the cluster, with " + enrolling + ".\n" +
			"Only nodes that run Bottlerocket are labelled, and none that has this label or the older one, whatever its value.\n" +
			"What will be done is shown first.",
		Example: "  kubectl bottlerocket enroll --dry-run\n  kubectl bottlerocket enroll\n" +
			"  kubectl bottlerocket enroll -l topology.kubernetes.io/zone=eu-central-1a --yes",
		ValidArgsFunction: p.completeNodes(func(n *metav1.PartialObjectMetadata) bool { return fleet.InterfaceOf(n.Labels) == fleet.InterfaceNone }),
		RunE: func(c *cobra.Command, names []string) error {
			if err := o.validate(names); err != nil {
				return err
			}
			return p.enroll(c.Context(), o, names)
		},
	}
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "Label selector of the nodes to enroll")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Don't ask")
	o.addTo(c)
	return c
}

func (o *enrollOptions) validate(names []string) (err error) {
	if len(names) > 0 && o.selector != "" {
		return errors.New("nodes and a selector exclude each other: give one of them")
	}
	if o.labels, err = labels.Parse(o.selector); err != nil {
		return errors.Errorf("selector %q: %v", o.selector, err)
	}
	return nil
}

// enrolling is the label that enroll sets.
const enrolling = string(marker.KeyInterfaceVersion) + "=" + string(fleet.InterfaceUpdateAPI)

// enrolment is what enroll does to one node.
type enrolment struct {
	node *corev1.Node
	// left is why the node isn't labelled; empty if it is.
	left string
}

// enrolmentOf decides on one node. A node that was in care and was taken out of it comes back only if it is named.
func enrolmentOf(n *corev1.Node, named bool) enrolment {
	for _, key := range []marker.Key{marker.KeyInterfaceVersion, marker.KeyPlatformVersion} {
		if value, there := n.Labels[string(key)]; there {
			return enrolment{n, fmt.Sprintf("it has the label %s=%s", key, value)}
		}
	}
	if fleet.OSVersion(n.Status.NodeInfo.OSImage) == "" {
		return enrolment{n, "it does not run Bottlerocket"}
	}
	if _, left := n.Annotations[string(marker.KeyAutoLabelled)]; left && !named {
		return enrolment{n, fmt.Sprintf("it has the annotation %s, so its label was removed; name the node to label it again", marker.KeyAutoLabelled)}
	}
	return enrolment{node: n}
}

func (p *plugin) enroll(ctx context.Context, o *enrollOptions, names []string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	all, err := kube.ReadNodes(ctx, client)
	if err != nil {
		return err
	}
	chosen, err := o.choose(all, names)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		fmt.Fprintln(p.ErrOut, "No nodes found")
		return nil
	}
	t := newTable(p.Out)
	t.row("NODE", "OS", "WILL-BE")
	var label []*corev1.Node
	for _, e := range chosen {
		will := "labelled"
		if e.left != "" {
			will = "left: " + e.left
		} else {
			label = append(label, e.node)
		}
		t.row(e.node.Name, e.node.Status.NodeInfo.OSImage, will)
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	if len(label) == 0 {
		fmt.Fprintln(p.ErrOut, "There is nothing to label")
		return nil
	}
	if o.mode == "" && !o.yes {
		if err := p.confirm(fmt.Sprintf("Label %s with %s?", plural(len(label), "node"), enrolling)); err != nil {
			return err
		}
	}
	return p.label(ctx, client, o, label, len(names) > 0)
}

// choose returns the nodes that are asked for, sorted by name. One that is named and can't be labelled is an error.
func (o *enrollOptions) choose(all []*corev1.Node, names []string) ([]enrolment, error) {
	var chosen []enrolment
	for _, n := range all {
		if o.labels.Matches(labels.Set(n.Labels)) && (len(names) == 0 || slices.Contains(names, n.Name)) {
			chosen = append(chosen, enrolmentOf(n, len(names) > 0))
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(chosen, func(e enrolment) bool { return e.node.Name == name })
		switch {
		case i < 0:
			return nil, errors.Errorf("node %q not found", name)
		case fleet.OSVersion(chosen[i].node.Status.NodeInfo.OSImage) == "":
			return nil, errors.Errorf("node %q runs %q and not Bottlerocket, so it has no Update API: leave it out, or let plans update it (label %s=%s)",
				name, chosen[i].node.Status.NodeInfo.OSImage, marker.KeyInterfaceVersion, fleet.InterfacePlan)
		}
	}
	slices.SortFunc(chosen, func(a, b enrolment) int { return cmp.Compare(a.node.Name, b.node.Name) })
	return chosen, nil
}

// confirm asks a question that only yes answers.
func (p *plugin) confirm(question string) error {
	fmt.Fprintf(p.ErrOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(p.In).ReadString('\n')
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case answer == "y" || answer == "yes":
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(p.ErrOut)
		return errors.New("there is no answer, so nothing was done: give --yes where nothing can answer")
	}
	return errors.New("nothing was done")
}

// label labels nodes, some at the same time. One that fails does not stop it, but is an error at the end.
func (p *plugin) label(ctx context.Context, client kubernetes.Interface, o *enrollOptions, nodes []*corev1.Node, named bool) error {
	var said sync.Mutex
	failed := 0
	var writing errgroup.Group
	writing.SetLimit(enrollAtOnce)
	for _, n := range nodes {
		writing.Go(func() error {
			left, err := o.labelOne(ctx, client, n, named)
			said.Lock()
			defer said.Unlock()
			switch {
			case err != nil:
				failed++
				if ctx.Err() == nil {
					fmt.Fprintf(p.ErrOut, "error: node/%s not labelled: %s\n", n.Name, line(err.Error()))
				}
			case left != "":
				p.did("node/"+n.Name, "left: "+left, &o.dryRun)
			default:
				p.did("node/"+n.Name, "labelled", &o.dryRun)
			}
			return nil
		})
	}
	_ = writing.Wait()
	if failed > 0 {
		return errors.Errorf("%d of %s could not be labelled: say it again for those", failed, plural(len(nodes), "node"))
	}
	return nil
}

// labelOne labels a node as it was read. If something wrote to it since, it is read and decided on again, so that a
// label which was set meanwhile stays as it is.
func (o *enrollOptions) labelOne(ctx context.Context, client kubernetes.Interface, n *corev1.Node, named bool) (left string, err error) {
	name, fresh := n.Name, true
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if !fresh {
			if n, err = readNode(ctx, client, name); err != nil {
				return err
			}
			if left = enrolmentOf(n, named).left; left != "" {
				return nil
			}
		}
		fresh = false
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": n.ResourceVersion,
			"labels": map[marker.Key]fleet.Interface{marker.KeyInterfaceVersion: fleet.InterfaceUpdateAPI}}})
		if err != nil || !o.sends() {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager, DryRun: o.options()})
		return err
	})
	return left, err
}
