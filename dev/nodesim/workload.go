package nodesim

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// WorkloadConfig is an ordinary Deployment with a PodDisruptionBudget.
type WorkloadConfig struct {
	// Name is that of both, Namespace defaults to default.
	Name, Namespace string
	Replicas        int32
	// MaxUnavailable is the budget: how many pods may be away at the same time.
	MaxUnavailable int32
	// GracePeriod is the pods' time to end; zero is no time.
	GracePeriod time.Duration
}

// Workload watches over such a Deployment's pods.
type Workload struct {
	config WorkloadConfig
	client kubernetes.Interface
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	ready  map[string]bool // by pod
	full   chan struct{}   // closed when all were ready once
	lowest int             // since then
}

// StartWorkload creates the Deployment and its budget and waits until all pods
// are ready; from then on it counts. Close ends the counting.
func StartWorkload(ctx context.Context, client kubernetes.Interface, config WorkloadConfig) (*Workload, error) {
	if config.Namespace == "" {
		config.Namespace = metav1.NamespaceDefault
	}
	deployment, budget := config.objects()
	if _, err := client.PolicyV1().PodDisruptionBudgets(config.Namespace).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return nil, errors.Wrapf(err, "creating the budget of %q", config.Name)
	}
	if _, err := client.AppsV1().Deployments(config.Namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return nil, errors.Wrapf(err, "creating deployment %q", config.Name)
	}
	w := &Workload{config: config, client: client, ready: map[string]bool{}, full: make(chan struct{}), lowest: int(config.Replicas)}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.cancel = cancel
	watchLabelled(watching, &w.wg, client.CoreV1().RESTClient(), "pods", config.Namespace, nil, "app="+config.Name, w.see)
	select {
	case <-w.full:
		return w, nil
	case <-ctx.Done():
		w.Close()
		return nil, errors.Wrapf(ctx.Err(), "waiting for the pods of deployment %q", config.Name)
	}
}

func (c WorkloadConfig) objects() (*appsv1.Deployment, *policyv1.PodDisruptionBudget) {
	labels := map[string]string{"app": c.Name}
	meta := metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, Labels: labels}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: &c.Replicas,
		Selector: selector,
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(c.GracePeriod.Seconds())),
				Containers:                    []corev1.Container{{Name: "app", Image: "workload"}},
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
				}},
			},
		},
	}}
	allowed := intstr.FromInt32(c.MaxUnavailable)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &allowed, Selector: selector,
	}}
	return deployment, budget
}

func (w *Workload) see(_, pod *corev1.Pod, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone {
		delete(w.ready, string(pod.UID))
	} else {
		w.ready[string(pod.UID)] = Serving(pod)
	}
	now := w.count()
	select {
	case <-w.full:
		w.lowest = min(w.lowest, now)
	default:
		if now >= int(w.config.Replicas) {
			close(w.full)
		}
	}
}

// Serving reports whether a pod is what a budget counts: Ready, and not on its way out.
func Serving(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (w *Workload) count() int {
	n := 0
	for _, ready := range w.ready {
		if ready {
			n++
		}
	}
	return n
}

// Ready is the number of pods that serve now.
func (w *Workload) Ready() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count()
}

// MinReady is the lowest number of pods that served at any moment since all did.
func (w *Workload) MinReady() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lowest
}

// Wanted is the number of pods that the budget always wants.
func (w *Workload) Wanted() int { return int(w.config.Replicas - w.config.MaxUnavailable) }

// Held tells whether the budget held all the time.
func (w *Workload) Held() bool { return w.MinReady() >= w.Wanted() }

// Close ends the counting; the objects stay.
func (w *Workload) Close() {
	w.cancel()
	w.wg.Wait()
}
