package simcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Namespace is the operator's.
const Namespace = manifest.Namespace

// The simulated hosts are of one kind.
const (
	Variant = "aws-k8s-1.36"
	Arch    = "x86_64"
)

// Config is what a cluster is made of.
type Config struct {
	// Nodes is how many machines there are; they are called node-1 and so on.
	Nodes int
	// Version is the OS version that they run at first.
	Version string
	// Progress gets a line for each thing that takes time; nil is silence.
	Progress io.Writer
	// Args are written into the manifest that Install applies, by component: controller, proxy, agent. Each is
	// -flag=value, in place of the manifest's value of that flag. They are for shorter times.
	Args map[string][]string
	// Policy is the policy file that Install puts in force; empty is none.
	Policy string
	// Reboot is how machines reboot; Latencies how long their hosts take for a command.
	Reboot    nodesim.Reboot
	Latencies hostsim.Latencies
	// PodStop is how long an ordinary pod takes to go.
	PodStop time.Duration
	// Dir, Port and AuthorityDir are those of controlplane.Config; empty, the cluster shares nothing with another one.
	Dir          string
	Port         int
	AuthorityDir string
	// Kubernetes is the version; empty takes the default.
	Kubernetes string
	// AuditPolicy says what the audit log holds; empty is which user did what, without objects.
	AuditPolicy string
	// AgentProxy is the address at which the agent on a node finds the proxies, for a network that can
	// be cut; nil is their Service's.
	AgentProxy func(node string) (string, error)
}

// Cluster is a running one.
type Cluster struct {
	config Config
	bin    string

	Plane  *controlplane.ControlPlane
	Fleet  *nodesim.Fleet
	Client kubernetes.Interface
	// Repo is where the hosts look for updates.
	Repo *hostsim.Repo

	service *balancer
	network *podNetwork

	mu    sync.Mutex
	ports map[string]*port.Port
	// images are those that stand for the programs in bin, by component; Install fills it.
	images map[string]string
}

// Start builds what is missing, starts the control plane and the machines. The operator isn't installed.
func Start(ctx context.Context, config Config) (_ *Cluster, err error) {
	if config.Progress == nil {
		config.Progress = io.Discard
	}
	binaries, err := controlplane.Build(ctx, controlplane.Options{Version: config.Kubernetes, Progress: config.Progress})
	if err != nil {
		return nil, err
	}
	c := &Cluster{config: config, Repo: &hostsim.Repo{}, ports: map[string]*port.Port{}}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	if c.network, err = newPodNetwork(c.processAt); err != nil {
		return nil, err
	}
	fmt.Fprintf(config.Progress, "starting Kubernetes %s\n", binaries.Version)
	if c.Plane, err = controlplane.Start(ctx, controlplane.Config{
		Binaries: binaries, Dir: config.Dir, Port: config.Port, AuthorityDir: config.AuthorityDir,
		ControllerManager: true, Scheduler: true, AuditLog: true,
		AuditPolicy:    config.AuditPolicy,
		APIServerFlags: []string{"--egress-selector-config-file=" + c.network.config()},
	}); err != nil {
		return nil, err
	}
	c.bin = filepath.Join(c.Plane.Dir(), "operator")
	if err := build(ctx, c.bin, config.Progress); err != nil {
		return nil, err
	}
	admin := c.Plane.AdminConfig()
	admin.QPS, admin.Burst = -1, -1
	if c.Client, err = kubernetes.NewForConfig(admin); err != nil {
		return nil, errors.Wrap(err, "making a client")
	}
	if c.service, err = newBalancer(); err != nil {
		return nil, err
	}
	if err := c.Release(config.Version); err != nil {
		return nil, err
	}
	fmt.Fprintf(config.Progress, "starting %d machines with Bottlerocket %s\n", config.Nodes, config.Version)
	if c.Fleet, err = nodesim.New(ctx, c.Plane, nodesim.Config{
		Namespace: Namespace, Command: c.command, PodStop: config.PodStop, Reboot: config.Reboot,
	}); err != nil {
		return nil, err
	}
	for i := range config.Nodes {
		if _, err := c.Add(ctx, fmt.Sprintf("node-%d", i+1)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Add makes one more machine.
func (c *Cluster) Add(ctx context.Context, name string) (*nodesim.Machine, error) {
	return c.Fleet.Add(ctx, nodesim.MachineConfig{Name: name, Host: hostsim.Config{
		Version: c.config.Version, Variant: Variant, Arch: Arch, Repo: c.Repo, Latencies: c.config.Latencies,
	}})
}

// Release publishes an OS version to all hosts.
func (c *Cluster) Release(version string) error {
	return c.Repo.Release(hostsim.Release{Version: version, Variant: Variant, Arch: Arch})
}

// Kubectl runs kubectl as the administrator.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Plane.Binaries().Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.Wrapf(err, "kubectl %s: %s", strings.Join(args, " "), out)
	}
	return string(out), nil
}

// Install applies update-operator.yaml with the flags of Config.Args in it, and the policy.
func (c *Cluster) Install(ctx context.Context) error {
	if err := c.apply(ctx, manifest.FileName); err != nil || c.config.Policy == "" {
		return err
	}
	return c.SetPolicy(ctx, c.config.Policy)
}

// apply applies a file of this checkout with the flags of Config.Args in it.
func (c *Cluster) apply(ctx context.Context, name string) error {
	content, err := read(name)
	if err != nil {
		return err
	}
	objects, err := manifest.Decode(content)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.images == nil {
		c.images = map[string]string{}
	}
	for _, w := range objects.Workloads() {
		container := w.Container()
		container.Args = withFlags(container.Args, c.config.Args[w.Component()])
		c.images[w.Component()] = container.Image
	}
	c.mu.Unlock()
	if content, err = objects.YAML(); err != nil {
		return err
	}
	file := filepath.Join(c.Plane.Dir(), filepath.Base(name))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return errors.Wrap(err, "writing the manifest")
	}
	_, err = c.Kubectl(ctx, "apply", "-f", file)
	return err
}

