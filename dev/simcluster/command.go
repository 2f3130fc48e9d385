package simcluster

import (
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
)

// component is the label that tells the operator's pods apart.
const component = manifest.LabelComponent

// command turns a scheduled pod into a process: its own program, arguments and environment, and the addresses and
// paths of this machine after them.
func (c *Cluster) command(p nodesim.Pod) (nodesim.Command, error) {
	container := p.Container()
	if len(container.Command) != 1 || !slices.Contains(programs, filepath.Base(container.Command[0])) {
		return nodesim.Command{}, errors.Errorf("pod %q runs %v, which is no program of the operator", p.Name, container.Command)
	}
	c.mu.Lock()
	image := c.images[p.Labels[component]]
	c.mu.Unlock()
	if container.Image != image {
		return nodesim.Command{}, errors.Errorf("there is no image %q here, only %q, which stands for the programs built from the checkout",
			container.Image, image)
	}
	services, err := c.services(p)
	if err != nil {
		return nodesim.Command{}, err
	}
	env, err := p.Env(services...)
	if err != nil {
		return nodesim.Command{}, err
	}
	args, err := p.Args(services...)
	if err != nil {
		return nodesim.Command{}, err
	}
	listen, err := c.port(string(p.UID), "http")
	if err != nil {
		return nodesim.Command{}, err
	}
	own, err := c.machineFlags(p)
	if err != nil {
		return nodesim.Command{}, err
	}
	own = append(own, "-listen="+listen)
	for _, flag := range own {
		if slices.ContainsFunc(args, func(a string) bool { return flagName(a) == flagName(flag) }) {
			return nodesim.Command{}, errors.Errorf("%s is this machine's to say on a local cluster: take it out of the args of container %q",
				flagName(flag), container.Name)
		}
	}
	return nodesim.Command{
		Path:  filepath.Join(c.bin, filepath.Base(container.Command[0])),
		Args:  append(args, own...),
		Env:   env,
		Ready: readyURL(container, listen),
	}, nil
}

// services are the variables by which a pod with service links finds the proxies.
func (c *Cluster) services(p nodesim.Pod) ([]corev1.EnvVar, error) {
	if links := p.Spec.EnableServiceLinks; links != nil && !*links {
		return nil, nil
	}
	address := c.ProxyAddress()
	if c.config.AgentProxy != nil {
		var err error
		if address, err = c.config.AgentProxy(p.Machine.Name()); err != nil {
			return nil, err
		}
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Wrap(err, "reading the address of the proxies' Service")
	}
	return []corev1.EnvVar{
		{Name: "UPDATE_OPERATOR_PROXY_SERVICE_HOST", Value: host}, {Name: "UPDATE_OPERATOR_PROXY_SERVICE_PORT", Value: number},
	}, nil
}

// machineFlags are what a container finds at fixed addresses and paths, and a process elsewhere.
func (c *Cluster) machineFlags(p nodesim.Pod) ([]string, error) {
	what := p.Labels[component]
	if what == manifest.Agent {
		ca, err := p.Path("/var/run/secrets/bottlerocket.aws/proxy-ca/ca.crt")
		if err != nil {
			return nil, err
		}
		token, err := p.Path("/var/run/secrets/bottlerocket.aws/proxy/token")
		if err != nil {
			return nil, err
		}
		socket, err := p.HostSocket()
		if err != nil {
			return nil, err
		}
		return []string{"-proxy-ca-file=" + ca, "-token-file=" + token, "-host-socket=" + socket, "-boot-id-file=" + p.Machine.BootIDFile()}, nil
	}
	kubeconfig, err := p.Kubeconfig()
	if err != nil {
		return nil, err
	}
	flags := []string{"-kubeconfig=" + kubeconfig}
	if what == manifest.Proxy {
		serve, err := c.port(string(p.UID), "https")
		if err != nil {
			return nil, err
		}
		c.service.add(serve)
		flags = append(flags, "-proxy-listen="+serve)
	}
	return flags, nil
}

// readyURL is what the container's readiness probe asks; empty if it has none.
func readyURL(container corev1.Container, listen string) string {
	if container.ReadinessProbe == nil || container.ReadinessProbe.HTTPGet == nil {
		return ""
	}
	return "http://" + listen + container.ReadinessProbe.HTTPGet.Path
}

// withFlags returns args with flags, each -name=value, in place of those of the same name or at the end.
func withFlags(args, flags []string) []string {
	args = slices.Clone(args)
	for _, flag := range flags {
		if i := slices.IndexFunc(args, func(a string) bool { return flagName(a) == flagName(flag) }); i >= 0 {
			args[i] = flag
		} else {
			args = append(args, flag)
		}
	}
	return args
}

// flagName is the name in -name=value, with one dash however many were written.
func flagName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return "-" + strings.TrimLeft(name, "-")
}

// port returns a loopback address of the pod's own, the same at each start of its process.
func (c *Cluster) port(pod, name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := pod + "/" + name
	if p := c.ports[key]; p != nil {
		return p.Address(), nil
	}
	p, err := port.Reserve(0)
	if err != nil {
		return "", err
	}
	c.ports[key] = p
	return p.Address(), nil
}
