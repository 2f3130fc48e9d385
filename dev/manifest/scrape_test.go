package manifest

import (
	"fmt"
	"slices"
	"testing"

	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// metricsPort is the name of the port that metrics are served on, without a token.
const metricsPort = "http"

// A Prometheus that goes by annotations finds the metrics of every pod, and their logs are JSON.
func TestScrapeAnnotations(t *testing.T) {
	for _, w := range load(t).Workloads() {
		assert.DeepEqual(t, w.Template.Annotations, map[string]string{
			"prometheus.io/scrape": "true",
			"prometheus.io/scheme": "http",
			"prometheus.io/port":   fmt.Sprint(port(t, *w.Container(), metricsPort)),
			"prometheus.io/path":   telemetry.PathMetrics,
		})
		assert.Assert(t, is.Contains(w.Container().Args, "-log-format="+telemetry.FormatJSON))
	}
}

// podMonitor is the part of that kind that components/pod-monitor/pod-monitor.yaml needs: its types are no module of this one.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector                metav1.LabelSelector `json:"selector"`
		ScrapeNativeHistograms  bool                 `json:"scrapeNativeHistograms"`
		ScrapeClassicHistograms bool                 `json:"scrapeClassicHistograms"`
		Endpoints               []struct {
			Port        string `json:"port"`
			Scheme      string `json:"scheme"`
			Path        string `json:"path"`
			Relabelings []struct {
				Action       string   `json:"action"`
				SourceLabels []string `json:"sourceLabels"`
				TargetLabel  string   `json:"targetLabel"`
			} `json:"relabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// The optional PodMonitor chooses all pods of update-operator.yaml and components/plans/plans.yaml, and the port of their metrics, and puts the labels on
// that the dashboards use.
func TestPodMonitor(t *testing.T) {
	var m podMonitor
	assert.NilError(t, yaml.UnmarshalStrict([]byte(page(t, "components/pod-monitor/pod-monitor.yaml")), &m))
	assert.Equal(t, m.APIVersion+" "+m.Kind, "monitoring.coreos.com/v1 PodMonitor")
	assert.Equal(t, m.Namespace, Namespace, "without a namespaceSelector it chooses pods of its own namespace")
	o := load(t)
	o.Deployments = append(o.Deployments, plans(t).Deployments...)
	assert.DeepEqual(t, chosen(t, o, &m.Spec.Selector), []string{Agent, Controller, Proxy, Runner})
	assert.Assert(t, m.Spec.ScrapeNativeHistograms && m.Spec.ScrapeClassicHistograms)

	assert.Equal(t, len(m.Spec.Endpoints), 1)
	e := m.Spec.Endpoints[0]
	assert.Equal(t, e.Scheme+" "+e.Path, "http "+telemetry.PathMetrics)
	for _, w := range o.Workloads() {
		port(t, *w.Container(), e.Port)
	}
	assert.Equal(t, e.Port, metricsPort)
	var labels []string
	for _, r := range e.Relabelings {
		assert.Equal(t, r.Action, "replace")
		assert.Equal(t, len(r.SourceLabels), 1)
		labels = append(labels, r.TargetLabel)
	}
	for _, l := range []string{"node", "component"} {
		assert.Assert(t, slices.Contains(labels, l), l)
	}
}
