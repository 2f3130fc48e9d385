package kindcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// Node is a worker: a container of kind's, and a simulated host.
type Node struct {
	cluster *Cluster
	name    string
	// folder is /bottlerocket in the container.
	folder string

	// Host is the simulated host: it serves /run/api.sock on the node.
	Host   *hostsim.Host
	server *hostsim.Server

	power  sync.Mutex // held while power goes off or on
	reboot sync.Mutex
	mu     sync.Mutex
	up     bool
	dark   bool // a reboot doesn't come back
	cuts   int
}

// add makes a worker's host and boots it. kind makes the container.
func (c *Cluster) add(number int) error {
	// As kind counts.
	name := Name + "-worker"
	if number > 1 {
		name += fmt.Sprint(number)
	}
	n := &Node{cluster: c, name: name, folder: filepath.Join(c.dir, fmt.Sprintf("n%d", number)), up: true}
	host, err := hostsim.New(hostsim.Config{Name: name, Version: c.config.Version, Variant: c.config.Variant,
		Repo: c.Repo, Latencies: c.config.Latencies, OnReboot: n.onReboot})
	if err != nil {
		return err
	}
	n.Host, n.server = host, hostsim.NewServer(host)
	if err := os.Mkdir(n.folder, 0o755); err != nil {
		return errors.Wrap(err, "making a host's folder")
	}
	for _, file := range []string{"boot.sh", "kubelet.conf"} {
		content, err := etc.ReadFile("etc/" + file)
		if err != nil {
			return errors.Wrapf(err, "reading %s", file)
		}
		if err := n.write(file, string(content)); err != nil {
			return err
		}
	}
	c.Nodes = append(c.Nodes, n)
	return n.bootHost()
}

func (n *Node) write(file, content string) error {
	return errors.Wrapf(os.WriteFile(filepath.Join(n.folder, file), []byte(content), 0o644), "filling the folder of %s", n.name)
}

// bootHost puts into the folder what is there after a boot: os-release, the boot ID and the socket.
func (n *Node) bootHost() error {
	now := n.Host.Snapshot()
	release := fmt.Sprintf("NAME=Bottlerocket\nID=bottlerocket\nPRETTY_NAME=%q\nVARIANT_ID=%s\nVERSION_ID=%s\n",
		now.PrettyName, n.cluster.config.Variant, now.Version)
	if err := n.write("os-release", release); err != nil {
		return err
	}
	if err := n.write("boot-id", now.BootID+"\n"); err != nil {
		return err
	}
	return n.serve()
}

func (n *Node) serve() error {
	return errors.WithMessagef(n.server.Serve(filepath.Join(n.folder, "api.sock")), "serving the host API of %s", n.name)
}

// Name is the node's name in the cluster, and its container's.
func (n *Node) Name() string { return n.name }

// Up tells whether the node has power.
func (n *Node) Up() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up
}

// Cuts is how often the node's power was cut.
func (n *Node) Cuts() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts
}

// StayDark lets the node's next reboots end with its power off, or, with false, come back again.
func (n *Node) StayDark(dark bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dark = dark
}

// PowerOff cuts the power: every process of the node is gone at once.
func (n *Node) PowerOff(ctx context.Context) error {
	n.power.Lock()
	defer n.power.Unlock()
	n.mu.Lock()
	was := n.up
	n.up = false
	if was {
		n.cuts++
	}
	n.mu.Unlock()
	if !was {
		return nil
	}
	if _, err := n.cluster.run(ctx, nil, "docker", "kill", n.name); err != nil {
		return err
	}
	if _, err := n.cluster.run(ctx, nil, "docker", "wait", n.name); err != nil {
		return err
	}
	n.Host.PowerOff()
	_ = n.server.Close()
	return nil
}

// PowerOn boots the host and then the node. It returns when the node's first process runs.
func (n *Node) PowerOn(ctx context.Context) error {
	n.power.Lock()
	defer n.power.Unlock()
	if n.Up() {
		return nil
	}
	n.Host.Boot()
	if err := n.bootHost(); err != nil {
		return err
	}
	if _, err := n.cluster.run(ctx, nil, "docker", "start", n.name); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up = true
	return nil
}

// onReboot is the host's call after it accepted a reboot.
func (n *Node) onReboot() {
	n.cluster.work.Go(func() {
		// Asked again during a reboot, it is the same one.
		if !n.reboot.TryLock() {
			return
		}
		defer n.reboot.Unlock()
		if err := n.cycle(n.cluster.ctx); err != nil && n.cluster.ctx.Err() == nil {
			n.cluster.say("%s did not reboot: %v", n.name, err)
		}
	})
}

func (n *Node) cycle(ctx context.Context) error {
	if err := n.PowerOff(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(n.cluster.config.Down):
	}
	n.mu.Lock()
	dark := n.dark
	n.mu.Unlock()
	if dark {
		return nil
	}
	return n.PowerOn(ctx)
}

// CloseHostAPI ends the host's API server: connections to its socket are refused.
func (n *Node) CloseHostAPI() {
	n.power.Lock()
	defer n.power.Unlock()
	_ = n.server.Close()
}

// RestartHostAPI puts a new socket in the place of the old one, which leads nowhere from now on.
func (n *Node) RestartHostAPI() error {
	n.power.Lock()
	defer n.power.Unlock()
	_ = n.server.Close()
	return n.serve()
}

// Exec runs a command in the node, and returns what it printed.
func (n *Node) Exec(ctx context.Context, in *os.File, args ...string) (string, error) {
	var from io.Reader
	if in != nil {
		from = in
	}
	return n.cluster.run(ctx, from, "docker", append([]string{"exec", "--interactive", n.name}, args...)...)
}

// Restart kills a program of the node (kubelet or containerd), which systemd then starts again.
func (n *Node) Restart(ctx context.Context, program string) error {
	_, err := n.Exec(ctx, nil, "systemctl", "kill", "--signal=KILL", program+".service")
	return err
}

// Log returns the last bytes of what a program of the node wrote; nothing while the node is off.
func (n *Node) Log(program string, bytes int) string {
	out, err := n.Exec(context.Background(), nil, "journalctl", "--no-pager", "--lines=50", "--unit="+program+".service")
	if err != nil {
		return ""
	}
	out = strings.TrimSpace(out)
	return out[max(0, len(out)-bytes):]
}
