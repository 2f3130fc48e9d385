package realcluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// joiner is what a node is that joins a running cluster.
type joiner struct {
	// debian is nil for a node of Bottlerocket.
	debian *Debian
	// taint is the key of the taint that its kubelet registers it with, whose effect is NoSchedule.
	taint string
	// version is the one that its host boots at first.
	version string
}

// AddBottlerocket makes one more node, whose image is of that version, with these images besides those of all nodes. Its
// kubelet registers it with a taint of that key and NoSchedule. It returns once the node is Ready.
func (c *Cluster) AddBottlerocket(ctx context.Context, version, taint string, archives ...string) (*Node, error) {
	return c.join(ctx, "new", joiner{taint: taint, version: version}, archives...)
}

func (c *Cluster) join(ctx context.Context, prefix string, j joiner, archives ...string) (*Node, error) {
	c.mu.Lock()
	c.joined++
	joined := c.joined
	c.mu.Unlock()
	number := c.config.Nodes + joined
	if number > maxNodes {
		return nil, errors.Errorf("there is room for %d nodes in the time of a cluster", maxNodes)
	}
	n, err := c.newNode(fmt.Sprintf("%s-%d", prefix, joined), number, j)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.joiners = append(c.joiners, n)
	c.mu.Unlock()
	if err := n.PowerOn(ctx); err != nil {
		return nil, err
	}
	for _, archive := range slices.Concat(c.images, archives) {
		if err := n.Load(ctx, archive); err != nil {
			return nil, err
		}
	}
	return n, n.awaitReady(ctx)
}

// Joiners are the nodes that joined, in their order.
func (c *Cluster) Joiners() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.joiners)
}

// Remove takes a node that joined away for good: its power, and its Node.
func (c *Cluster) Remove(ctx context.Context, n *Node) error {
	if err := n.PowerOff(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	c.joiners = slices.DeleteFunc(c.joiners, func(other *Node) bool { return other == n })
	c.mu.Unlock()
	err := c.Client.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Wrapf(err, "deleting the Node of %s", n.name)
}
