package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// noon is when everything here happens, a Monday.
var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

const v1, v2 = "1.50.0", "1.51.0"

// cluster is a real API server with the operator's namespace. Nodes live as long as their test.
type cluster struct {
	t          *testing.T
	client     kubernetes.Interface
	namespace  string
	kubeconfig string
	// leader makes the plans of the pod controller-1; nil: the API server is asked for its pod, which doesn't run.
	leader controller.Planner
}

var clusters atomic.Int32

func newCluster(t *testing.T) *cluster {
	t.Helper()
	plane := shared.Get(t)
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	assert.NilError(t, err)
	c := &cluster{t: t, client: client, namespace: fmt.Sprintf("bottlerocket-%d", clusters.Add(1)), kubeconfig: plane.Kubeconfig()}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	return c
}

// host is a node as a test describes it.
type host struct {
	name   string
	labels map[string]string
	marks  marker.Marks
	// osImage is what the kubelet says if it isn't Bottlerocket's.
	osImage string
	// annotations are what marks don't hold, and notLabelled, notReady, cordoned and noAgent what isn't usual.
	annotations                              map[marker.Key]string
	notLabelled, notReady, cordoned, noAgent bool
}

func (c *cluster) node(h host) {
	c.t.Helper()
	ctx := c.t.Context()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	for k, v := range h.labels {
		n.Labels[k] = v
	}
	if !h.notLabelled {
		n.Labels[string(marker.KeyInterfaceVersion)] = "2.0.0"
	}
	for _, part := range []map[marker.Key]string{marker.Encode(h.marks), marker.EncodeReport(h.marks.Report), h.annotations} {
		for k, v := range part {
			n.Annotations[string(k)] = v
		}
	}
	if h.cordoned {
		// As Kubernetes' node controller does.
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: noon.Add(-time.Hour)}}}
	}
	n, err := c.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	c.t.Cleanup(func() {
		assert.NilError(c.t, c.client.CoreV1().Nodes().Delete(context.Background(), h.name, metav1.DeleteOptions{}))
	})
	ready := corev1.ConditionTrue
	if h.notReady {
		ready = corev1.ConditionFalse
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	n.Status.NodeInfo.BootID, n.Status.NodeInfo.OSImage = h.marks.Report.BootID, "Bottlerocket OS "+h.marks.Report.Current+" (aws-k8s-1.36)"
	if h.osImage != "" {
		n.Status.NodeInfo.OSImage = h.osImage
	}
	_, err = c.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
	if !h.noAgent {
		c.pod("agent-"+h.name, h.name, corev1.Container{Name: "agent", Image: "agent"}, "agent")
	}
}

func (c *cluster) pod(name, node string, container corev1.Container, component string) {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"app.kubernetes.io/name": "bottlerocket-update-operator", "app.kubernetes.io/component": component}}}
	pod.Spec.NodeName, pod.Spec.Containers = node, []corev1.Container{container}
	pod, err := c.client.CoreV1().Pods(c.namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	assert.NilError(c.t, err)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = c.client.CoreV1().Pods(c.namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	assert.NilError(c.t, err)
	zero := int64(0)
	c.t.Cleanup(func() {
		_ = c.client.CoreV1().Pods(c.namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	})
}

// leads makes a controller's pod on a node the leader.
func (c *cluster) leads(node string) {
	c.t.Helper()
	c.pod("controller-1", node, corev1.Container{Name: "controller", Image: "controller", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}, "controller")
	c.holds("controller-1_8c0c", noon)
}

// holds writes the Lease of controllers, renewed at a time.
func (c *cluster) holds(identity string, renewed time.Time) {
	c.t.Helper()
	_, err := c.client.CoordinationV1().Leases(c.namespace).Create(c.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: kube.LeaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: new(int32(45)),
			AcquireTime: &metav1.MicroTime{Time: renewed.Add(-time.Hour)}, RenewTime: &metav1.MicroTime{Time: renewed}},
	}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
}

func (c *cluster) configMap(name, key, value string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value, "other": "kept"}}, metav1.CreateOptions{})
	assert.NilError(c.t, err)
}

// slots writes the list of slots as a controller would have it: with the nodes that are in its hands.
func (c *cluster) slots() {
	c.t.Helper()
	list, err := c.client.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	assert.NilError(c.t, err)
	held := map[string]string{}
	for _, n := range list.Items {
		if n.Annotations[string(marker.KeyDisruption)] != "" {
			held[string(n.UID)] = n.Name
		}
	}
	value, err := json.Marshal(held)
	assert.NilError(c.t, err)
	c.configMap(kube.StateConfigMap, "slots", string(value))
}

func (c *cluster) policyText() string {
	c.t.Helper()
	m, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.t.Context(), kube.PolicyConfigMap, metav1.GetOptions{})
	assert.NilError(c.t, err)
	return m.Data[kube.PolicyKey]
}

func (c *cluster) annotation(node string, key marker.Key) (string, bool) {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.t.Context(), node, metav1.GetOptions{})
	assert.NilError(c.t, err)
	v, there := n.Annotations[string(key)]
	return v, there
}

// said is what a command printed, how it ended, and what it asked of the API server.
type said struct {
	out, errs string
	status    int
	requests  []string
}

// run runs the plugin at noon.
func (c *cluster) run(args ...string) said { return c.runWith("", args...) }

func (c *cluster) runWith(stdin string, args ...string) said {
	c.t.Helper()
	return command(c.t.Context(), c.proxied, stdin, append([]string{"--kubeconfig", c.kubeconfig, "-n", c.namespace}, args...)...)
}

func command(ctx context.Context, through func(http.RoundTripper) http.RoundTripper, stdin string, args ...string) said {
	var out, errs bytes.Buffer
	p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs})
	p.now = func() time.Time { return noon }
	tape := &tape{}
	p.flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.Wrap(through)
		c.Wrap(tape.over)
		return c
	}
	status := p.run(ctx, args)
	// A watch that has ended may still be about to ask.
	tape.mu.Lock()
	defer tape.mu.Unlock()
	return said{out: out.String(), errs: errs.String(), status: status, requests: tape.requests}
}

// proxied is an API server that hands what is for the leader's pod to it: the real one reaches no pod here.
func (c *cluster) proxied(next http.RoundTripper) http.RoundTripper {
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/controller-1/proxy/plan", c.namespace)
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != path || c.leader == nil {
			return next.RoundTrip(r)
		}
		w := httptest.NewRecorder()
		controller.PlanHandler(c.leader).ServeHTTP(w, r)
		return w.Result(), nil
	})
}

// tape records requests.
type tape struct {
	mu       sync.Mutex
	requests []string
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (t *tape) over(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		t.mu.Lock()
		t.requests = append(t.requests, r.Method+" "+r.URL.RequestURI())
		t.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// ago is a time before noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// at puts an intent and the agent's answer to it on a host that runs one version and is offered another.
func at(action marker.Action, answer marker.State, since time.Duration, current, available string) marker.Marks {
	m := marker.Marks{
		Intent: marker.Intent{ID: "7-x", Action: action, Time: ago(since), Until: ago(since).Add(45 * time.Minute)},
		Report: marker.Report{Current: current, Available: available, BootID: "3b2a1c00-boot", Protocol: marker.Protocol, OperatorVersion: "v2.0.0"},
	}
	if answer != marker.StateNone {
		m.Report.ActiveID, m.Report.State = m.Intent.ID, answer
	}
	if action == marker.ActionPrepareUpdate || action == marker.ActionRebootUpdate {
		m.Intent.Target = available
	}
	return m
}
