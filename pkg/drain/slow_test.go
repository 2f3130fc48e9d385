package drain_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/drain"
)

// answers is an API server that answers the eviction of each pod after a time of its own, unless the request has ended.
type answers struct {
	client *fake.Clientset
	after  func(pod string) (time.Duration, error)

	mu    sync.Mutex
	asked []string
}

func (a *answers) Evict(ctx context.Context, e *policyv1.Eviction) error {
	a.mu.Lock()
	a.asked = append(a.asked, e.Name)
	a.mu.Unlock()
	d, err := a.after(e.Name)
	select {
	case <-ctx.Done():
		return errors.Wrapf(ctx.Err(), "asking for %s", e.Name)
	case <-time.After(d):
	}
	if err != nil {
		return err
	}
	return a.client.CoreV1().Pods(e.Namespace).Delete(ctx, e.Name, metav1.DeleteOptions{})
}

func (a *answers) drainer() *drain.Drainer {
	return &drain.Drainer{Client: a.client, Evictor: a, Parallel: 8, Now: time.Now,
		Own: func(*corev1.Pod) bool { return false }, MayEvict: func() bool { return true }}
}

// listed returns a pod for a simulated client.
func listed(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	p.Spec.NodeName = node
	running(p)
	for _, c := range changes {
		c(p)
	}
	return p
}

func slowPods(n int) []runtime.Object {
	var pods []runtime.Object
	for i := range n {
		pods = append(pods, listed(fmt.Sprintf("slow-%03d", i)))
	}
	return pods
}

// Pods whose evictions get no answer don't hold up others, however many come before them by name, and the message
// names one (S9; the webhook is that of kured_1269).
func TestSlowEvictionsStarveNoOther_kured_1269(t *testing.T) {
	for _, tc := range []struct{ slow, passes int }{{8, 2}, {20, 3}, {100, 13}} {
		t.Run(fmt.Sprint(tc.slow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{client: fake.NewClientset(append(slowPods(tc.slow), listed("z-fast"))...), after: func(pod string) (time.Duration, error) {
					if pod == "z-fast" {
						return 0, nil
					}
					return time.Hour, nil
				}}
				d := a.drainer()
				for range tc.passes {
					began := time.Now()
					r, err := d.Pass(t.Context(), node, evicting(), false, math.MaxInt)
					assert.NilError(t, err)
					assert.Equal(t, time.Since(began), 12*time.Second)
					assert.Assert(t, r.Blocked >= 7, "%+v", r)
					assert.Assert(t, strings.HasPrefix(r.BlockedBy, "pod default/slow-0") && strings.HasSuffix(r.BlockedBy, ": no answer to its eviction within 12s"), r.BlockedBy)
				}
				assert.Assert(t, slices.Contains(a.asked, "z-fast"))
				// No other pod is tried twice before all were tried.
				slices.Sort(a.asked)
				assert.Assert(t, len(slices.Compact(slices.Clone(a.asked))) == min(len(a.asked), tc.slow+1), a.asked)
				_, err := a.client.CoreV1().Pods("default").Get(t.Context(), "z-fast", metav1.GetOptions{})
				assert.ErrorContains(t, err, "not found")
			})
		})
	}
}

// The API server waits 10 s for a webhook by default. Its answer then, that the webhook is ignored or which one it is,
// is received.
func TestAWebhookHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{client: fake.NewClientset(listed("ignored"), listed("named")), after: func(pod string) (time.Duration, error) {
			if pod == "ignored" {
				return 10 * time.Second, nil
			}
			return 10 * time.Second, errors.New(`failed calling webhook "evictions.example.com"`)
		}}
		r, err := a.drainer().Pass(t.Context(), node, evicting(), false, math.MaxInt)
		assert.NilError(t, err)
		assert.Assert(t, r.Evicted == 1 && r.Blocked == 1 && strings.Contains(r.BlockedBy, `webhook "evictions.example.com"`), "%+v", r)
	})
}

// Passes read a DaemonSet once a minute, not for each of its pods every time. The look just before a reboot reads all,
// and what it finds holds for the next pass.
func TestDaemonSetsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 20 {
			name := fmt.Sprint("daemon-", i)
			objects = append(objects, listed(name, func(p *corev1.Pod) {
				owned("DaemonSet", "apps/v1")(p)
				p.OwnerReferences[0].Name = name
			}), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		}
		a := &answers{client: fake.NewClientset(objects...), after: func(string) (time.Duration, error) { return 0, nil }}
		d := a.drainer()
		pass := func() (requests int) {
			a.client.ClearActions()
			r, err := d.Pass(t.Context(), node, evicting(), false, math.MaxInt)
			assert.NilError(t, err)
			assert.Equal(t, r.Remaining(), 0)
			return len(a.client.Actions())
		}
		assert.Equal(t, pass(), 21)
		assert.Equal(t, pass(), 1)
		time.Sleep(time.Minute)
		assert.Equal(t, pass(), 21)

		assert.NilError(t, a.client.AppsV1().DaemonSets("default").Delete(t.Context(), "daemon-0", metav1.DeleteOptions{}))
		assert.Equal(t, pass(), 1)
		pods, err := d.Pods(t.Context(), node, evicting())
		assert.NilError(t, err)
		assert.Equal(t, len(pods), 1, "its DaemonSet is gone")
		r, err := d.Pass(t.Context(), node, evicting(), false, math.MaxInt)
		assert.NilError(t, err)
		assert.Equal(t, r.Evicted, 1)
	})
}

// Pods of a higher priority go later: those of users' own classes, by their priority, when none without is left, then
// those of system-cluster-critical, and those of system-node-critical last.
func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []runtime.Object
		for name, p := range map[string]int32{"g-balloon": -10, "f-plain": 0, "e-web": 1000, "d-db": 1_000_000_000,
			"b-cluster": 2_000_000_000, "a-node": 2_000_001_000} {
			pods = append(pods, listed(name, func(pod *corev1.Pod) { pod.Spec.Priority = &p }))
		}
		a := &answers{client: fake.NewClientset(append(pods, listed("f-unset"))...), after: func(string) (time.Duration, error) { return time.Second, nil }}
		d := a.drainer()
		d.Parallel = 1
		for _, turn := range []string{"g-balloon f-plain f-unset", "e-web d-db", "b-cluster", "a-node"} {
			a.asked = nil
			r, err := d.Pass(t.Context(), node, evicting(), false, math.MaxInt)
			assert.NilError(t, err)
			assert.Equal(t, strings.Join(a.asked, " "), turn, "%+v", r)
		}
	})
}
