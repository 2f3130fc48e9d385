// Command demo updates a fleet of simulated Bottlerocket machines on a real Kubernetes control plane
// (dev/simcluster), as README.md says: install, label, release, watch; and one of them back and forward again. It exits
// 0 only if every node was updated, the limit was never exceeded, the workload's budget always held, and a real
// Prometheus recorded the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	oldVersion = "1.50.0"
	newVersion = "1.51.0"
	limit      = 1

	oldKubelet = "v1.35.4+k3s1"
	newKubelet = "v1.36.3+k3s1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "demo: interrupted, everything is stopped")
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	count := fs.Int("nodes", 6, "how many machines")
	planned := fs.Int("plans", 0, "how many of them are of another system than Bottlerocket, which a plan updates")
	bound := fs.Duration("bound", 10*time.Minute, "give up on the rollout after so long; building what is missing is not counted")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *count < 2 {
		return errors.Errorf("flag -nodes is %d: give 2 or more, for the only node of a cluster isn't drained", *count)
	}
	if *planned < 0 || *planned > *count {
		return errors.Errorf("flag -plans is %d: give 0 to %d, the number of machines", *planned, *count)
	}
	// What client-go says of its tries would stand in the middle of the table.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	d := &demo{began: time.Now(), show: newScreen(os.Stdout), planned: *planned}
	return d.run(ctx, *count, *bound)
}

type demo struct {
	began   time.Time
	show    *screen
	cluster *simcluster.Cluster
	record  *prometheus.Prometheus
	// planned is how many of the machines a plan updates.
	planned int
}

// policy is the demo's policy file, which names what plans bring too.
func (d *demo) policy(kubelet string) string {
	text := fmt.Sprintf("version: 1\nmaxUnavailable: %d\nsoak: 2s\ngroups:\n- name: %s # one node, to go back and forward\n  nodeSelector: {matchLabels: {%s: %s}}\n",
		limit, canary, corev1.LabelHostname, canaryNode)
	if d.planned > 0 {
		text += fmt.Sprintf("plans:\n- {name: k3s, nodeSelector: {}, apply: k3s-upgrade, target: {version: %s}, proof: kubeletVersion, effect: restart, maxMinorSkip: 1}\n", kubelet)
	}
	return text
}

func (d *demo) run(ctx context.Context, count int, bound time.Duration) error {
	if _, err := prometheus.Programs(ctx, os.Stdout); err != nil {
		return err
	}
	var err error
	d.cluster, err = simcluster.Start(ctx, simcluster.Config{
		Nodes: count - d.planned, Version: oldVersion, Progress: os.Stdout,
		Args: map[string][]string{
			"controller": {"-lease-duration=6s", "-lease-renew-deadline=4s", "-lease-retry-period=1s"},
			"agent":      {"-refresh-interval=2s"},
		},
		Policy:    d.policy(oldKubelet),
		Reboot:    nodesim.Reboot{Mode: nodesim.RebootShutdown, Down: 2 * time.Second},
		Latencies: hostsim.Latencies{Refresh: 200 * time.Millisecond, Prepare: 2 * time.Second, Activate: 200 * time.Millisecond},
		PodStop:   500 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer d.cluster.Stop()
	for i := range d.planned {
		if _, err := d.cluster.AddPlanned(ctx, fmt.Sprintf("debian-%d", i+1), oldKubelet, simcluster.UpgradesKubelet); err != nil {
			return err
		}
	}
	if err := d.startRecording(ctx); err != nil {
		return err
	}
	defer d.record.Stop()
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	d.show.line("starting a workload of %d replicas whose PodDisruptionBudget lets one be away", count)
	work, err := nodesim.StartWorkload(ctx, d.cluster.Client, nodesim.WorkloadConfig{Name: "web", Replicas: int32(count), MaxUnavailable: 1, GracePeriod: time.Second})
	if err != nil {
		return err
	}
	defer work.Close()
	seen := nodesim.Observe(ctx, d.cluster.Client)
	defer seen.Close()

	d.show.line("kubectl apply -f update-operator.yaml")
	if err := d.cluster.Install(ctx); err != nil {
		return err
	}
	// A controller, two proxies, and an agent on each node of Bottlerocket.
	pods := 1 + 2 + count - d.planned
	if d.planned > 0 {
		d.show.line("kubectl apply -f components/plans/plans.yaml -f docs/plans/k3s.yaml    # for %d nodes of Debian, labelled %s=plan", d.planned, marker.KeyInterfaceVersion)
		if err := d.cluster.InstallPlans(ctx, "k3s.yaml"); err != nil {
			return err
		}
		pods++
	}
	d.show.line("kubectl label node --all %s=2.0.0", marker.KeyInterfaceVersion)
	if err := d.cluster.Label(ctx); err != nil {
		return err
	}
	if err := d.scrape(ctx, pods); err != nil {
		return err
	}
	if err := d.cluster.AwaitOperator(ctx, 2*time.Minute, true); err != nil {
		return err
	}
	if err := d.awaitScraped(ctx, pods); err != nil {
		return err
	}
	if err := d.watch(ctx, oldVersion, oldKubelet); err != nil {
		return err
	}
	d.show.line("Bottlerocket %s is released", newVersion)
	if err := d.cluster.Release(newVersion); err != nil {
		return err
	}
	if d.planned > 0 {
		d.show.line("the plan targets %s", newKubelet)
		if err := d.cluster.SetPolicy(ctx, d.policy(newKubelet)); err != nil {
			return err
		}
	}
	started := time.Now()
	if err := d.watch(ctx, newVersion, newKubelet); err != nil {
		return err
	}
	took := time.Since(started)
	if err := d.judge(ctx, count, took, work, seen); err != nil {
		return err
	}
	return d.backAndForward(ctx, work, seen)
}

// watch shows the fleet until every node is at rest on its version.
func (d *demo) watch(ctx context.Context, version, kubelet string) error {
	return d.watchEach(ctx, kubelet, func(string) string { return version })
}

// watchEach is the same with a version for each node of Bottlerocket.
func (d *demo) watchEach(ctx context.Context, kubelet string, version func(node string) string) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := d.cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return errors.Wrap(err, "listing nodes")
		}
		d.show.table(rows(list.Items))
		done := 0
		for i := range list.Items {
			if atRest(&list.Items[i], version(list.Items[i].Name), kubelet) {
				done++
			}
		}
		if done == len(list.Items) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "waiting until all nodes run what they are to: %d of %d do", done, len(list.Items))
		case <-tick.C:
		}
	}
}

