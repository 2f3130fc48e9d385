package nodesim

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Fleet is the machines of one cluster.
type Fleet struct {
	config  Config
	cluster *controlplane.ControlPlane
	// client has the administrator's rights: it makes and deletes Nodes.
	client    kubernetes.Interface
	dir, logs string
	sockets   string // short enough for socket paths

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	machines map[string]*Machine
	made     int
}

// New prepares a fleet without machines on a running control plane. It ends
// with Close or with ctx, whichever is first.
func New(ctx context.Context, cluster *controlplane.ControlPlane, config Config) (*Fleet, error) {
	if config.Namespace == "" || config.Command == nil {
		return nil, errors.New("a fleet needs a namespace and a command")
	}
	if config.KubeletVersion == "" {
		config.KubeletVersion = cluster.Binaries().Version
	}
	if config.Reboot.Mode == "" {
		config.Reboot.Mode = RebootStale
	}
	client, err := kubernetes.NewForConfig(cluster.AdminConfig())
	if err != nil {
		return nil, errors.Wrap(err, "making a client")
	}
	f := &Fleet{
		config:   config,
		cluster:  cluster,
		client:   client,
		dir:      filepath.Join(cluster.Dir(), "machines"),
		logs:     filepath.Join(cluster.Dir(), "logs"),
		machines: map[string]*Machine{},
	}
	for _, dir := range []string{f.dir, f.logs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, errors.Wrap(err, "making the fleet's folder")
		}
	}
	if err := f.chooseSockets(); err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.watchDeletions()
	return f, nil
}

// Logs is the folder with the output of the pods' processes.
func (f *Fleet) Logs() string { return f.logs }

// Machine is the machine of that name, nil if there is none.
func (f *Fleet) Machine(name string) *Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machines[name]
}

// Machines are all machines by name.
func (f *Fleet) Machines() []*Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Machine
	for _, m := range f.machines {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Machine) int { return strings.Compare(a.name, b.name) })
	return out
}

// Add makes a machine at any time: its Node is created, its host boots, and it
// is Ready when Add returns.
func (f *Fleet) Add(ctx context.Context, config MachineConfig) (*Machine, error) {
	f.mu.Lock()
	if f.machines[config.Name] != nil {
		f.mu.Unlock()
		return nil, errors.Errorf("there is a machine %q already", config.Name)
	}
	index := f.made
	f.made++
	f.mu.Unlock()
	m, err := newMachine(f, index, config)
	if err != nil {
		return nil, err
	}
	if err := m.register(ctx); err != nil {
		m.close()
		return nil, err
	}
	f.mu.Lock()
	f.machines[config.Name] = m
	f.mu.Unlock()
	if err := m.PowerOn(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Delete takes a machine away for good: its power is cut and its Node deleted.
func (f *Fleet) Delete(ctx context.Context, name string) error {
	m := f.Machine(name)
	if m == nil {
		return errors.Errorf("there is no machine %q", name)
	}
	f.forget(m)
	return m.deleteNode(ctx)
}

// forget ends a machine whose Node is gone or will be.
func (f *Fleet) forget(m *Machine) {
	f.mu.Lock()
	if f.machines[m.name] == m {
		delete(f.machines, m.name)
	}
	f.mu.Unlock()
	m.close()
}

// nodeDeleted ends the machine whose Node was deleted in the API. A Node that
// was made again under the same name is another one.
func (f *Fleet) nodeDeleted(name string, uid types.UID) {
	m := f.Machine(name)
	if m != nil && m.uid == uid {
		f.forget(m)
	}
}

// Close cuts the power of every machine and leaves the API as it is.
func (f *Fleet) Close() {
	f.cancel()
	for _, m := range f.Machines() {
		m.close()
	}
	f.wg.Wait()
	if !strings.HasPrefix(f.sockets, f.cluster.Dir()) {
		_ = os.RemoveAll(f.sockets)
	}
}

// watchDeletions ends machines whose Nodes are deleted.
func (f *Fleet) watchDeletions() {
	watch(f.ctx, &f.wg, f.client.CoreV1().RESTClient(), "nodes", "", nil, func(_, node *corev1.Node, gone bool) {
		if gone {
			f.wg.Go(func() { f.nodeDeleted(node.Name, node.UID) })
		}
	})
}
