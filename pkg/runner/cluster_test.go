package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// plane is the API server of all tests. Each has namespaces of its own, and takes its nodes away.
var plane controlplane.Shared

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

const (
	// bound is far beyond what anything here takes.
	bound  = 60 * time.Second
	before = "v1.34.1+k3s1"
	target = "v1.34.2+k3s1"
)

// onePlan is a policy with one plan.
const onePlan = `version: 1
plans:
- name: k3s
  nodeSelector: {}
  prepare: k3s-pull
  apply: k3s-apply
  target: {version: v1.34.2+k3s1}
  proof: kubeletVersion
  effect: restart
  drain: "true"
  deadline: 20m
`

// world is a cluster in which the test plays the controller and the kubelets.
type world struct {
	t       *testing.T
	admin   kubernetes.Interface
	options Options
	// later is added to the runners' clocks.
	later   atomic.Int64
	intents int
}

var worlds atomic.Int32

func newWorld(t *testing.T) *world {
	t.Helper()
	admin, err := kubernetes.NewForConfig(plane.Get(t).AdminConfig())
	assert.NilError(t, err)
	w := &world{t: t, admin: admin, options: DefaultOptions()}
	number := worlds.Add(1)
	w.options.Namespace, w.options.PlansNamespace = fmt.Sprintf("operator-%d", number), fmt.Sprintf("plans-%d", number)
	for _, name := range []string{w.options.Namespace, w.options.PlansNamespace} {
		_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	_, err = admin.CoreV1().ServiceAccounts(w.options.PlansNamespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	_, err = admin.CoreV1().Secrets(w.options.Namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.options.SecretName}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	t.Cleanup(func() {
		assert.Check(t, admin.CoreV1().Nodes().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	return w
}

// runner is one that runs.
type runner struct {
	*Runner
	// writes counts the requests that are no reads.
	writes atomic.Int64
	stop   func()
}

// start runs a runner until the test ends or it is stopped. Each of its requests passes through the functions.
func (w *world) start(each ...func(r *runner, request *http.Request) error) *runner {
	w.t.Helper()
	out := &runner{}
	config := plane.Get(w.t).AdminConfig()
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				out.writes.Add(1)
			}
			for _, f := range each {
				if err := f(out, request); err != nil {
					return nil, err
				}
			}
			return inner.RoundTrip(request)
		})
	})
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(w.t, err)
	log := logrus.New()
	log.SetLevel(logrus.DebugLevel)
	log.SetOutput(testWriter{w.t})
	out.Runner, err = New(NewConfig(w.options, client, NewMetrics(nil), log))
	assert.NilError(w.t, err)
	out.time.Now = w.clock
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.Check(w.t, out.Run(ctx))
	}()
	out.stop = sync.OnceFunc(func() { cancel() })
	w.t.Cleanup(func() {
		out.stop()
		<-done
	})
	w.until("the runner is ready", out.Ready)
	return out
}

func (w *world) clock() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Log(string(line))
	return len(line), nil
}

// until waits until a check finds nothing wrong.
func (w *world) until(what string, check func() error) {
	w.t.Helper()
	poll.WaitOn(w.t, func(poll.LogT) poll.Result {
		if err := check(); err != nil {
			return poll.Continue("%s: %v", what, err)
		}
		return poll.Success()
	}, poll.WithTimeout(bound), poll.WithDelay(20*time.Millisecond))
}

// node makes a node of plans, as its kubelet shows it.
func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n, err := w.admin.CoreV1().Nodes().Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{string(marker.KeyInterfaceVersion): "plan"}}}, metav1.CreateOptions{})
	assert.NilError(w.t, err)
	w.kubelet(name, before, "boot-1")
	return n
}

// kubelet is a kubelet's status.
func (w *world) kubelet(name, version, boot string) {
	w.t.Helper()
	w.patch(name, map[string]any{"status": map[string]any{
		"nodeInfo":   map[string]any{"kubeletVersion": version, "bootID": boot},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}}, "status")
}

