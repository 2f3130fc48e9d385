package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plugin"
)

// canary is the group that goes back and forward again: one node, canaryNode, for the demo is to be short.
const canary, canaryNode = "canary", "node-1"

// backAndForward rolls the canary back to the version before, and lets it go on again: by the same steps, within the
// same limits. Where plans update all machines there is none.
func (d *demo) backAndForward(ctx context.Context, work *nodesim.Workload, seen *nodesim.Observer) error {
	machines := d.cluster.Fleet.Machines()
	at := slices.IndexFunc(machines, func(m *nodesim.Machine) bool { return m.Name() == canaryNode })
	if at < 0 {
		return nil
	}
	began, host := time.Now(), machines[at]
	for _, step := range []struct{ command, version, lock string }{{"rollback", oldVersion, oldVersion}, {"unpin", newVersion, "latest"}} {
		args := []string{step.command, "--group", canary, "--yes"}
		d.show.line("kubectl bottlerocket %s", strings.Join(args, " "))
		var out bytes.Buffer
		args = append([]string{"kubectl-bottlerocket", "--kubeconfig", d.cluster.Plane.Kubeconfig(), "-n", simcluster.Namespace}, args...)
		if plugin.Run(ctx, args, strings.NewReader(""), &out, &out) != 0 {
			return errors.Errorf("kubectl bottlerocket %s: %s", step.command, out.String())
		}
		for l := range strings.Lines(out.String()) {
			d.show.line("  | %s", strings.TrimRight(l, "\n"))
		}
		if err := d.watchEach(ctx, newKubelet, func(node string) string {
			if node == host.Name() {
				return step.version
			}
			return newVersion
		}); err != nil {
			return err
		}
		if err := simcluster.Await(ctx, fmt.Sprintf("the lock of %s is %s", host.Name(), step.lock), time.Minute, func() (bool, error) {
			return host.Host().Snapshot().Settings.VersionLock == step.lock, nil
		}); err != nil {
			return err
		}
	}
	switch boots := host.Host().Snapshot().Counters.Boots; {
	case boots != 3:
		return errors.Errorf("machine %s rebooted %d times, once for each way would be 3", host.Name(), boots)
	case seen.MaxUnschedulable() > limit:
		return errors.Errorf("%d nodes were cordoned at once, more than the limit of %d", seen.MaxUnschedulable(), limit)
	case !work.Held():
		return errors.Errorf("the workload's budget did not hold")
	}
	d.show.line("%s went back to %s and forward to %s again in %s, and its host's lock is what it was", host.Name(), oldVersion, newVersion, time.Since(began).Round(time.Second))
	return nil
}
