package prometheus_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
)

// start runs a Prometheus for a test.
func start(t *testing.T, rules ...string) *prometheus.Prometheus {
	t.Helper()
	if testing.Short() {
		t.Skip("a short run builds no Prometheus")
	}
	p, err := prometheus.Start(t.Context(), prometheus.Config{Dir: t.TempDir(), Rules: rules, Every: time.Second, Progress: os.Stderr})
	assert.NilError(t, err)
	t.Cleanup(p.Stop)
	return p
}

// What is scraped is found, a histogram both as a classic and as a native one; and what is not a target any more isn't.
func TestScrapeAndQuery(t *testing.T) {
	p := start(t)
	registry := client.NewRegistry()
	h := client.NewHistogram(client.HistogramOpts{Name: "took_seconds", Buckets: []float64{1, 10}, NativeHistogramBucketFactor: 1.1})
	registry.MustRegister(h)
	h.Observe(5)
	h.Observe(50)
	server := httptest.NewServer(http.StripPrefix("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	defer server.Close()
	began := time.Now()
	assert.NilError(t, p.Scrape([]prometheus.Target{{Address: strings.TrimPrefix(server.URL, "http://"), Labels: map[string]string{"pod": "some"}}}))
	await := func(expr string, want float64) {
		t.Helper()
		poll.WaitOn(t, func(poll.LogT) poll.Result {
			got, err := p.Value(t.Context(), expr)
			if err != nil || got != want {
				return poll.Continue("%s is %v, %v", expr, got, err)
			}
			return poll.Success()
		}, poll.WithTimeout(time.Minute))
	}
	await(`took_seconds_bucket{pod="some",le="10.0"}`, 1)
	await(`took_seconds{pod="some"}`, 2)
	found, err := p.Query(t.Context(), "took_seconds")
	assert.NilError(t, err)
	assert.Assert(t, len(found) == 1 && found[0].Native && found[0].Labels["job"] == "bottlerocket-update-operator", "%+v", found)
	// The last step comes after the scrape that was just seen.
	found, err = p.QueryRange(t.Context(), "took_seconds_count", began, time.Now().Add(time.Second), time.Second)
	assert.NilError(t, err)
	assert.Assert(t, len(found) == 1 && len(found[0].Values) > 0 && found[0].Values[0] == 2, "%+v", found)
	await("scalar(vector(3))", 3)

	assert.NilError(t, p.Scrape(nil))
	await("count(took_seconds) or vector(0)", 0)
}

// An error of an expression is told.
func TestQueryErrors(t *testing.T) {
	p := start(t)
	_, err := p.Query(t.Context(), "sum(")
	assert.ErrorContains(t, err, "prometheus refuses")
	_, err = p.Value(t.Context(), `vector(1) or label_replace(vector(2), "a", "b", "", "")`)
	assert.ErrorContains(t, err, "2 values")
}

// Prometheus doesn't start with rules that it can't read, and says so.
func TestBadRules(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run builds no Prometheus")
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	assert.NilError(t, os.WriteFile(file, []byte("groups: [{name: a, rules: [{alert: A, expr: 'sum('}]}]"), 0o600))
	_, err := prometheus.Start(context.Background(), prometheus.Config{Dir: t.TempDir(), Rules: []string{file}, Every: time.Second})
	assert.ErrorContains(t, err, "prometheus ended")
	assert.ErrorContains(t, err, "parse error")
}
