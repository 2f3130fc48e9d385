package e2e_test

import (
	"context"
	"os"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
)

// cluster is what the tests use of any cluster.
type cluster interface {
	// Dir is a folder that Stop removes.
	Dir() string
	// Load imports an image archive on all nodes of the operator.
	Load(ctx context.Context, archive string) error
	Release(version string) error
	Kubectl(ctx context.Context, args ...string) (string, error)
	Apply(ctx context.Context, manifests string) error
	Stop()
	Leftovers() ([]string, error)
}

// machine is what the tests use of a node.
type machine interface {
	Name() string
	Up() bool
	Cuts() int
	StayDark(dark bool)
	PowerOff(ctx context.Context) error
	PowerOn(ctx context.Context) error
	CloseHostAPI()
	RestartHostAPI() error
	Restart(ctx context.Context, program string) error
	Exec(ctx context.Context, in *os.File, args ...string) (string, error)
	Log(program string, bytes int) string
}

// node is a machine with the host that is simulated in it.
type node struct {
	machine
	Host *hostsim.Host
}

// newWorld starts a cluster.
func newWorld(ctx context.Context) (*world, error) {
	config := realcluster.Config{
		Nodes: nodeCount, Version: version(0), Variant: variant, Down: 2 * time.Second, GracePeriod: 16 * time.Second, Progress: os.Stderr,
		Latencies: hostsim.Latencies{Refresh: 50 * time.Millisecond, Prepare: time.Second, Activate: 500 * time.Millisecond, Deactivate: 500 * time.Millisecond},
	}
	c, err := realcluster.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c, real: c, Client: c.Client}
	for _, n := range c.Nodes {
		w.Nodes = append(w.Nodes, &node{machine: n, Host: n.Host})
	}
	return w, nil
}
