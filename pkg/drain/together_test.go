package drain_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Several nodes that are drained at once never take a workload below its PodDisruptionBudget, as observed from
// outside, and all of them end empty.
func TestNodesDrainedTogether(t *testing.T) {
	const nodes, replicas, kept = 3, 6, 4
	l := newPlace(t)
	for i := range replicas {
		l.pod(fmt.Sprint("web-", i), on(fmt.Sprint(l.node, i%nodes)), labelled("app=web"))
	}
	l.budget("web", "web", policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: replicas - kept, ExpectedPods: replicas, CurrentHealthy: replicas, DesiredHealthy: kept},
		func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(kept)) })
	least := l.fewestReady("web")
	d := l.drainer()
	var drains sync.WaitGroup
	for i := range nodes {
		drains.Go(func() {
			for t.Context().Err() == nil {
				r, err := d.Pass(t.Context(), fmt.Sprint(l.node, i), evicting(), false, math.MaxInt)
				if err != nil || r.Remaining() == 0 {
					assert.Check(t, err == nil || t.Context().Err() != nil, "%v", err)
					return
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
	drained := make(chan struct{})
	go func() { drains.Wait(); close(drained) }()
	l.until("all are drained", func() bool {
		l.controlWorkload("web", replicas, kept)
		select {
		case <-drained:
			return true
		default:
			return false
		}
	})
	fewest := least()
	assert.Assert(t, fewest >= kept && fewest < replicas, "%d of %d were Ready", fewest, replicas)
}

// fewestReady watches an app's pods, and returns the least number that was Ready at once.
func (l *place) fewestReady(app string) func() int {
	l.t.Helper()
	pods := l.client.CoreV1().Pods(l.namespace)
	o := metav1.ListOptions{LabelSelector: "app=" + app}
	list, err := pods.List(l.t.Context(), o)
	assert.NilError(l.t, err)
	up := map[string]bool{}
	for i := range list.Items {
		up[list.Items[i].Name] = true
	}
	o.ResourceVersion = list.ResourceVersion
	w, err := pods.Watch(l.t.Context(), o)
	assert.NilError(l.t, err)
	least, ended := len(up), make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if delete(up, p.Name); e.Type != "DELETED" && serves(p) {
				up[p.Name] = true
			}
			least = min(least, len(up))
		}
	}()
	return func() int {
		w.Stop()
		<-ended
		return least
	}
}

func serves(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionTrue
}

// controlWorkload plays an app's controller, a kubelet and the budget's controller once: it replaces pods that are
// gone on another node, and updates the budget's status.
func (l *place) controlWorkload(app string, replicas, kept int) {
	l.t.Helper()
	budgets, pods := l.client.PolicyV1().PodDisruptionBudgets(l.namespace), l.client.CoreV1().Pods(l.namespace)
	b, err := budgets.Get(context.Background(), app, metav1.GetOptions{})
	assert.NilError(l.t, err)
	list, err := pods.List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + app})
	assert.NilError(l.t, err)
	healthy, leaving := 0, map[string]metav1.Time{}
	for i := range list.Items {
		p := &list.Items[i]
		if at, ok := b.Status.DisruptedPods[p.Name]; ok {
			leaving[p.Name] = at
		} else if serves(p) {
			healthy++
		}
	}
	b.Status.DisruptedPods, b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = leaving, int32(healthy), int32(max(0, healthy-kept))
	// After an eviction meanwhile this is a conflict, and the next call counts again.
	if _, err := budgets.UpdateStatus(context.Background(), b, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		assert.NilError(l.t, err)
	}
	for range replicas - len(list.Items) {
		l.pod("", on("b-"+l.namespace), labelled("app="+app), func(p *corev1.Pod) { p.GenerateName = app + "-" })
	}
}
