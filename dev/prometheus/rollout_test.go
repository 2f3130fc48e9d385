package prometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

const (
	nodes = 3
	// first is what the machines run, good what they are updated to, and bad what no machine comes up with.
	first, good, bad = "1.50.0", "1.51.0", "1.52.0"
	// bound is many times what a rollout takes.
	bound = 3 * time.Minute
	every = time.Second
)

// policy has all that a dashboard shows: zones, groups, and a freeze at %s.
const policy = `version: 1
soak: 1s
maxFailed: 1
topology:
- key: topology.kubernetes.io/zone
  maxDomains: 1
freezes:
- {from: %s, to: %s, reason: holidays}
groups:
- name: web
  nodeSelector: {matchLabels: {role: web}}
`

// rollout is a cluster, and the Prometheus that has scraped it from its beginning.
type rollout struct {
	*simcluster.Cluster
	*prometheus.Prometheus
	began time.Time
}

// begin installs the operator with two controllers, and lets Prometheus scrape all of it.
func begin(t *testing.T) *rollout {
	t.Helper()
	controlplane.SkipIfShort(t)
	freeze := time.Now().Add(100 * time.Hour).UTC()
	c, err := simcluster.Start(t.Context(), simcluster.Config{
		Nodes: nodes, Version: first, Progress: os.Stderr,
		Args: map[string][]string{
			"controller": {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=500ms"},
			"agent":      {"-refresh-interval=1s"},
		},
		Policy:    fmt.Sprintf(policy, freeze.Format(time.RFC3339), freeze.Add(time.Hour).Format(time.RFC3339)),
		Reboot:    nodesim.Reboot{Mode: nodesim.RebootShutdown, Down: 2 * time.Second},
		Latencies: hostsim.Latencies{Prepare: time.Second},
		PodStop:   100 * time.Millisecond,
	})
	assert.NilError(t, err)
	t.Cleanup(c.Stop)
	rules, err := filepath.Abs(monitoring + "/rules.yaml")
	assert.NilError(t, err)
	r := &rollout{c, start(t, rules), time.Now()}
	t.Cleanup(func() {
		if t.Failed() {
			plan, err := c.Kubectl(context.Background(), "get", "nodes", "-o", "yaml")
			t.Logf("%s\n%v\n%s", plan, err, r.Log())
		}
	})
	work, err := nodesim.StartWorkload(t.Context(), c.Client, nodesim.WorkloadConfig{Name: "web", Replicas: nodes, MaxUnavailable: 1})
	assert.NilError(t, err)
	t.Cleanup(work.Close)
	assert.NilError(t, c.Install(t.Context()))
	assert.NilError(t, c.InstallPlans(t.Context()))
	for _, args := range [][]string{
		{"-n", simcluster.Namespace, "scale", "deployment/update-operator-controller", "--replicas=2"},
		{"label", "node", "node-1", "node-2", "topology.kubernetes.io/zone=a", "role=web"},
		{"label", "node", "node-3", "topology.kubernetes.io/zone=b"},
	} {
		_, err := c.Kubectl(t.Context(), args...)
		assert.NilError(t, err)
	}
	assert.NilError(t, c.Label(t.Context()))
	assert.NilError(t, c.AwaitOperator(t.Context(), bound, true))
	// Two controllers, two proxies, a runner, and the agents.
	const pods = 2 + 2 + 1 + nodes
	r.await(t, "all pods are on their nodes", func() (bool, error) {
		targets, err := c.Targets(t.Context())
		if err != nil || len(targets) < pods {
			return false, err
		}
		return true, r.Scrape(targets)
	})
	r.awaitValue(t, "count(up == 1)", pods)
	return r
}

// await waits until Prometheus has recorded what is asked for.
func (r *rollout) await(t *testing.T, what string, ok func() (bool, error)) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), what, bound, ok))
}

func (r *rollout) awaitValue(t *testing.T, expr string, want float64) {
	t.Helper()
	r.await(t, fmt.Sprintf("%s is %v", expr, want), func() (bool, error) {
		got, err := r.Value(t.Context(), expr)
		return got == want, err
	})
}

