package realcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

// The cluster's network: a bridge with the nodes on it, 192.168.77.(10+i) each, and the API server beside
// them. A node's pods have 10.244.i.0/24, and every node has a route to them.
const (
	gateway    = "192.168.77.1"
	dnsService = "10.96.0.10"
	// maxNodes is how many nodes have routes.
	maxNodes = 16
	// A bridge without an address of its own takes the lowest one of its ports: a node that comes or goes
	// would change it and cut off the others until they ask again, for half a minute.
	bridgeMAC = "02:00:00:00:00:01"

	namespaceWithin = 10 * time.Second
	namespacePoll   = 10 * time.Millisecond
)

func nodeAddress(i int) net.IP { return net.IPv4(192, 168, 77, byte(10+i)) }

// routes are commands of ip -batch: to the pods of all nodes but one.
func routes(but int) string {
	var b strings.Builder
	for i := 1; i <= maxNodes; i++ {
		if i != but {
			fmt.Fprintf(&b, "route add 10.244.%d.0/24 via %s\n", i, nodeAddress(i))
		}
	}
	return b.String()
}

// network is the namespace with the bridge. It lives as long as a process in it.
type network struct {
	holder *process.Process
	path   string
}

func newNetwork(ctx context.Context) (_ *network, err error) {
	n := &network{}
	if n.holder, err = process.Start(exec.Command("unshare", "--net", "sleep", "infinity")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	n.path = fmt.Sprintf("/proc/%d/ns/net", n.holder.Pid())
	if err := leftOurs(ctx, n.holder.Pid()); err != nil {
		return nil, err
	}
	setup := fmt.Sprintf("link set lo up\nlink add br0 address %s type bridge\naddr add %s/24 dev br0\nlink set br0 up\n%s", bridgeMAC, gateway, routes(0))
	if err := n.ip(ctx, setup); err != nil {
		return nil, err
	}
	return n, n.run(ctx, nil, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
}

func (n *network) close() { n.holder.Kill() }

// enter is what a command line begins with to run in the namespace.
func (n *network) enter() []string { return []string{"nsenter", "--net=" + n.path, "--"} }

// ip carries out commands of ip -batch in the namespace.
func (n *network) ip(ctx context.Context, commands string) error {
	return n.run(ctx, strings.NewReader(commands), "ip", "-batch", "-")
}

func (n *network) run(ctx context.Context, in *strings.Reader, args ...string) error {
	line := append(n.enter(), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	if in != nil {
		cmd.Stdin = in
	}
	out, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "running %s in the cluster's network: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
}

// connect gives the node whose namespaces belong to pid a link to the bridge.
func (n *network) connect(ctx context.Context, node string, pid int) error {
	return n.ip(ctx, fmt.Sprintf("link add v%s type veth peer name eth0 netns %d\nlink set v%s master br0 up\n", node, pid, node))
}

// leftOurs waits until a process is in another network namespace than this one: before that, a link
// made for it would end up in the machine's own.
func leftOurs(ctx context.Context, pid int) error {
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return errors.Wrap(err, "reading our own network namespace")
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceWithin)
	defer cancel()
	for {
		theirs, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(pid), "ns/net"))
		if err != nil {
			return errors.Wrap(err, "starting namespaces")
		}
		if theirs != ours {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "waiting for a network namespace")
		case <-time.After(namespacePoll):
		}
	}
}

// Dial connects to a TCP address in the cluster's network: a pod's, for instance. No kube-proxy runs there,
// so Services have no addresses.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	return c.network.dial(ctx, "tcp", address)
}
