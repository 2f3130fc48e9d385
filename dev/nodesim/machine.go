package nodesim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// maxSocketPath is what every Unix allows for the path of a socket.
const maxSocketPath = 100

// Machine is one simulated machine.
type Machine struct {
	fleet  *Fleet
	config MachineConfig
	name   string
	index  int
	uid    types.UID // of its Node
	dir    string
	socket string

	host   *hostsim.Host
	server *hostsim.Server
	// kubelet is a client with the rights of this node's kubelet.
	kubelet   kubernetes.Interface
	kubeletAs *rest.Config

	ctx    context.Context // ends with the machine
	cancel context.CancelFunc
	wg     sync.WaitGroup // reboots under way

	rebootMu sync.Mutex // held during a reboot
	powerMu  sync.Mutex // held while the power is switched
	mu       sync.Mutex // of the fields below
	reboot   Reboot
	up       *uptime // nil while the power is off
	booted   bool    // a new host has booted already
	// kubeletVersion is what the kubelet reports.
	kubeletVersion string
}

func newMachine(f *Fleet, index int, config MachineConfig) (*Machine, error) {
	if config.Name == "" {
		return nil, errors.New("a machine needs a name")
	}
	m := &Machine{
		fleet:  f,
		config: config,
		name:   config.Name,
		index:  index,
		dir:    filepath.Join(f.dir, config.Name),
		socket: filepath.Join(f.sockets, strconv.Itoa(index)+".sock"),
		reboot: f.config.Reboot,
	}
	if m.kubeletVersion = config.KubeletVersion; m.kubeletVersion == "" {
		m.kubeletVersion = f.config.KubeletVersion
	}
	if config.Reboot != nil {
		m.reboot = *config.Reboot
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "making a machine's folder")
	}
	var err error
	if m.kubeletAs, err = f.cluster.UserConfig("system:node:"+m.name, "system:nodes"); err != nil {
		return nil, err
	}
	if m.kubelet, err = kubernetes.NewForConfig(m.kubeletAs); err != nil {
		return nil, errors.Wrap(err, "making a client")
	}
	host := config.Host
	host.Name = m.name
	host.OnReboot = m.onReboot
	if m.host, err = hostsim.New(host); err != nil {
		return nil, errors.WithMessagef(err, "making the host of %q", m.name)
	}
	m.server = hostsim.NewServer(m.host)
	m.ctx, m.cancel = context.WithCancel(f.ctx)
	return m, nil
}

// chooseSockets finds a folder that is short enough for socket paths: the
// cluster's own, unless that lies too deep.
func (f *Fleet) chooseSockets() error {
	f.sockets = filepath.Join(f.cluster.Dir(), "sockets")
	if len(f.sockets)+len("/99999.sock.01234567") <= maxSocketPath {
		return errors.Wrap(os.MkdirAll(f.sockets, 0o700), "making a folder for sockets")
	}
	var err error
	f.sockets, err = os.MkdirTemp("", "hosts")
	return errors.Wrap(err, "making a folder for sockets")
}

// Name is the name of the machine and its Node.
func (m *Machine) Name() string { return m.name }

// Planned reports whether plans update the machine.
func (m *Machine) Planned() bool { return m.config.Plan != nil }

// Host is its Bottlerocket host.
func (m *Machine) Host() *hostsim.Host { return m.host }

// Socket is the path of the host's API.
func (m *Machine) Socket() string { return m.socket }

// BootIDFile is the path of a file with the boot ID, as the kernel shows it.
func (m *Machine) BootIDFile() string { return m.path("boot_id") }

func (m *Machine) path(name string) string { return filepath.Join(m.dir, name) }

// hostIP is an address that looks like one; nothing listens there.
func (m *Machine) hostIP() string {
	return fmt.Sprintf("10.0.%d.%d", m.index>>8&0xff, m.index&0xff)
}

// podIP is such an address for the n-th pod that runs as a process.
func (m *Machine) podIP(n int) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+m.index>>8, m.index&0xff, 1+n%250)
}

// close ends the machine for good.
func (m *Machine) close() {
	m.cancel()
	m.PowerOff()
	m.wg.Wait()
	m.PowerOff()
}
