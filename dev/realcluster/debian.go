package realcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TaintDebian is the taint that nodes of Debian have from the start: only pods that are meant for them come there.
	TaintDebian = "realcluster/debian"

	debianRelease = "NAME=\"Debian GNU/Linux\"\nID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n"
	// localBin is /usr/local/bin of a node of Debian, on its disk.
	localBin = "opt/local/bin"
)

// Debian is what a node of Debian has that one of Bottlerocket hasn't.
type Debian struct {
	// Programs are files of this machine that are copied to /usr/local/bin of the node, by their names there. They come
	// before all other programs: a kubelet among them is the one that the node runs.
	Programs map[string]string
}

// AddDebian makes one more node, of another system than Bottlerocket: without a host's API, and with a /usr/local of its
// own, in which a pod may replace what it likes. It returns once the node is Ready.
func (c *Cluster) AddDebian(ctx context.Context, d Debian) (*Node, error) {
	c.mu.Lock()
	c.joined++
	joined := c.joined
	c.mu.Unlock()
	number := c.config.Nodes + joined
	if number > maxNodes {
		return nil, errors.Errorf("there is room for %d nodes in the time of a cluster", maxNodes)
	}
	n, err := c.newNode(fmt.Sprintf("debian-%d", joined), number, &d)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.debians = append(c.debians, n)
	c.mu.Unlock()
	if err := n.PowerOn(ctx); err != nil {
		return nil, err
	}
	for _, archive := range c.images {
		if err := n.Load(ctx, archive); err != nil {
			return nil, err
		}
	}
	return n, n.awaitReady(ctx)
}

// Debians are the nodes of Debian, in the order in which they were added.
func (c *Cluster) Debians() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.debians)
}

// Remove takes a node of Debian away for good: its power, and its Node.
func (c *Cluster) Remove(ctx context.Context, n *Node) error {
	if err := n.PowerOff(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	c.debians = slices.DeleteFunc(c.debians, func(other *Node) bool { return other == n })
	c.mu.Unlock()
	err := c.Client.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Wrapf(err, "deleting the Node of %s", n.name)
}

// installLocal copies the node's own programs. They are never links: what a pod writes to them stays on the node.
func (n *Node) installLocal() error {
	bin := filepath.Join(n.root, localBin)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return errors.Wrap(err, "making a node's disk")
	}
	for name, from := range n.debian.Programs {
		if err := copyFile(from, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}
