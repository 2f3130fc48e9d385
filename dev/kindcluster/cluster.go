package kindcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// Name is the cluster's; its containers' names begin with it.
const Name = "bottlerocket-update-operator-e2e"

const (
	// The names and the label are kind's.
	controlPlane = Name + "-control-plane"
	label        = "io.x-k8s.kind.cluster=" + Name
	adminConfig  = "/etc/kubernetes/admin.conf"

	deleteWithin = 2 * time.Minute
)

// Config is what a cluster is made of.
type Config struct {
	// Nodes is how many workers there are.
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
	config Config
	run    runner
	dir    string
	held   *os.File

	// Client is the administrator's.
	Client kubernetes.Interface
	// Nodes are the workers, in the order of their numbers.
	Nodes []*Node
	// Repo is where the hosts look for updates.
	Repo *hostsim.Repo

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	stop   sync.Once
}

// Start makes the cluster, and returns when kind says that it is there.
func Start(ctx context.Context, config Config) (_ *Cluster, err error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("a kind cluster needs Linux: hosts on another system can't give their sockets to containers")
	}
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	c := &Cluster{config: config, run: run, Repo: &hostsim.Repo{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	// A program that was killed may have left it.
	if err := c.remove(ctx); err != nil {
		return nil, err
	}
	if err := c.Release(config.Version); err != nil {
		return nil, err
	}
	for i := range config.Nodes {
		if err := c.add(i + 1); err != nil {
			return nil, err
		}
	}
	c.say("creating kind cluster %s of %d nodes with Bottlerocket %s", Name, config.Nodes, config.Version)
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	return c, c.loadWeb(ctx)
}

func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.config.Progress, format+"\n", args...)
}

// makeDir makes the cluster's folder anew, unless another program has a cluster now.
func (c *Cluster) makeDir() error {
	cache, err := controlplane.CacheDir()
	if err != nil {
		return err
	}
	c.dir = filepath.Join(cache, "kind")
	held, err := controlplane.TryLock(c.dir + ".lock")
	if err != nil {
		return err
	}
	if held == nil {
		return errors.Errorf("kind cluster %s is another program's now", Name)
	}
	c.held = held
	if err := os.RemoveAll(c.dir); err != nil {
		return errors.Wrap(err, "removing the folder of an old cluster")
	}
	return errors.Wrap(os.Mkdir(c.dir, 0o755), "making the cluster's folder")
}

func (c *Cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// create has kind make the containers. The hosts are up by then: nodes boot in here.
func (c *Cluster) create(ctx context.Context) error {
	var folders []string
	for _, n := range c.Nodes {
		folders = append(folders, n.folder)
	}
	content, err := kindConfig(folders, c.config.GracePeriod)
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, "cluster.yaml")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return errors.Wrap(err, "writing the cluster's configuration")
	}
	if _, err := c.run(ctx, nil, "kind", "create", "cluster", "--name", Name, "--config", file, "--kubeconfig", c.kubeconfig(), "--wait", "2m"); err != nil {
		return err
	}
	admin, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return errors.Wrap(err, "reading the kubeconfig")
	}
	admin.QPS = -1
	c.Client, err = kubernetes.NewForConfig(admin)
	return errors.Wrap(err, "making a client")
}

// remove deletes the containers, if there are any.
func (c *Cluster) remove(ctx context.Context) error {
	_, err := c.run(ctx, nil, "kind", "delete", "cluster", "--name", Name, "--kubeconfig", c.kubeconfig())
	return err
}

// Dir holds all files of the cluster; Stop removes it.
func (c *Cluster) Dir() string { return c.dir }

// Release publishes an OS version to all hosts.
func (c *Cluster) Release(version string) error {
	return c.Repo.Release(hostsim.Release{Version: version, Variant: c.config.Variant, Arch: "x86_64"})
}

// Kubectl runs kubectl as the administrator: the one of the control plane's node, which is of the cluster's
// own version.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, nil, args...)
}

// Apply applies manifests.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	_, err := c.kubectl(ctx, strings.NewReader(manifests), "apply", "-f", "-")
	return err
}

func (c *Cluster) kubectl(ctx context.Context, in io.Reader, args ...string) (string, error) {
	line := []string{"exec", "--interactive", controlPlane, "kubectl", "--kubeconfig", adminConfig}
	return c.run(ctx, in, "docker", append(line, args...)...)
}

// Stop ends everything and removes what is left of it. It may be called more than once.
func (c *Cluster) Stop() {
	c.stop.Do(func() {
		c.cancel()
		c.work.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), deleteWithin)
		defer cancel()
		if err := c.remove(ctx); err != nil {
			c.say("deleting the cluster: %v", err)
		}
		for _, n := range c.Nodes {
			n.CloseHostAPI()
		}
		if err := os.RemoveAll(c.dir); err != nil {
			c.say("removing the cluster's folder: %v", err)
		}
		_ = c.held.Close()
	})
}

// Leftovers names what there still is of a cluster after its Stop: containers and files.
func (c *Cluster) Leftovers() ([]string, error) {
	names, err := c.run(context.Background(), nil, "docker", "ps", "--all", "--filter", "label="+label, "--format", "{{.Names}}")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range strings.Fields(names) {
		out = append(out, "container "+name)
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		out = append(out, "folder "+c.dir)
	}
	return out, nil
}
