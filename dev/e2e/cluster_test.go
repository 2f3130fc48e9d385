package e2e_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/kindcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
)

var onKind = flag.Bool("kind", false, "run on a cluster of docker and kind")

// notOnKind marks what needs something of a cluster that kind's hasn't.
func notOnKind(t *testing.T, lacks string) {
	t.Helper()
	if *onKind {
		t.Skip("a kind cluster has no " + lacks)
	}
}

// cluster is what the tests use of both clusters.
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

// newWorld starts the cluster that was asked for.
func newWorld(ctx context.Context) (*world, error) {
	config := realcluster.Config{
		Nodes: nodeCount, Version: version(0), Variant: variant, Down: 2 * time.Second, GracePeriod: 16 * time.Second, Progress: os.Stderr,
		Latencies: hostsim.Latencies{Refresh: 50 * time.Millisecond, Prepare: time.Second, Activate: 500 * time.Millisecond, Deactivate: 500 * time.Millisecond},
	}
	if *onKind {
		c, err := kindcluster.Start(ctx, kindcluster.Config(config))
		if err != nil {
			return nil, err
		}
		w := &world{cluster: c, Client: c.Client}
		for _, n := range c.Nodes {
			w.Nodes = append(w.Nodes, &node{machine: n, Host: n.Host})
		}
		return w, nil
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
