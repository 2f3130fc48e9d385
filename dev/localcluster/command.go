package localcluster

import (
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodes"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
)

// component is the label that tells the operator's pods apart.
const component = "app.kubernetes.io/component"

// command turns a scheduled pod into a process: its own program and arguments, and after them those
// that this machine needs. A flag given twice has the later value.
func (c *Cluster) command(p nodes.Pod) (nodes.Command, error) {
	container := p.Container()
	if len(container.Command) != 1 || !slices.Contains(programs, filepath.Base(container.Command[0])) {
		return nodes.Command{}, errors.Errorf("pod %q runs %v, which is no program of the operator", p.Name, container.Command)
	}
	env, err := p.Env()
	if err != nil {
		return nodes.Command{}, err
	}
	listen, err := c.port(string(p.UID), "http")
	if err != nil {
		return nodes.Command{}, err
	}
	args := append(slices.Clone(container.Args), "-listen="+listen)
	more, err := c.arguments(p)
	if err != nil {
		return nodes.Command{}, err
	}
	return nodes.Command{
		Path:  filepath.Join(c.bin, filepath.Base(container.Command[0])),
		Args:  append(args, more...),
		Env:   env,
		Ready: "http://" + listen + "/readyz",
	}, nil
}

func (c *Cluster) arguments(p nodes.Pod) ([]string, error) {
	what := p.Labels[component]
	args := slices.Clone(c.config.Args[what])
	if what == "agent" {
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
		server := c.ProxyURL()
		if c.config.AgentProxy != nil {
			address, err := c.config.AgentProxy(p.Machine.Name())
			if err != nil {
				return nil, err
			}
			server = "https://" + address
		}
		return append(args, "-proxy-server="+server, "-proxy-ca-file="+ca, "-token-file="+token,
			"-host-socket="+socket, "-boot-id-file="+p.Machine.BootIDFile()), nil
	}
	kubeconfig, err := p.Kubeconfig()
	if err != nil {
		return nil, err
	}
	args = append(args, "-kubeconfig="+kubeconfig)
	if what == "proxy" {
		serve, err := c.port(string(p.UID), "https")
		if err != nil {
			return nil, err
		}
		c.service.add(serve)
		args = append(args, "-proxy-listen="+serve)
	}
	return args, nil
}

// port returns a loopback address of the pod's own, the same at each start of its process.
func (c *Cluster) port(pod, name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := pod + "/" + name
	if p := c.ports[key]; p != nil {
		return p.Address(), nil
	}
	p, err := port.Reserve()
	if err != nil {
		return "", err
	}
	c.ports[key] = p
	return p.Address(), nil
}
