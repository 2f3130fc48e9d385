package realcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

const (
	// Socket is where the host's API is on a node.
	Socket = "run/api.sock"
	// BootIDFile is where a node keeps its boot ID: what is mounted over the kernel's own file doesn't
	// show through the /proc of a container.
	BootIDFile = "/" + bootIDFile
	bootIDFile = "etc/boot-id"
	// apiGroup is Bottlerocket's group "api", which may use the socket.
	apiGroup = 274

	maxSocketPath = 107
	poll          = 100 * time.Millisecond
)

// Node is a machine of the cluster: a kubelet with all that belongs to it, and a simulated host.
type Node struct {
	cluster *Cluster
	name    string
	number  int
	root    string
	variant string
	debian  *Debian // nil: Bottlerocket
	taint   string  // the key of the taint that it registers with, if any

	// Host is the simulated host: it serves /run/api.sock on the node. On a node of Debian nothing does, and it only
	// counts boots.
	Host   *hostsim.Host
	server *hostsim.Server

	power  sync.Mutex // held while power goes off or on
	mu     sync.Mutex
	up     *process.Process // nil: off
	down   time.Duration    // how long a reboot takes
	dark   bool             // a reboot doesn't come back
	cuts   int
	reboot sync.Mutex
}

// Name is the node's name in the cluster.
func (n *Node) Name() string { return n.name }

// Up tells whether the node has power.
func (n *Node) Up() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up != nil && n.up.Running()
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

func (n *Node) address() net.IP { return nodeAddress(n.number) }

func (n *Node) socket() string { return filepath.Join(n.root, Socket) }

// PowerOff cuts the power: every process of the node is gone at once.
func (n *Node) PowerOff(ctx context.Context) error {
	n.power.Lock()
	defer n.power.Unlock()
	return n.off(ctx)
}

func (n *Node) off(ctx context.Context) error {
	n.mu.Lock()
	up := n.up
	n.up = nil
	if up != nil {
		n.cuts++
	}
	n.mu.Unlock()
	if up == nil {
		return nil
	}
	up.Kill()
	n.Host.PowerOff()
	_ = n.server.Close()
	return removeCgroup(ctx, n.name)
}

// PowerOn boots the host and then the node. It returns when the node's processes begin to run.
func (n *Node) PowerOn(ctx context.Context) error {
	n.power.Lock()
	defer n.power.Unlock()
	if n.Up() {
		return nil
	}
	if n.Cuts() > 0 {
		n.Host.Boot()
	}
	if err := n.writeBoot(); err != nil {
		return err
	}
	if err := n.clearRun(); err != nil {
		return err
	}
	if n.debian == nil {
		if err := n.serve(); err != nil {
			return err
		}
	}
	return n.start(ctx)
}

func (n *Node) serve() error {
	if len(n.socket()) > maxSocketPath {
		return errors.Errorf("the path of a socket is too long for this system: %s", n.socket())
	}
	if err := n.server.Serve(n.socket()); err != nil {
		return errors.WithMessagef(err, "serving the host API of %s", n.name)
	}
	return errors.Wrapf(os.Chown(n.socket(), 0, apiGroup), "serving the host API of %s", n.name)
}

// RestartHostAPI puts a new socket in the place of the old one, which leads nowhere from now on.
func (n *Node) RestartHostAPI() error {
	n.power.Lock()
	defer n.power.Unlock()
	_ = n.server.Close()
	return n.serve()
}

// start runs node-init as the first process of new namespaces, in its own cgroups.
func (n *Node) start(ctx context.Context) error {
	groups, err := makeCgroup(n.name)
	if err != nil {
		return err
	}
	log, err := process.Log(filepath.Join(n.root, "var/log/init.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	script := `for g in $1; do echo $$ >"$g/cgroup.procs" || exit 1; done; shift; exec "$@"`
	cmd := exec.Command("sh", "-c", script, "sh", strings.Join(groups, " "),
		"unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--propagation", "private", "--fork", "--kill-child",
		"bash", filepath.Join(n.root, "etc/node-init"), n.root)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NODE=" + n.name, "ADDRESS=" + n.address().String(), "GATEWAY=" + gateway,
		"BIN=" + n.cluster.binaries.Dir, "ROUTES=" + routes(n.number)}
	up, err := process.Start(cmd)
	if err != nil {
		return err
	}
	if err = leftOurs(ctx, up.Pid()); err == nil {
		err = n.cluster.network.connect(ctx, n.name, up.Pid())
	}
	if err != nil {
		up.Kill()
		return errors.WithMessagef(err, "booting %s (%s)", n.name, n.Log("init", 400))
	}
	n.mu.Lock()
	n.up = up
	n.mu.Unlock()
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
	case <-time.After(n.down):
	}
	n.mu.Lock()
	dark := n.dark
	n.mu.Unlock()
	if dark {
		return nil
	}
	return n.PowerOn(ctx)
}

// Exec runs a command in all of the node's namespaces, and returns what it printed.
func (n *Node) Exec(ctx context.Context, in *os.File, args ...string) (string, error) {
	first, err := n.firstProcess()
	if err != nil {
		return "", err
	}
	line := append([]string{"nsenter", "-t", first, "--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--",
		"env", "-i", "PATH=/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}, args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	if in != nil {
		cmd.Stdin = in
	}
	out, err := cmd.CombinedOutput()
	return string(out), errors.Wrapf(err, "running %s on %s: %s", strings.Join(args, " "), n.name, strings.TrimSpace(string(out)))
}

// firstProcess is the one that all others of the node hang on.
func (n *Node) firstProcess() (string, error) {
	n.mu.Lock()
	up := n.up
	n.mu.Unlock()
	if up == nil {
		return "", errors.Errorf("%s has no power", n.name)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", up.Pid(), up.Pid()))
	if err != nil {
		return "", errors.Wrapf(err, "looking for the processes of %s", n.name)
	}
	first, _, _ := strings.Cut(string(b), " ")
	if first == "" {
		return "", errors.Errorf("%s has no process", n.name)
	}
	return first, nil
}

// Restart kills a program of the node (kubelet, containerd, kube-proxy), which is then started again.
func (n *Node) Restart(ctx context.Context, program string) error {
	if !slices.Contains([]string{"kubelet", "containerd", "kube-proxy"}, program) {
		return errors.Errorf("%s isn't a program of a node", program)
	}
	_, err := n.Exec(ctx, nil, "sh", "-c", "kill -9 $(cat /run/"+program+".pid)")
	return err
}

// Load imports an image archive into the node's containerd.
func (n *Node) Load(ctx context.Context, archive string) error {
	const within = time.Minute
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		_, err := n.Exec(ctx, nil, "ctr", "-a", "/run/containerd/containerd.sock", "version")
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return errors.WithMessagef(err, "waiting for containerd on %s", n.name)
		case <-time.After(poll):
		}
	}
	f, err := os.Open(archive)
	if err != nil {
		return errors.Wrap(err, "opening an image")
	}
	defer f.Close()
	_, err = n.Exec(ctx, f, "ctr", "-a", "/run/containerd/containerd.sock", "-n", "k8s.io", "images", "import", "--local", "-")
	return err
}

// CloseHostAPI ends the host's API server: connections to its socket are refused.
func (n *Node) CloseHostAPI() {
	n.power.Lock()
	defer n.power.Unlock()
	_ = n.server.Close()
}
