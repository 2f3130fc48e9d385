package controller_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/controller"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform/updateapi"
)

const (
	variant = "aws-k8s-1.36"
	arch    = "x86_64"
	v1      = "1.50.0"
	v2      = "1.51.0"
	// bound is far beyond what anything here takes.
	bound = 90 * time.Second
)

// plane is the API server of all tests. Each begins with nothing on it and takes away what it made.
var plane = controlplane.Shared{Config: controlplane.Config{AuditLog: true}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

// testFleet is a fleet on a real API server: real controller, real agents, simulated hosts, and a
// kubelet that only says what it must.
type testFleet struct {
	t         *testing.T
	client    kubernetes.Interface
	config    *rest.Config
	repo      *hostsim.Repo
	machines  map[string]*machine
	namespace string
	// audit is what the API server logged since the test began.
	audit func() io.ReadCloser
	log   logrus.FieldLogger
}

func newFleet(t *testing.T, names ...string) *testFleet {
	t.Helper()
	server := plane.Get(t)
	config := server.AdminConfig()
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	if testing.Verbose() {
		log.SetOutput(os.Stderr)
	}
	f := &testFleet{t: t, client: client, config: config, repo: &hostsim.Repo{}, machines: map[string]*machine{}, namespace: "bottlerocket", log: log}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}, metav1.CreateOptions{})
	assert.Assert(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	t.Cleanup(f.wipe)
	logged, err := os.Stat(server.AuditLog())
	assert.NilError(t, err)
	f.audit = func() io.ReadCloser {
		file, err := os.Open(server.AuditLog())
		assert.NilError(t, err)
		_, err = file.Seek(logged.Size(), io.SeekStart)
		assert.NilError(t, err)
		return file
	}
	f.release(v1)
	for _, name := range names {
		f.add(name)
	}
	t.Cleanup(func() {
		for _, m := range f.machines {
			m.powerOff()
		}
	})
	return f
}

// wipe takes away all that a test leaves on the API server.
func (f *testFleet) wipe() {
	ctx, now, all := context.Background(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}
	core, apps, admission := f.client.CoreV1(), f.client.AppsV1(), f.client.AdmissionregistrationV1()
	assert.Check(f.t, admission.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, now, all))
	assert.Check(f.t, admission.ValidatingAdmissionPolicies().DeleteCollection(ctx, now, all))
	pods, err := core.Pods("").List(ctx, all)
	assert.Check(f.t, err)
	for _, p := range pods.Items {
		if len(p.Finalizers) > 0 {
			_, err := core.Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			assert.Check(f.t, err == nil || apierrors.IsNotFound(err), "%v", err)
		}
	}
	for _, namespace := range []string{f.namespace, "default"} {
		assert.Check(f.t, core.Pods(namespace).DeleteCollection(ctx, now, all))
		assert.Check(f.t, core.ConfigMaps(namespace).DeleteCollection(ctx, now, all))
		assert.Check(f.t, core.Events(namespace).DeleteCollection(ctx, now, all))
		assert.Check(f.t, f.client.CoordinationV1().Leases(namespace).DeleteCollection(ctx, now, all))
		assert.Check(f.t, f.client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, now, all))
		assert.Check(f.t, apps.StatefulSets(namespace).DeleteCollection(ctx, now, all))
	}
	assert.Check(f.t, core.Nodes().DeleteCollection(ctx, now, all))
	assert.Check(f.t, f.client.StorageV1().VolumeAttachments().DeleteCollection(ctx, now, all))
}

func (f *testFleet) release(version string) {
	assert.NilError(f.t, f.repo.Release(hostsim.Release{Version: version, Variant: variant, Arch: arch}))
}

// control runs a controller until the test ends or stop is called.
func (f *testFleet) control(change func(*controller.Options)) (c *controller.Controller, stop func()) {
	o := controller.DefaultOptions()
	o.PodName, o.NodeName = "controller", "none"
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 3*time.Second, 2*time.Second, time.Second
	o.Policy.Soak = 0
	if change != nil {
		change(&o)
	}
	c, err := controller.New(o, f.client, nil, f.log)
	assert.NilError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			f.t.Errorf("controller: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	f.t.Cleanup(stop)
	return c, stop
}

// machine is one host with its agent and kubelet.
type machine struct {
	f      *testFleet
	name   string
	host   *hostsim.Host
	server *hostsim.Server
	dir    string

	mu      sync.Mutex
	stop    func()
	reboots int
	// stayDown: the next reboot ends in a machine that is off.
	stayDown bool
}

func (f *testFleet) add(name string, taints ...corev1.Taint) *machine {
	f.t.Helper()
	dir, err := os.MkdirTemp("", "host")
	assert.NilError(f.t, err)
	f.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &machine{f: f, name: name, dir: dir}
	boots := 0
	m.host, err = hostsim.New(hostsim.Config{Name: name, Version: v1, Variant: variant, Arch: arch, Repo: f.repo,
		BootID:   func() string { boots++; return fmt.Sprintf("%s-boot-%d", name, boots) },
		OnReboot: func() { go m.reboot() }})
	assert.NilError(f.t, err)
	m.server = hostsim.NewServer(m.host)
	ctx := context.Background()
	_, err = f.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{string(marker.KeyInterfaceVersion): "2.0.0"}}, Spec: corev1.NodeSpec{Taints: taints}}, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "agent-" + name, Labels: map[string]string{
		"app.kubernetes.io/name": "bottlerocket-update-operator", "app.kubernetes.io/component": "agent"}}}
	pod.Spec.NodeName = name
	pod.Spec.Containers = []corev1.Container{{Name: "agent", Image: "agent"}}
	_, err = f.client.CoreV1().Pods(f.namespace).Create(ctx, pod, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	m.podReady()
	f.machines[name] = m
	m.powerOn()
	return m
}

