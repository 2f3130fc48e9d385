package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// every is how often Prometheus scrapes.
const every = time.Second

// startRecording starts a real Prometheus with the alerting rules of this checkout.
func (d *demo) startRecording(ctx context.Context) error {
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(d.cluster.Plane.Dir(), "prometheus")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return errors.Wrap(err, "making a folder for Prometheus")
	}
	d.show.line("starting Prometheus with the rules of monitoring/rules.yaml")
	d.record, err = prometheus.Start(ctx, prometheus.Config{
		Dir: dir, Rules: []string{filepath.Join(root, "monitoring", "rules.yaml")}, Every: every, Progress: os.Stdout,
	})
	return err
}

// scrape has Prometheus scrape all pods of the operator. It doesn't wait for them: Prometheus takes some seconds to take
// in what it is to scrape, as the pods do to start.
func (d *demo) scrape(ctx context.Context, pods int) error {
	return simcluster.Await(ctx, "the operator's pods are on their nodes", time.Minute, func() (bool, error) {
		targets, err := d.cluster.Targets(ctx)
		if err != nil || len(targets) < pods {
			return false, err
		}
		return true, d.record.Scrape(targets)
	})
}

// awaitScraped waits until Prometheus reaches all pods, and says where to look.
func (d *demo) awaitScraped(ctx context.Context, pods int) error {
	if err := simcluster.Await(ctx, "Prometheus reaches the operator's pods", time.Minute, func() (bool, error) {
		up, err := d.record.Value(ctx, "count(up == 1)")
		return int(up) == pods, err
	}); err != nil {
		return err
	}
	plan, err := d.cluster.PlanURL(ctx)
	if err != nil {
		return err
	}
	d.show.line("look while it runs, in another terminal:")
	for _, w := range [][2]string{
		{"what starts next, and why others wait", "curl -s " + plan},
		{"the controller's metrics", "curl -s " + strings.TrimSuffix(plan, "plan") + "metrics"},
		{"what Prometheus has of them", "curl -sG " + d.record.URL() + "/api/v1/query --data-urlencode 'query=bottlerocket_update_controller_nodes > 0'"},
		{"pending and firing alerts", "curl -s " + d.record.URL() + "/api/v1/alerts"},
	} {
		d.show.line("  %-38s %s", w[0], w[1])
	}
	return nil
}

// sameRecorded returns an error if Prometheus recorded another rollout than the one that was seen.
func (d *demo) sameRecorded(ctx context.Context, count int, took time.Duration, failures, cordoned int) error {
	// A rollout begins for the controller once the first agent has looked for updates and reported the release, and
	// everything is seen by the next scrape.
	late := 5*time.Second + took/10
	sub := fmt.Sprintf("[%ds:500ms]", int((time.Since(d.began) + time.Minute).Seconds()))
	rest := fmt.Sprintf(`sum(bottlerocket_update_controller_nodes{phase="UpToDate"}) == %d and on() sum(bottlerocket_update_controller_nodes_version{version=%q}) == %d`, count, newVersion, count-d.planned)
	begin := fmt.Sprintf(`sum(bottlerocket_update_controller_nodes_target{version=%q}) > 0`, newVersion)
	var seconds float64
	if err := simcluster.Await(ctx, "Prometheus has recorded the end of the rollout", time.Minute, func() (_ bool, err error) {
		seconds, err = d.record.Value(ctx, fmt.Sprintf("min_over_time(timestamp(%s)%s) - on() min_over_time(timestamp(%s)%[2]s)", rest, sub, begin))
		return seconds > 0, err
	}); err != nil {
		return err
	}
	recorded := time.Duration(seconds * float64(time.Second))
	if (recorded - took).Abs() > late {
		return errors.Errorf("the rollout took %s, but by Prometheus %s", took, recorded)
	}
	for _, c := range []struct {
		what, expr string
		seen       int
	}{
		{"attempts failed", "sum(max_over_time(bottlerocket_update_controller_failures_total" + sub + ")) or vector(0)", failures},
		{"nodes were out of service at once", "max(max_over_time(bottlerocket_update_controller_nodes_unavailable" + sub + "))", cordoned},
		{"alerts fired", `count(max_over_time(ALERTS{alertstate="firing"}` + sub + ")) or vector(0)", 0},
	} {
		got, err := d.record.Value(ctx, c.expr)
		if err != nil {
			return err
		}
		if int(got) != c.seen {
			return errors.Errorf("%d %s, but by Prometheus %v", c.seen, c.what, got)
		}
	}
	d.show.line("Prometheus recorded it too: %d nodes up to date, %d of them on %s, %s after the first agent reported the release; %d failures; at most %d out of service at once; no alert",
		count, count-d.planned, newVersion, recorded.Round(time.Second), failures, cordoned)
	return nil
}
