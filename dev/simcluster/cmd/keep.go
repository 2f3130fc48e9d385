package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// firstVersion is what all machines run at first.
const firstVersion = "1.50.0"

// keep runs the cluster until it is asked to stop.
func keep(ctx context.Context, at places, o options) error {
	held, err := controlplane.TryLock(at.lock)
	if err != nil {
		return err
	}
	if held == nil {
		return errBusy
	}
	defer held.Close()
	// What a cluster that was killed left.
	if err := os.RemoveAll(at.dir); err != nil {
		return errors.Wrap(err, "removing the files of the last cluster")
	}
	defer os.RemoveAll(at.dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := simcluster.Start(ctx, simcluster.Config{
		Nodes: o.nodes, Version: firstVersion, Progress: os.Stdout,
		Dir: at.dir, Port: o.port, AuthorityDir: at.authority,
		Args: map[string][]string{
			"controller": {
				"-lease-duration=6s", "-lease-renew-deadline=4s", "-lease-retry-period=1s",
			},
			"agent": {"-refresh-interval=5s"},
		},
		Policy:    "version: 1\nsoak: 5s\ndeadlines: {staging: 1m, reboot: 1m, return: 1m}\nretry: {base: 1m}\n",
		Reboot:    nodesim.Reboot{Mode: nodesim.RebootShutdown, Down: 5 * time.Second},
		Latencies: hostsim.Latencies{Refresh: 500 * time.Millisecond, Prepare: 5 * time.Second, Activate: 500 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := tools(ctx, at.bin, c.Plane.Binaries().Kubectl); err != nil {
		return err
	}
	if err := c.Install(ctx); err != nil {
		return err
	}
	if err := c.AwaitOperator(ctx, 2*time.Minute, false); err != nil {
		return err
	}
	k := &kept{Cluster: c, at: at, port: o.port, end: cancel, failing: failing{}}
	return k.serve(ctx)
}

// tools puts kubectl and the plugin into one folder, for the PATH.
func tools(ctx context.Context, dir, kubectl string) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "making a folder for programs")
	}
	fmt.Println("building the kubectl plugin")
	const plugin = "kubectl-bottlerocket"
	if err := controlplane.Go(ctx, root, "build", "-buildvcs=false", "-trimpath", "-o", filepath.Join(dir, plugin), "./cmd/"+plugin); err != nil {
		return errors.WithMessagef(err, "building %s", plugin)
	}
	return errors.Wrap(os.Symlink(kubectl, filepath.Join(dir, "kubectl")), "naming kubectl")
}