func (m *machine) podReady() {
	body := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	_, err := m.f.client.CoreV1().Pods(m.f.namespace).Patch(context.Background(), "agent-"+m.name, types.MergePatchType,
		[]byte(body), metav1.PatchOptions{}, "status")
	if err != nil {
		m.f.t.Errorf("pod of %s: %v", m.name, err)
	}
}

// powerOn serves the host's API, starts the agent and lets the kubelet report.
func (m *machine) powerOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	socket, bootID := filepath.Join(m.dir, "api.sock"), filepath.Join(m.dir, "boot_id")
	if err := m.server.Serve(socket); err != nil {
		m.f.t.Errorf("serving host %s: %v", m.name, err)
		return
	}
	if err := os.WriteFile(bootID, []byte(m.host.BootID()+"\n"), 0o600); err != nil {
		m.f.t.Error(err)
	}
	a, err := agent.New(agent.Config{Node: &apiNode{client: m.f.client, name: m.name}, Host: updateapi.New(updateapi.Config{Socket: socket, BootIDPath: bootID}),
		Log: m.f.log.WithField("node", m.name), Version: "test", RefreshEvery: time.Second})
	if err != nil {
		m.f.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Run(ctx) }()
	m.stop = func() { cancel(); <-done }
	m.kubelet(true)
}

func (m *machine) powerOff() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	_ = m.server.Close()
}

// kubelet writes what a kubelet does: Ready and nodeInfo in one status.
func (m *machine) kubelet(ready bool) {
	status := "False"
	if ready {
		status = "True"
	}
	body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}],"nodeInfo":{"bootID":%q,"osImage":%q}}}`,
		status, time.Now().UTC().Format(time.RFC3339), m.host.BootID(), hostsim.PrettyName(m.host.Snapshot().Version, variant))
	_, err := m.f.client.CoreV1().Nodes().Patch(context.Background(), m.name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		m.f.t.Errorf("kubelet of %s: %v", m.name, err)
	}
}

func (m *machine) reboot() {
	m.powerOff()
	m.mu.Lock()
	m.reboots++
	down := m.stayDown
	m.mu.Unlock()
	m.host.PowerOff()
	if down {
		return
	}
	m.host.Boot()
	m.powerOn()
}

func (m *machine) node() *corev1.Node {
	n, err := m.f.client.CoreV1().Nodes().Get(context.Background(), m.name, metav1.GetOptions{})
	if err != nil {
		m.f.t.Fatalf("node %s: %v", m.name, err)
	}
	return n
}

func (m *machine) marks() marker.Marks {
	marks, problems := marker.Decode(m.node().Annotations)
	assert.Equal(m.f.t, len(problems), 0, "%v", problems)
	return marks
}

// until polls a condition with a generous bound and says what stood there if it never held.
func (f *testFleet) until(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(bound); !ok(); {
		if time.Now().After(end) {
			for name, m := range f.machines {
				f.t.Logf("%s: %v unschedulable=%v", name, m.node().Annotations, m.node().Spec.Unschedulable)
			}
			f.t.Fatalf("never: %s", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (m *machine) updatedTo(version string) func() bool {
	return func() bool {
		n := m.node()
		marks, _ := marker.Decode(n.Annotations)
		return marks.Report.Current == version && marks.Disruption == nil && marks.Intent.Action == marker.ActionStabilize &&
			marks.Report.Answer(marks.Intent.ID) == marker.StateReady
	}
}

// apiNode lets an agent reach its node without a proxy.
type apiNode struct {
	client kubernetes.Interface
	name   string
}

func (a *apiNode) Get(ctx context.Context) (*agent.Snapshot, error) {
	n, err := a.client.CoreV1().Nodes().Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return agent.SnapshotOf(&n.ObjectMeta), nil
}

func (a *apiNode) Patch(ctx context.Context, p agent.Patch) (*agent.Snapshot, error) {
	body, err := p.Body()
	if err != nil {
		return nil, err
	}
	n, err := a.client.CoreV1().Nodes().Patch(ctx, a.name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	return agent.SnapshotOf(&n.ObjectMeta), nil
}

func (a *apiNode) Watch(ctx context.Context, seen func(*agent.Snapshot)) {
	for ctx.Err() == nil {
		w, err := a.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + a.name})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				seen(agent.SnapshotOf(&n.ObjectMeta))
			}
		}
		w.Stop()
	}
}

func (a *apiNode) WatchErr() error { return nil }
