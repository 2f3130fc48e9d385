package drain_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

var cluster controlplane.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// node is the node that the tests drain. The API server keeps pods of nodes that don't exist.
const node = "a"

// place is a test's own namespace on a real API server, without kubelets: a pod without a grace period is gone at
// once, and any other shuts down for ever.
type place struct {
	t         *testing.T
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	// node is the test's own too.
	node string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	config := cluster.Get(t).AdminConfig()
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(config)
	assert.NilError(t, err)
	n, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	return &place{t: t, config: config, client: client, namespace: n.Name, node: node + "-" + n.Name}
}

type change func(*corev1.Pod)

func running(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func finished(p *corev1.Pod) {
	p.Status.Phase, p.Status.Conditions = corev1.PodSucceeded, nil
}
func pending(p *corev1.Pod) { p.Status = corev1.PodStatus{} }
func on(node string) change { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func grace(seconds int64) change {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}
func labelled(pairs ...string) change {
	return func(p *corev1.Pod) {
		for _, pair := range pairs {
			k, v, _ := strings.Cut(pair, "=")
			p.Labels[k] = v
		}
	}
}
func owned(kind, apiVersion string) change {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "owner", Controller: new(true)}}
	}
}
func keepsData(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// pod makes a pod that runs on the node, and is Ready.
func (l *place) pod(name string, changes ...change) *corev1.Pod {
	l.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.NodeName = l.node
	p.Spec.TerminationGracePeriodSeconds = new(int64(0))
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	running(p)
	for _, c := range changes {
		c(p)
	}
	status := p.Status
	made, err := l.client.CoreV1().Pods(l.namespace).Create(l.t.Context(), p, metav1.CreateOptions{})
	assert.NilError(l.t, err)
	if status.Phase != "" {
		made.Status = status
		made, err = l.client.CoreV1().Pods(l.namespace).UpdateStatus(l.t.Context(), made, metav1.UpdateOptions{})
		assert.NilError(l.t, err)
	}
	return made
}

// budget creates a PodDisruptionBudget for the pods with a label, with the status that its controller would give it.
func (l *place) budget(name, app string, s policyv1.PodDisruptionBudgetStatus, changes ...func(*policyv1.PodDisruptionBudget)) {
	l.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	b.Spec.MinAvailable = new(intstr.FromInt32(1))
	for _, c := range changes {
		c(b)
	}
	b, err := l.client.PolicyV1().PodDisruptionBudgets(l.namespace).Create(l.t.Context(), b, metav1.CreateOptions{})
	assert.NilError(l.t, err)
	if s.ObservedGeneration == 0 {
		s.ObservedGeneration = b.Generation
	}
	b.Status = s
	_, err = l.client.PolicyV1().PodDisruptionBudgets(l.namespace).UpdateStatus(l.t.Context(), b, metav1.UpdateOptions{})
	assert.NilError(l.t, err)
}

// drainer returns a Drainer as the controller has it, with as many evictions at once.
func (l *place) drainer() *drain.Drainer {
	return &drain.Drainer{Client: l.client, Evictor: drain.NewEvictor(l.client), Parallel: 8, Now: time.Now,
		Own: func(p *corev1.Pod) bool { return p.Labels["own"] != "" }, MayEvict: func() bool { return true }}
}

// evicting are the default rules.
func evicting() policy.Eviction { return policy.DefaultSettings().Eviction }

func (l *place) pass(d *drain.Drainer, e policy.Eviction, force bool) drain.Result {
	l.t.Helper()
	r, err := d.Pass(l.t.Context(), l.node, e, force, math.MaxInt)
	assert.NilError(l.t, err)
	return r
}

// stands returns the UID of a pod and whether it is shutting down; empty if it is gone.
func (l *place) stands(name string) string {
	l.t.Helper()
	list, err := l.client.CoreV1().Pods(l.namespace).List(l.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	assert.NilError(l.t, err)
	if len(list.Items) == 0 {
		return ""
	}
	p := list.Items[0]
	if p.DeletionTimestamp != nil {
		return fmt.Sprintf("%s ends", p.UID)
	}
	return string(p.UID)
}

// before calls a function before each eviction.
type before struct {
	drain.Evictor
	do func(e *policyv1.Eviction)
}

func (b before) Evict(ctx context.Context, e *policyv1.Eviction) error {
	b.do(e)
	return b.Evictor.Evict(ctx, e)
}

func (l *place) qualified(name string) string {
	return "pod " + types.NamespacedName{Namespace: l.namespace, Name: name}.String()
}

// errForbidden is the API server's answer to an account that may not delete pods.
var errForbidden = apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("User \"x\" cannot delete resource \"pods\""))

// forbidden is a client whose account may not delete pods.
type forbidden struct{ kubernetes.Interface }

func (f forbidden) CoreV1() typedcore.CoreV1Interface { return forbiddenCore{f.Interface.CoreV1()} }

type forbiddenCore struct{ typedcore.CoreV1Interface }

func (f forbiddenCore) Pods(namespace string) typedcore.PodInterface {
	return forbiddenPods{f.CoreV1Interface.Pods(namespace)}
}

type forbiddenPods struct{ typedcore.PodInterface }

func (forbiddenPods) Delete(context.Context, string, metav1.DeleteOptions) error { return errForbidden }