func (w *world) patch(name string, change any, subresources ...string) {
	w.t.Helper()
	body, err := json.Marshal(change)
	assert.NilError(w.t, err)
	_, err = w.admin.CoreV1().Nodes().Patch(w.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	assert.NilError(w.t, err)
}

// plan is what an attempt does, with the digest that the runner found.
func (w *world) plan() *marker.Plan {
	w.t.Helper()
	return &marker.Plan{Name: "k3s", Digest: w.digest("k3s"), Proof: marker.ProofKubelet, Effect: marker.EffectRestart, Drain: marker.DrainAll,
		Apply: "k3s-apply", Deadline: "20m0s"}
}

// ask is the controller's next intent. The node is cordoned for an act.
func (w *world) ask(name string, action marker.Action, p *marker.Plan, template string, issued time.Time) marker.Intent {
	w.t.Helper()
	w.intents++
	i := marker.Intent{ID: fmt.Sprintf("intent-%d", w.intents), Action: action, Time: issued, Until: issued.Add(5 * time.Minute), Template: template}
	if p != nil && action != marker.ActionStabilize {
		i.Target = p.Version(target)
	}
	if action == marker.ActionRebootUpdate {
		i.RebootFrom = "boot-1"
	}
	annotations := map[string]any{}
	for _, k := range marker.Keys(marker.WriterController) {
		annotations[string(k)] = nil
	}
	for k, v := range marker.Encode(marker.Marks{Intent: i, Plan: p}) {
		annotations[string(k)] = v
	}
	w.patch(name, map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"unschedulable": action == marker.ActionRebootUpdate}})
	return i
}

// report is what stands on a node, and its annotations.
func (w *world) report(name string) (marker.Report, map[string]string) {
	w.t.Helper()
	n, err := w.admin.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	assert.NilError(w.t, err)
	r, _ := marker.DecodeReport(n.Annotations)
	return r, n.Annotations
}

// answered waits for an answer.
func (w *world) answered(name string, i marker.Intent, s marker.State) marker.Report {
	w.t.Helper()
	var r marker.Report
	w.until("the answer of "+name, func() error {
		if r, _ = w.report(name); r.Answer(i.ID) != s {
			return errors.Errorf("it is %+v and should be %s", r, s)
		}
		return nil
	})
	return r
}

// pods are those of plans.
func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	list, err := w.admin.CoreV1().Pods(w.options.PlansNamespace).List(w.t.Context(), metav1.ListOptions{})
	assert.NilError(w.t, err)
	return list.Items
}

// made waits for the pod of an intent.
func (w *world) made(n *corev1.Node, i marker.Intent) *corev1.Pod {
	w.t.Helper()
	var p *corev1.Pod
	w.until("the pod of "+i.ID, func() (err error) {
		p, err = w.admin.CoreV1().Pods(w.options.PlansNamespace).Get(w.t.Context(), kube.PlanPodName("k3s", string(n.UID), i.ID), metav1.GetOptions{})
		return err
	})
	return p
}

// ends is the kubelet's word on a pod's end.
func (w *world) ends(p *corev1.Pod, status int32, message string) {
	w.t.Helper()
	p.Status.Phase = corev1.PodSucceeded
	if status != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	now := metav1.Now()
	p.Status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: status, StartedAt: now, FinishedAt: now, Message: message}}})
	}
	_, err := w.admin.CoreV1().Pods(p.Namespace).UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{})
	assert.NilError(w.t, err)
}

// policy writes the policy.
func (w *world) policy(text string) {
	w.t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}, Data: map[string]string{kube.PolicyKey: text}}
	configs := w.admin.CoreV1().ConfigMaps(w.options.Namespace)
	_, err := configs.Create(w.t.Context(), config, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = configs.Update(w.t.Context(), config, metav1.UpdateOptions{})
	}
	assert.NilError(w.t, err)
}

// template makes a PodTemplate.
func (w *world) template(name string, spec corev1.PodSpec) {
	w.t.Helper()
	_, err := w.admin.CoreV1().PodTemplates(w.options.PlansNamespace).Create(w.t.Context(), &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: name},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}, Annotations: map[string]string{"note": "mine"}}, Spec: spec}},
		metav1.CreateOptions{})
	assert.NilError(w.t, err)
}

// simple is the spec of a pod with one container.
func simple() corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "apply", Image: "example.com/k3s:TARGET_VERSION"}}}
}

// planned is a world with the templates of onePlan and its policy.
func planned(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.template("k3s-pull", simple())
	w.template("k3s-apply", simple())
	w.policy(onePlan)
	return w
}

// targets are what the runner wrote of plans.
func (w *world) targets() (map[string]fleet.PlanTarget, string) {
	w.t.Helper()
	config, err := w.admin.CoreV1().ConfigMaps(w.options.Namespace).Get(w.t.Context(), kube.PlanTargetsConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ""
	}
	assert.NilError(w.t, err)
	return kube.DecodePlanTargets(config.Data), config.ResourceVersion
}

// digest waits for that of a plan.
func (w *world) digest(name string) string {
	w.t.Helper()
	var digest string
	w.until("the digest of "+name, func() error {
		all, _ := w.targets()
		if digest = all[name].Digest; digest == "" {
			return errors.Errorf("there are %+v", all)
		}
		return nil
	})
	return digest
}