// A real Prometheus scrapes a real rollout whose second version fails: the rules load and can be evaluated, the stopped
// version's alert fires and no other, all that rules and dashboards ask for is there, and each query of a dashboard
// returns data. Of two controllers one shows the fleet.
func TestRollout(t *testing.T) {
	r := begin(t)
	r.awaitValue(t, "count(count by (pod) (bottlerocket_update_controller_nodes))", 1)
	r.awaitValue(t, "count(bottlerocket_update_controller_leading)", 2)
	assert.NilError(t, r.Release(good))
	r.awaitValue(t, `sum(max by (version) (bottlerocket_update_controller_nodes_version{version="`+good+`"}))`, nodes)
	r.awaitValue(t, `sum(max by (phase, group, zone) (bottlerocket_update_controller_nodes{phase="UpToDate"}))`, nodes)
	for _, m := range r.Fleet.Machines() {
		assert.NilError(t, m.Host().SetFaults(hostsim.Fault{ID: hostsim.F17, Version: bad}))
	}
	assert.NilError(t, r.Release(bad))
	r.await(t, "the alert of the stopped version fires", func() (bool, error) {
		alerts, err := r.Alerts(t.Context())
		return slices.ContainsFunc(alerts, func(a prometheus.Alert) bool {
			return a.Name() == "BottlerocketUpdateVersionStopped" && a.State == "firing" && a.Labels["version"] == bad &&
				strings.Contains(a.Annotations["summary"], bad)
		}), err
	})
	r.awaitValue(t, `sum(max by (phase, group, zone) (bottlerocket_update_controller_nodes{phase=~"Waiting|Staged"}))`, nodes)

	t.Run("rules", r.rules)
	t.Run("dashboards", r.dashboards)
	t.Run("histograms", r.histograms)
}

// rules: each was evaluated, each of its metrics was scraped, and no alert fires but the one that should.
func (r *rollout) rules(t *testing.T) {
	rules, err := r.Rules(t.Context())
	assert.NilError(t, err)
	assert.Assert(t, len(rules) >= 10)
	for _, rule := range rules {
		assert.Check(t, rule.Health == "ok", "%+v", rule)
	}
	alerts, err := r.Alerts(t.Context())
	assert.NilError(t, err)
	for _, a := range alerts {
		assert.Check(t, a.State == "pending" || a.Name() == "BottlerocketUpdateVersionStopped", "%+v", a)
		assert.Check(t, a.Name() != "BottlerocketUpdateNoLeader" && a.Name() != "BottlerocketUpdateNodeLost", "%+v", a)
	}
	text, err := os.ReadFile(monitoring + "/rules.yaml")
	assert.NilError(t, err)
	for _, metric := range slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(`\bbottlerocket_update_\w+`).FindAllString(string(text), -1)))) {
		found, err := r.Query(t.Context(), "count_over_time("+metric+"[1h])")
		assert.NilError(t, err)
		assert.Check(t, len(found) > 0, "%s was not scraped", metric)
	}
}

// dashboard is what is read of a file of Grafana.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct {
			Expr    string
			Instant bool
		}
	}
}

// values is how Grafana asks for a label's values.
var values = regexp.MustCompile(`^label_values\((.*), *(\w+)\)$`)

// dashboards: each query of each panel, and each that fills a variable, returns data.
func (r *rollout) dashboards(t *testing.T) {
	files, err := filepath.Glob(monitoring + "/*.json")
	assert.NilError(t, err)
	assert.Assert(t, len(files) > 0)
	for _, file := range files {
		text, err := os.ReadFile(file)
		assert.NilError(t, err)
		var d dashboard
		assert.NilError(t, json.Unmarshal(text, &d), file)
		variables := []string{"$__rate_interval", "5s", "$__range", time.Since(r.began).Truncate(time.Second).String()}
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			m := values.FindStringSubmatch(v.Query)
			assert.Assert(t, m != nil, "%s: %s", file, v.Query)
			found, err := r.Query(t.Context(), m[1])
			assert.NilError(t, err)
			assert.Assert(t, len(found) > 0 && found[0].Labels[m[2]] != "", "%s: %s has no values", file, v.Name)
			variables = append(variables, "$"+v.Name, found[0].Labels[m[2]])
		}
		asked := 0
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				expr := strings.NewReplacer(variables...).Replace(target.Expr)
				var found []prometheus.Series
				if target.Instant {
					found, err = r.Query(t.Context(), expr)
				} else {
					found, err = r.QueryRange(t.Context(), expr, r.began, time.Now(), every)
				}
				assert.Check(t, err, "%s: %s", file, p.Title)
				assert.Check(t, slices.ContainsFunc(found, hasNumber), "%s: %s: %s returns no data", file, p.Title, expr)
				asked++
			}
		}
		assert.Assert(t, asked > 0, file)
	}
}

func hasNumber(s prometheus.Series) bool {
	return slices.ContainsFunc(s.Values, func(v float64) bool { return !math.IsNaN(v) })
}

// histograms: how long phases took is there as classic and as native histograms, and both count the same.
func (r *rollout) histograms(t *testing.T) {
	const name, staging = "bottlerocket_update_controller_phase_duration_seconds", `{phase="Staging"}`
	found, err := r.Query(t.Context(), name+staging)
	assert.NilError(t, err)
	assert.Assert(t, len(found) > 0 && found[0].Native, "%+v", found)
	count, err := r.Value(t.Context(), `sum(histogram_count(`+name+staging+`)) == sum(`+name+`_bucket{phase="Staging",le="+Inf"})`)
	assert.NilError(t, err)
	assert.Assert(t, count > 0)
}
