package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"gotest.tools/v3/assert"
	is "gotest.tools/v3/assert/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	localport "github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/prometheus"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

const (
	// monitoring is the namespace of dev/dashboard.yaml.
	monitoring     = "bottlerocket-monitoring"
	monitoringFile = "dev/dashboard.yaml"
	grafana        = "grafana"
)

// monitors are the objects of dev/dashboard.yaml.
func monitors(t *testing.T) Objects {
	t.Helper()
	o, err := Decode([]byte(page(t, monitoringFile)))
	assert.NilError(t, err)
	return o
}

// Prometheus may find the operator's pods and nothing else, Grafana nothing at all; their images are those of a release,
// and the optional network policies let them in.
func TestMonitoringIsLeastPrivileged(t *testing.T) {
	o := monitors(t)
	var grants []Grant
	for _, verb := range []string{"get", "list", "watch"} {
		grants = append(grants, Grant{Resource: "pods", Verb: verb, Namespace: Namespace})
	}
	assert.DeepEqual(t, o.Grants(monitoring, "prometheus"), grants)
	assert.Assert(t, is.Len(o.Grants(monitoring, "default"), 0))
	assert.Assert(t, is.Len(o.Unbound(), 0))
	ns := o.Namespaces[0]
	assert.Equal(t, ns.Name, monitoring)
	assert.Equal(t, ns.Labels["pod-security.kubernetes.io/enforce"], "restricted")
	metrics := networkPolicies(t)[Controller].Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels
	for k, v := range metrics {
		assert.Equal(t, ns.Labels[k], v, "components/network-policy/network-policy.yaml")
	}

	pinned := regexp.MustCompile(`github.com/prometheus/prometheus v0\.(\d)(\d\d)\.(\d+)`).FindStringSubmatch(page(t, "dev/prometheus/programs/go.mod"))
	assert.Assert(t, pinned != nil)
	for _, w := range o.Workloads() {
		c := w.Container()
		assert.Assert(t, is.Regexp(`^docker\.io/(prom/prometheus|grafana/grafana):v?\d+\.\d+\.\d+$`, c.Image))
		if w.Name == grafana {
			assert.Assert(t, !*w.Template.Spec.AutomountServiceAccountToken)
			continue
		}
		assert.Equal(t, c.Image, fmt.Sprintf("docker.io/prom/prometheus:v%s.%s.%s", pinned[1], strings.TrimPrefix(pinned[2], "0"), pinned[3]), "what the tests run")
	}
}

// What is there to type on the pages and in what the targets of make print, there is.
func TestMetricsThatPagesName(t *testing.T) {
	metrics := documentedMetrics(t)
	for _, name := range []string{"docs/monitoring.md", "docs/migration.md", "dev/dashboard.sh"} {
		found := regexp.MustCompile(`\b(?:bottlerocket_update|brupop_hosts)_[a-z_]+`).FindAllString(page(t, name), -1)
		assert.Assert(t, len(found) > 0, name)
		for _, m := range found {
			_, known := metrics[m]
			assert.Check(t, known, "%s: %s", name, m)
		}
	}
}

// monitored is a cluster with the operator's manifest.
type monitored struct {
	plane  *controlplane.ControlPlane
	client kubernetes.Interface
}

// dashboard runs what make dashboard and make prometheus do.
func (m *monitored) dashboard(t *testing.T, args ...string) string {
	t.Helper()
	return m.run(t, "sh", append([]string{"dev/dashboard.sh"}, args...)...)
}

func (m *monitored) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return m.run(t, m.plane.Binaries().Kubectl, args...)
}

func (m *monitored) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = inRepository("")
	cmd.Env = append(os.Environ(), "KUBECTL="+m.plane.Binaries().Kubectl, "KUBECONFIG="+m.plane.Kubeconfig())
	out, err := cmd.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	assert.Assert(t, !strings.Contains(string(out), "Warning"), "%s", out)
	return string(out)
}

