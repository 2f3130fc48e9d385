package nodesim

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A pod that is bound to a node at any moment around a boot is started, also when watches show late what lists show
// already: while the simulated kubelet went by two views of the API, pods of such a moment stayed Pending for ever.
func TestPodsBoundAroundABoot(t *testing.T) {
	r := newRig(t)
	for name, late := range map[string]time.Duration{"at-once": 0, "late": 100 * time.Millisecond} {
		t.Run("watches "+name, func(t *testing.T) {
			m := r.add("bound-"+name, nil)
			m.delayWatches(t, late)
			bound := r.bindAround(m, func() { assert.Check(t, m.Reboot(r.ctx, 500*time.Millisecond)) })
			r.await("all pods to be ready", func() bool { return r.notServing(bound) == "" })
			// And all of them go.
			for _, name := range bound {
				assert.NilError(t, r.client.CoreV1().Pods("default").Delete(r.ctx, name, metav1.DeleteOptions{}))
			}
			r.await("all pods to be gone", func() bool {
				l, err := r.client.CoreV1().Pods("default").List(r.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + m.Name()})
				return err == nil && len(l.Items) == 0
			})
		})
	}
}

// Ready that the controller manager took from a node it heard nothing of comes back when the kubelet is heard again.
func TestReadyComesBackAfterSilence(t *testing.T) {
	r := newRig(t)
	m := r.add("unheard", nil)
	_, err := r.client.CoreV1().Nodes().Patch(r.ctx, m.Name(), "application/strategic-merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}`), metav1.PatchOptions{}, "status")
	assert.NilError(t, err)
	r.await("Ready", func() bool { return Ready(r.node("unheard")) })
}

// bindAround binds a pod to a machine every 50 ms, from a while before what happens to a while after it, and returns
// the pods' names.
func (r *rig) bindAround(m *Machine, happens func()) []string {
	r.Helper()
	const before, after = 10, 20
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	happened := make(chan struct{})
	var names []string
	for left := after; left > 0; {
		<-tick.C
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", m.Name(), len(names))},
			Spec:       corev1.PodSpec{NodeName: m.Name(), Containers: []corev1.Container{{Name: "app", Image: "workload"}}},
		}
		_, err := r.client.CoreV1().Pods("default").Create(r.ctx, pod, metav1.CreateOptions{})
		assert.NilError(r, err)
		names = append(names, pod.Name)
		if len(names) == before {
			go func() { defer close(happened); happens() }()
		}
		select {
		case <-happened:
			left--
		default:
		}
	}
	return names
}

// notServing is the first of some pods that isn't ready.
func (r *rig) notServing(names []string) string {
	for _, name := range names {
		p, err := r.client.CoreV1().Pods("default").Get(r.ctx, name, metav1.GetOptions{})
		if err != nil || !Serving(p) {
			return name
		}
	}
	return ""
}

// delayWatches lets the machine's kubelet see each event of a watch only after a while, from its next boot on.
func (m *Machine) delayWatches(t *testing.T, by time.Duration) {
	t.Helper()
	m.PowerOff()
	m.kubeletAs.Wrap(func(next http.RoundTripper) http.RoundTripper { return lateWatches{next, by} })
	var err error
	m.kubelet, err = kubernetes.NewForConfig(m.kubeletAs)
	assert.NilError(t, err)
	assert.NilError(t, m.PowerOn(t.Context()))
}

type lateWatches struct {
	http.RoundTripper
	by time.Duration
}

func (l lateWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") != "" {
		resp.Body = lateBody{resp.Body, req, l.by}
	}
	return resp, err
}

type lateBody struct {
	io.ReadCloser
	req *http.Request
	by  time.Duration
}

func (l lateBody) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	pause(l.req.Context(), l.by)
	return n, err
}
