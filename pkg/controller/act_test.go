package controller_test

import (
	"bufio"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func (f *testFleet) patch(name string, body any) {
	f.t.Helper()
	data, err := json.Marshal(body)
	assert.NilError(f.t, err)
	_, err = f.client.CoreV1().Nodes().Patch(context.Background(), name, types.MergePatchType, data, metav1.PatchOptions{})
	assert.NilError(f.t, err)
}

func (f *testFleet) cordon(name string, on bool) {
	f.t.Helper()
	f.patch(name, map[string]any{"spec": map[string]any{"unschedulable": on}})
}

func (f *testFleet) annotate(name string, k marker.Key, value string) {
	f.t.Helper()
	f.patch(name, map[string]any{"metadata": map[string]any{"annotations": map[marker.Key]string{k: value}}})
}

func (f *testFleet) unlabel(name string) {
	f.t.Helper()
	f.patch(name, map[string]any{"metadata": map[string]any{"labels": map[marker.Key]any{marker.KeyInterfaceVersion: nil}}})
}

// pod puts an ordinary pod on a node.
func (f *testFleet) pod(node, name string) *corev1.Pod {
	f.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.NodeName = node
	p.Spec.TerminationGracePeriodSeconds = new(int64(0))
	p.Spec.Containers = []corev1.Container{{Name: name, Image: name}}
	_, err := f.client.CoreV1().Pods("default").Create(context.Background(), p, metav1.CreateOptions{})
	assert.NilError(f.t, err)
	body := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	p, err = f.client.CoreV1().Pods("default").Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	assert.NilError(f.t, err)
	return p
}

func (m *machine) rebooted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reboots
}

// halt ends the agent and takes its pod away.
func (m *machine) halt() {
	m.powerOff()
	assert.NilError(m.f.t, m.f.client.CoreV1().Pods(m.f.namespace).Delete(context.Background(), "agent-"+m.name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
}

// writes counts successful writes to one Node (all Nodes if name is empty), but for kubelets' status.
func (f *testFleet) writes(name string) int {
	f.t.Helper()
	file := f.audit()
	defer file.Close()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb           string
			ObjectRef      struct{ Resource, Subresource, Name string }
			ResponseStatus struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if e.ObjectRef.Resource == "nodes" && e.ObjectRef.Subresource == "" && (name == "" || e.ObjectRef.Name == name) &&
			(e.Verb == "patch" || e.Verb == "update") && e.ResponseStatus.Code < 300 {
			count++
		}
	}
	assert.NilError(f.t, lines.Err())
	return count
}

// passBy lets real time pass in which nothing may happen.
func passBy(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}

// watchHands counts, from outside, the writes after which more than limit nodes were cordoned or disrupted.
func (f *testFleet) watchHands(limit int) func() int {
	f.t.Helper()
	list, err := f.client.CoreV1().Nodes().List(f.t.Context(), metav1.ListOptions{})
	assert.NilError(f.t, err)
	w, err := f.client.CoreV1().Nodes().Watch(f.t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	assert.NilError(f.t, err)
	f.t.Cleanup(w.Stop)
	var mu sync.Mutex
	over, out := 0, map[string]bool{}
	go func() {
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			mu.Lock()
			if n.Spec.Unschedulable || n.Annotations[string(marker.KeyDisruption)] != "" {
				out[n.Name] = true
			} else {
				delete(out, n.Name)
			}
			if len(out) > limit {
				over++
			}
			mu.Unlock()
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return over
	}
}

// withoutLease returns the same fleet with a client whose Lease is another one, so that a controller on
// it believes that it leads: nothing but slots and preconditions is between it and the real leader.
func (f *testFleet) withoutLease() *testFleet {
	other := *f
	other.client = &ownLease{f.client}
	return &other
}

type ownLease struct{ kubernetes.Interface }

func (c *ownLease) CoordinationV1() typedcoordination.CoordinationV1Interface {
	return &leases{c.Interface.CoordinationV1()}
}

type leases struct {
	typedcoordination.CoordinationV1Interface
}

func (l *leases) Leases(namespace string) typedcoordination.LeaseInterface {
	return &lease{l.CoordinationV1Interface.Leases(namespace)}
}

type lease struct {
	typedcoordination.LeaseInterface
}

func (l *lease) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.LeaseInterface.Get(ctx, name+"-2", o)
}

func (l *lease) Create(ctx context.Context, obj *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	obj.Name += "-2"
	return l.LeaseInterface.Create(ctx, obj, o)
}
