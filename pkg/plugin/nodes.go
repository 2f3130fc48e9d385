package plugin

import (
	"context"
	"encoding/json"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// fieldManager is the name under which the API server records the writes.
const fieldManager = "kubectl-bottlerocket"

// oneArg says in which words a command takes one.
func oneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.Errorf("name %s; see '%s --help'", what, c.CommandPath())
		case len(args) > 1:
			return noArgs(c, args[1:])
		}
		return nil
	}
}

func oneArgAtMost(c *cobra.Command, args []string) error { return noArgs(c, args[min(1, len(args)):]) }

func readNode(ctx context.Context, client kubernetes.Interface, name string) (*corev1.Node, error) {
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.Errorf("node %q not found", name)
	}
	return n, errors.Wrapf(err, "reading node %q", name)
}

// readNodes reads all that are named, before anything is written to one of them.
func readNodes(ctx context.Context, client kubernetes.Interface, names []string) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	for _, name := range names {
		n, err := readNode(ctx, client, name)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func labelled(n *corev1.Node) bool { return fleet.InterfaceOf(n.Labels) != fleet.InterfaceNone }

// annotate gives a node an annotation, or takes it away if the value is nil, and says so. Nothing else of the node is
// touched, and what another client wrote in between is read first.
func (p *plugin) annotate(ctx context.Context, client kubernetes.Interface, n *corev1.Node, key marker.Key, value *string, did string, dry *dryRun) error {
	name, fresh := n.Name, true
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if !fresh {
			if n, err = readNode(ctx, client, name); err != nil {
				return err
			}
		}
		fresh = false
		stands, there := n.Annotations[string(key)]
		if there == (value != nil) && (value == nil || stands == *value) {
			did = "unchanged"
			return nil
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": n.ResourceVersion, "annotations": map[marker.Key]*string{key: value}}})
		if err != nil || !dry.sends() {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry.options()})
		return err
	})
	if err != nil {
		return errors.Wrapf(err, "annotating node %q", name)
	}
	p.did("node/"+name, did, dry)
	return nil
}