func atRest(n *corev1.Node, version, kubelet string) bool {
	m, problems := marker.Decode(n.Annotations)
	there := m.Report.Current == version && fleet.OSVersion(n.Status.NodeInfo.OSImage) == version
	if fleet.InterfaceOf(n.Labels) == fleet.InterfacePlan {
		there = n.Status.NodeInfo.KubeletVersion == kubelet
	}
	return there && len(problems) == 0 && m.Disruption == nil && m.Intent.Action == marker.ActionStabilize &&
		m.Report.Answer(m.Intent.ID) == marker.StateReady && !n.Spec.Unschedulable && nodesim.Ready(n)
}

// judge says in one line what happened, and returns what should not have.
func (d *demo) judge(ctx context.Context, count int, took time.Duration, work *nodesim.Workload, seen *nodesim.Observer) error {
	nodes, err := d.cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return errors.Wrap(err, "listing nodes")
	}
	failures := 0
	for i := range nodes.Items {
		m, _ := marker.Decode(nodes.Items[i].Annotations)
		for _, attempt := range m.History {
			if attempt.Outcome == marker.OutcomeFailed {
				failures++
			}
		}
	}
	reboots := 0
	for _, m := range d.cluster.Fleet.Machines() {
		boots := m.Host().Snapshot().Counters.Boots
		if m.Planned() {
			// Its plan starts the kubelet anew.
			boots++
		}
		if boots != 1 {
			return errors.Errorf("machine %s rebooted %d times", m.Name(), boots)
		}
		reboots += m.Host().Snapshot().Counters.Boots
	}
	if n := seen.MaxUnschedulable(); n > limit {
		return errors.Errorf("%d nodes were cordoned at once, more than the limit of %d", n, limit)
	}
	if !work.Held() {
		return errors.Errorf("the workload's budget did not hold: %d of %d replicas served at the worst moment", work.MinReady(), count)
	}
	if err := simcluster.Await(ctx, "the workload is complete again", time.Minute, func() (bool, error) {
		return work.Ready() >= count, nil
	}); err != nil {
		return err
	}
	if err := d.sameRecorded(ctx, count, took, failures, seen.MaxUnschedulable()); err != nil {
		return err
	}
	updated := fmt.Sprintf("%d nodes updated from %s to %s", count-d.planned, oldVersion, newVersion)
	if d.planned > 0 {
		updated += fmt.Sprintf(", and %d by the plan k3s from %s to %s,", d.planned, oldKubelet, newKubelet)
	}
	d.show.line("%s in %s with %d reboots and %d failures; at most %d cordoned at once; at least %d of %d replicas always served; %s in all",
		updated, took.Round(time.Second), reboots, failures, seen.MaxUnschedulable(), work.MinReady(), count,
		time.Since(d.began).Round(time.Second))
	return nil
}
