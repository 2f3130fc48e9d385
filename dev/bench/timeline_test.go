package bench

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// span is one node's time out of service: from its cordon until its slot is free.
type span struct {
	node            string
	cordon, release time.Time
}

func (s span) length() time.Duration { return s.release.Sub(s.cordon) }

// timeline writes down, by watching, when nodes are disrupted and for how long they are in each phase.
type timeline struct {
	stop func()

	mu     sync.Mutex
	spans  []span
	open   map[string]time.Time
	phase  map[string]intent.Phase
	since  map[string]time.Time
	phases map[intent.Phase]time.Duration
}

func watchTimeline(b *testing.B, client kubernetes.Interface) *timeline {
	b.Helper()
	list, err := client.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{})
	assert.NilError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	w, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		cancel()
		b.Fatal(err)
	}
	t := &timeline{open: map[string]time.Time{}, phase: map[string]intent.Phase{}, since: map[string]time.Time{}, phases: map[intent.Phase]time.Duration{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				t.see(n, time.Now())
			}
		}
	})
	t.stop = sync.OnceFunc(func() { w.Stop(); cancel(); wg.Wait() })
	b.Cleanup(t.stop)
	return t
}

func (t *timeline) see(n *corev1.Node, now time.Time) {
	m, _ := marker.Decode(n.Annotations)
	t.mu.Lock()
	defer t.mu.Unlock()
	began, open := t.open[n.Name]
	phase := intent.PhaseOf(m)
	if before := t.phase[n.Name]; before != phase {
		if open {
			t.phases[before] += now.Sub(t.since[n.Name])
		}
		t.phase[n.Name], t.since[n.Name] = phase, now
	}
	switch {
	case m.Disruption != nil && !open:
		t.open[n.Name] = now
	case m.Disruption == nil && open:
		delete(t.open, n.Name)
		t.spans = append(t.spans, span{n.Name, began, now})
	}
}

// done returns the spans that have ended, sorted by their beginning.
func (t *timeline) done() []span {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.Clone(t.spans)
	slices.SortFunc(out, func(a, b span) int { return a.cordon.Compare(b.cordon) })
	return out
}

// explain says where the time went, on average of a node.
func (t *timeline) explain(b *testing.B) {
	b.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range intent.Phases() {
		if d := t.phases[p]; d > 0 {
			b.Logf("%12s %s", p, (d / time.Duration(len(t.spans))).Round(time.Millisecond))
		}
	}
}

// durations are reported as their mean and their most.
type durations []time.Duration

func (d durations) mean() time.Duration {
	var sum time.Duration
	for _, one := range d {
		sum += one
	}
	return sum / time.Duration(max(len(d), 1))
}

func (d durations) median() time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}

func (d durations) report(b *testing.B, name string) {
	b.Helper()
	b.ReportMetric(d.mean().Seconds(), "s-"+name)
	b.ReportMetric(slices.Max(d).Seconds(), "s-"+name+"-max")
}
