package realcluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// Config is what a cluster is made of.
type Config struct {
	// Nodes is how many nodes there are; they are called n1 and so on.
	Nodes int
	// Version is the OS version that they run at first; Variant is theirs for good.
	Version, Variant string
	// Down is how long a reboot keeps a node off.
	Down time.Duration
	// GracePeriod is how long a silent node stays Ready; zero is the controller manager's default.
	GracePeriod time.Duration
	// Latencies are how long the hosts take for a command.
	Latencies hostsim.Latencies
	// Progress gets a line for each thing that takes time; nil is silence.
	Progress io.Writer
}

// Cluster is a running one.
type Cluster struct {
	config   Config
	binaries controlplane.Binaries
	network  *network
	images   []string
	inotify  string

	// Plane is the control plane, in the cluster's network.
	Plane *controlplane.ControlPlane
	// Client is the administrator's.
	Client kubernetes.Interface
	// Nodes are those of Bottlerocket, in the order of their numbers.
	Nodes []*Node
	// Repo is where the hosts look for updates.
	Repo *hostsim.Repo

	mu sync.Mutex
	// joiners are the nodes that joined and are still there, joined how many there ever were.
	joiners []*Node
	joined  int

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

const (
	inotifyLimit = "/proc/sys/fs/inotify/max_user_instances"
	// Several kubelets and containerds need more than the usual 128.
	inotifyNeeded = 1024

	readyWithin = 3 * time.Minute
)

// Start builds what is missing, and returns when all nodes are Ready and DNS is being deployed.
func Start(ctx context.Context, config Config) (_ *Cluster, err error) {
	if why := Missing(); why != "" {
		return nil, errors.New(why)
	}
	if config.Nodes > maxNodes {
		return nil, errors.Errorf("%d nodes are more than the %d that a cluster has room for", config.Nodes, maxNodes)
	}
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	binaries, err := controlplane.Build(ctx, controlplane.Options{Groups: []controlplane.Group{controlplane.GroupControlPlane, controlplane.GroupNode}, Progress: config.Progress})
	if err != nil {
		return nil, err
	}
	c := &Cluster{config: config, binaries: binaries, Repo: &hostsim.Repo{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	sweepCgroups()
	if err := c.raiseInotify(); err != nil {
		return nil, err
	}
	if c.network, err = newNetwork(ctx); err != nil {
		return nil, err
	}
	c.say("starting Kubernetes %s", binaries.Version)
	if c.Plane, err = controlplane.Start(ctx, controlplane.Config{
		Binaries: binaries, ControllerManager: true, Scheduler: true, AuditLog: true, NodeMonitorGracePeriod: config.GracePeriod,
		Network: &controlplane.Network{Enter: c.network.enter(), Address: net.ParseIP(gateway), Dial: c.network.dial},
	}); err != nil {
		return nil, err
	}
	if c.Client, err = kubernetes.NewForConfig(c.Plane.AdminConfig()); err != nil {
		return nil, errors.Wrap(err, "making a client")
	}
	if err := c.Release(config.Version); err != nil {
		return nil, err
	}
	if err := c.makeImages(); err != nil {
		return nil, err
	}
	c.say("starting %d nodes with Bottlerocket %s", config.Nodes, config.Version)
	for i := range config.Nodes {
		n, err := c.newNode(fmt.Sprintf("n%d", i+1), i+1, joiner{version: config.Version})
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
		if err := n.PowerOn(ctx); err != nil {
			return nil, err
		}
	}
	for _, archive := range c.images {
		if err := c.Load(ctx, archive); err != nil {
			return nil, err
		}
	}
	for _, n := range c.Nodes {
		if err := n.awaitReady(ctx); err != nil {
			return nil, err
		}
	}
	dns, err := render("coredns.yaml", facts{DNS: dnsService, CoreDNS: corednsImage})
	if err != nil {
		return nil, err
	}
	return c, c.Apply(ctx, string(dns))
}

func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.config.Progress, format+"\n", args...)
}

func (c *Cluster) raiseInotify() error {
	b, err := os.ReadFile(inotifyLimit)
	if err != nil {
		return errors.Wrap(err, "reading a limit of inotify")
	}
	had := strings.TrimSpace(string(b))
	if n, err := strconv.Atoi(had); err == nil && n >= inotifyNeeded {
		return nil
	}
	c.inotify = had
	return errors.Wrap(os.WriteFile(inotifyLimit, []byte(strconv.Itoa(inotifyNeeded)), 0o644), "raising a limit of inotify")
}

// newNode makes a node that has no power yet.
func (c *Cluster) newNode(name string, number int, j joiner) (*Node, error) {
	n := &Node{cluster: c, name: name, number: number, root: filepath.Join(c.Plane.Dir(), name), variant: c.config.Variant, down: c.config.Down, debian: j.debian, taint: j.taint}
	host, err := hostsim.New(hostsim.Config{Name: filepath.Base(c.Plane.Dir()) + name, Version: j.version, Variant: c.config.Variant,
		Repo: c.Repo, Latencies: c.config.Latencies, OnReboot: n.onReboot})
	if err != nil {
		return nil, err
	}
	n.Host, n.server = host, hostsim.NewServer(host)
	return n, n.makeDisk(c.Plane)
}

// Dir holds all files of the cluster; Stop removes it.
func (c *Cluster) Dir() string { return c.Plane.Dir() }

// Load imports an image archive on every node of Bottlerocket.
func (c *Cluster) Load(ctx context.Context, archive string) error {
	for _, n := range c.Nodes {
		if err := n.Load(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

// Release publishes an OS version to all hosts.
func (c *Cluster) Release(version string) error {
	return c.Repo.Release(hostsim.Release{Version: version, Variant: c.config.Variant, Arch: "x86_64"})
}

// Kubectl runs kubectl as the administrator, in the cluster's network.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, "", args...)
}

// Apply applies manifests.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	_, err := c.kubectl(ctx, manifests, "apply", "-f", "-")
	return err
}

// Run runs a program in a folder and in the cluster's network, where $KUBECONFIG is the administrator's and $KUBECTL this
// cluster's kubectl, and returns what it printed.
func (c *Cluster) Run(ctx context.Context, dir string, args ...string) (string, error) {
	return c.run(ctx, dir, "", args...)
}

func (c *Cluster) kubectl(ctx context.Context, in string, args ...string) (string, error) {
	return c.run(ctx, "", in, append([]string{c.binaries.Kubectl}, args...)...)
}

// run runs a command in the cluster's network.
func (c *Cluster) run(ctx context.Context, dir, in string, args ...string) (string, error) {
	line := append(c.network.enter(), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(), "KUBECTL="+c.binaries.Kubectl)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), errors.Wrapf(err, "%s: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
}

// awaitReady waits until the node is Ready in its present boot.
func (n *Node) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !n.ready(ctx) {
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "waiting for %s to be Ready; its kubelet says: %s", n.name, n.Log("kubelet", 600))
		case <-time.After(poll):
		}
	}
	return nil
}

func (n *Node) ready(ctx context.Context) bool {
	node, err := n.cluster.Client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil || node.Status.NodeInfo.BootID != n.Host.BootID() {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Stop ends everything and removes what is left of it. It may be called more than once.
func (c *Cluster) Stop() {
	c.cancel()
	c.work.Wait()
	for _, n := range slices.Concat(c.Nodes, c.Joiners()) {
		if err := n.PowerOff(context.Background()); err != nil {
			c.say("stopping %s: %v", n.name, err)
		}
	}
	if c.Plane != nil {
		c.Plane.Stop()
	}
	if c.network != nil {
		c.network.close()
	}
	sweepCgroups()
	if c.inotify != "" {
		_ = os.WriteFile(inotifyLimit, []byte(c.inotify), 0o644)
		c.inotify = ""
	}
}
