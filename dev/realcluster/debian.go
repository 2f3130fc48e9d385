package realcluster

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
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
	return c.join(ctx, "debian", joiner{debian: &d, taint: TaintDebian, version: c.config.Version})
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