// SetPolicy puts a policy file in force, or tries to.
func (c *Cluster) SetPolicy(ctx context.Context, text string) error {
	maps := c.Client.CoreV1().ConfigMaps(Namespace)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}, Data: map[string]string{kube.PolicyKey: text}}
	_, err := maps.Update(ctx, config, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, config, metav1.CreateOptions{})
	}
	return errors.Wrap(err, "writing the policy")
}

// Label puts all machines of Bottlerocket into the operator's care, as users do.
func (c *Cluster) Label(ctx context.Context) error {
	_, err := c.Kubectl(ctx, "label", "--overwrite", "node", "-l", string(marker.KeyInterfaceVersion)+"!="+string(fleet.InterfacePlan), string(marker.KeyInterfaceVersion)+"=2.0.0")
	return err
}

// Pods returns the operator's pods of one component.
func (c *Cluster) Pods(ctx context.Context, what string) ([]corev1.Pod, error) {
	list, err := c.Client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: component + "=" + what})
	if err != nil {
		return nil, errors.Wrapf(err, "listing pods of component %q", what)
	}
	return list.Items, nil
}

// Kill ends all processes of one component with SIGKILL, and returns how many ran.
func (c *Cluster) Kill(what string) int {
	return c.Fleet.Kill(func(p *corev1.Pod) bool { return p.Labels[component] == what })
}

// ProxyURL is where agents find the proxies.
func (c *Cluster) ProxyURL() string { return "https://" + c.ProxyAddress() }

// ProxyAddress is that of the proxies' Service.
func (c *Cluster) ProxyAddress() string { return c.service.address() }

// PlanURL is where a controller's pod serves its plan, one that is Ready if there is any; empty if there is no pod yet.
func (c *Cluster) PlanURL(ctx context.Context) (string, error) {
	pods, err := c.Pods(ctx, manifest.Controller)
	if err != nil || len(pods) == 0 {
		return "", err
	}
	ready := slices.IndexFunc(pods, func(p corev1.Pod) bool { return nodesim.Serving(&p) })
	listen, err := c.port(string(pods[max(0, ready)].UID), "http")
	return "http://" + listen + "/plan", err
}

// Stop ends everything and removes its files.
func (c *Cluster) Stop() {
	if c.Fleet != nil {
		c.Fleet.Close()
	}
	if c.service != nil {
		c.service.close()
	}
	if c.Plane != nil {
		c.Plane.Stop()
	}
	if c.network != nil {
		c.network.close()
	}
	for _, p := range c.ports {
		p.Release()
	}
}