// A real API server takes what make prometheus and make dashboard apply, with the files of monitoring/ in it, and their
// pods; a real Prometheus with that configuration finds the operator's pods and scrapes them; and kubectl delete removes
// all of it.
func TestMonitoringOnACluster(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Config{ControllerManager: true})
	m := &monitored{plane: cp, client: kubernetes.NewForConfigOrDie(cp.AdminConfig())}
	m.kubectl(t, "apply", "-f", FileName)
	// Their controllers would adopt the pods that this test makes, and delete them.
	m.kubectl(t, "-n", Namespace, "delete", "daemonset,deployment", "--all")
	ctx := t.Context()

	said := m.dashboard(t, "prometheus")
	assert.Assert(t, is.Contains(said, "port-forward service/prometheus 9090"))
	deployments := m.client.AppsV1().Deployments(monitoring)
	_, err := deployments.Get(ctx, grafana, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
	_, err = deployments.Get(ctx, "prometheus", metav1.GetOptions{})
	assert.NilError(t, err)

	assert.Assert(t, is.Contains(m.dashboard(t), "port-forward service/grafana 3000"))
	for _, line := range strings.Split(m.dashboard(t), "\n") {
		assert.Check(t, !strings.HasSuffix(line, " configured") && !strings.HasSuffix(line, " created"), line)
	}
	for name, files := range map[string][]string{
		"prometheus-rules":   {"rules.yaml"},
		"grafana-dashboards": {"dashboard-fleet.json", "dashboard-node.json"},
	} {
		got, err := m.client.CoreV1().ConfigMaps(monitoring).Get(ctx, name, metav1.GetOptions{})
		assert.NilError(t, err)
		assert.Equal(t, len(got.Data), len(files))
		for _, f := range files {
			assert.Equal(t, got.Data[f], page(t, filepath.Join("monitoring", f)), f)
		}
	}
	for _, w := range monitors(t).Workloads() {
		for _, v := range w.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				_, err := m.client.CoreV1().ConfigMaps(monitoring).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
				assert.NilError(t, err)
			}
		}
		// Pod security is judged when a pod is made.
		_, err := m.client.CoreV1().Pods(monitoring).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "tried-" + w.Name}, Spec: w.Template.Spec}, metav1.CreateOptions{})
		assert.NilError(t, err)
	}

	t.Run("prometheus", func(t *testing.T) { m.scrape(t) })

	m.kubectl(t, "delete", "--ignore-not-found", "--timeout=1m", "-f", monitoringFile)
	_, err = m.client.CoreV1().Namespaces().Get(ctx, monitoring, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
	_, err = m.client.RbacV1().Roles(Namespace).Get(ctx, monitoring, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
}

// scrape runs the Prometheus of the cluster's ConfigMap here, with the rights of its account.
func (m *monitored) scrape(t *testing.T) {
	ctx := t.Context()
	config, err := m.client.CoreV1().ConfigMaps(monitoring).Get(ctx, "prometheus", metav1.GetOptions{})
	assert.NilError(t, err)
	settings := config.Data["prometheus.yaml"]
	for _, change := range [][2]string{
		{"- role: pod\n", "- role: pod\n        kubeconfig_file: " + m.kubeconfig(t) + "\n"},
		{"/etc/prometheus-rules/", inRepository("monitoring") + "/"},
		{"scrape_interval: 15s", "scrape_interval: 1s"},
	} {
		assert.Equal(t, strings.Count(settings, change[0]), 1, change[0])
		settings = strings.Replace(settings, change[0], change[1], 1)
	}
	// Beside the rules are their tests, and a rule for the Prometheus operator.
	settings = strings.Replace(settings, "/*.yaml", "/rules.yaml", 1)
	deployment := monitors(t).Workloads()[0]
	var flags []string
	for _, a := range deployment.Container().Args {
		if !strings.HasPrefix(a, "--config.file=") && !strings.HasPrefix(a, "--storage.tsdb.path=") {
			flags = append(flags, a)
		}
	}
	p, err := prometheus.Start(ctx, prometheus.Config{Dir: t.TempDir(), Settings: settings, Flags: flags, Progress: os.Stderr})
	assert.NilError(t, err)
	t.Cleanup(p.Stop)

	// These come first, so that they would be found first.
	agent := workload(t, load(t), Agent)
	m.serve(t, agent, "unannotated", func(pod *corev1.Pod) { delete(pod.Annotations, "prometheus.io/scrape") })
	m.serve(t, agent, "ended", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
	for _, w := range load(t).Workloads() {
		m.serve(t, w, "up-"+w.Component(), nil)
	}

	found := func(expr string) func() bool {
		return func() bool {
			n, err := p.Value(ctx, "count("+expr+")")
			assert.NilError(t, err)
			return n == 1
		}
	}
	for _, component := range []string{Agent, Controller, Proxy} {
		labels := fmt.Sprintf(`{component="%[1]s", node="node-of-up-%[1]s", pod="up-%[1]s", job="bottlerocket-update-operator"}`, component)
		await(t, component+" is scraped", found(`bottlerocket_update_build_info`+labels+` and on(pod) up == 1`))
	}
	await(t, "a histogram is a classic one", found(`took_seconds_bucket{component="agent", le="1.0"}`))
	await(t, "a histogram is a native one", func() bool {
		series, err := p.Query(ctx, `took_seconds{component="agent"}`)
		assert.NilError(t, err)
		return len(series) == 1 && series[0].Native
	})
	targets, err := p.Query(ctx, "up")
	assert.NilError(t, err)
	assert.Equal(t, len(targets), 3, "%v", targets)

	answer, err := http.Get(p.URL() + "/api/v1/rules?type=alert")
	assert.NilError(t, err)
	defer answer.Body.Close()
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	assert.NilError(t, json.NewDecoder(answer.Body).Decode(&rules))
	assert.Assert(t, len(rules.Data.Groups) > 0 && len(rules.Data.Groups[0].Rules) > 5, "%+v", rules)
}

// serve makes a pod of a workload that the API server knows as running, and serves its metrics.
func (m *monitored) serve(t *testing.T, w Workload, name string, change func(*corev1.Pod)) {
	t.Helper()
	address, err := localport.Reserve(0)
	assert.NilError(t, err)
	t.Cleanup(address.Release)
	pod := &corev1.Pod{ObjectMeta: *w.Template.ObjectMeta.DeepCopy(), Spec: *w.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Name, pod.Spec.NodeName = name, "node-of-"+name
	for i, p := range pod.Spec.Containers[0].Ports {
		if p.Name == metricsPort {
			pod.Spec.Containers[0].Ports[i].ContainerPort = int32(address.Number())
		}
	}
	if change != nil {
		change(pod)
	}
	nodes, pods := m.client.CoreV1().Nodes(), m.client.CoreV1().Pods(Namespace)
	_, err = nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	made, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	assert.NilError(t, err)
	// The controller manager may have written meanwhile.
	made.ResourceVersion, made.Status = "", pod.Status
	made.Status.PodIP, made.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	_, err = pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	assert.NilError(t, err)

	registry := client.NewRegistry()
	telemetry.RegisterBuildInfo(registry, w.Component())
	h := client.NewHistogram(client.HistogramOpts{Name: "took_seconds", Help: "A histogram of both kinds.", Buckets: []float64{1}, NativeHistogramBucketFactor: 1.1})
	h.Observe(1)
	registry.MustRegister(h)
	log, _ := logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- telemetry.Serve(ctx, address.Address(), telemetry.Config{Gatherer: registry, Log: log})
	}()
	t.Cleanup(func() {
		cancel()
		assert.Check(t, <-ended)
	})
}

// kubeconfig returns a file by which Prometheus has the rights of its account.
func (m *monitored) kubeconfig(t *testing.T) string {
	t.Helper()
	hour := int64(time.Hour / time.Second)
	token, err := m.client.CoreV1().ServiceAccounts(monitoring).CreateToken(t.Context(), "prometheus",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	c := clientcmdapi.NewConfig()
	c.Clusters["it"] = &clientcmdapi.Cluster{Server: m.plane.URL(), CertificateAuthority: m.plane.CAFile()}
	c.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	c.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	c.CurrentContext = "it"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	assert.NilError(t, clientcmd.WriteToFile(*c, file))
	return file
}
