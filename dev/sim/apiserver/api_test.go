package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
)

// start is the virtual time at which these tests begin; it has a fraction, which is never stored.
var start = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func newServer() (*apiserver.Server, *time.Time) {
	now := start
	return apiserver.New(func() time.Time { return now }), &now
}

func annotate(t *testing.T, c *apiserver.Client, node, value string) *corev1.Node {
	t.Helper()
	n, err := c.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{"k":%q}}}`, value)), metav1.PatchOptions{})
	assert.NilError(t, err)
	return n
}

func createNode(t *testing.T, c *apiserver.Client, name string) *corev1.Node {
	t.Helper()
	n, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	return n
}

// The same requests give the same answers to the last bit, UIDs and times included.
func TestSameRequestsSameAnswers(t *testing.T) {
	run := func() string {
		server, _ := newServer()
		var out strings.Builder
		server.OnWrite(func(actor string, r apiserver.Request, before, after runtime.Object) {
			data, err := json.Marshal([]any{actor, r, before, after})
			assert.NilError(t, err)
			out.Write(data)
		})
		c := server.Client("a", nil)
		s := newSide(t, "ns", c)
		s.evict = c.Evict
		for _, r := range generate(1) {
			out.WriteString(r.ask(s))
		}
		return out.String()
	}
	assert.Equal(t, run(), run())
	assert.Assert(t, strings.Contains(run(), `"uid":"00000000-0000-4000-8000-000000000001"`))
}

func TestAroundIsAskedAndHasTheLastWord(t *testing.T) {
	server, _ := newServer()
	var asked []string
	var before, after error
	c := server.Client("agent", func(r apiserver.Request, run func() error) error {
		asked = append(asked, r.String())
		if before != nil {
			return before
		}
		if err := run(); err != nil {
			return err
		}
		return after
	})
	createNode(t, c, "n")
	_, err := c.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	assert.Assert(t, apierrors.IsNotFound(c.Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})))
	annotate(t, c, "n", "1")
	assert.DeepEqual(t, asked, []string{"create nodes n", "list pods in ns", "create pods/eviction ns/p", "patch nodes n"})

	// Failed before it reached the server: nothing happened.
	at := server.Revision()
	before = apiserver.Throttled(1500 * time.Millisecond)
	n, err := c.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType, []byte(`{"metadata":{"annotations":{"k":"2"}}}`), metav1.PatchOptions{})
	assert.Assert(t, apierrors.IsTooManyRequests(err))
	seconds, ok := apierrors.SuggestsClientDelay(err)
	assert.Assert(t, ok)
	assert.Equal(t, seconds, 2)
	assert.Assert(t, n != nil && n.Name == "", "a real client returns an empty object with an error")
	assert.Equal(t, server.Revision(), at)

	// The answer was lost: it did happen.
	before, after = nil, apiserver.ConnectionLost(apiserver.Request{Verb: "patch", Resource: "nodes", Name: "n"})
	_, err = c.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType, []byte(`{"metadata":{"annotations":{"k":"2"}}}`), metav1.PatchOptions{})
	assert.ErrorContains(t, err, "connection reset")
	assert.Equal(t, apierrors.ReasonForError(err), metav1.StatusReasonUnknown)
	var status apierrors.APIStatus
	assert.Assert(t, !errors.As(err, &status))
	assert.Equal(t, server.Node("n").Annotations["k"], "2")

	assert.Assert(t, apierrors.IsServerTimeout(apiserver.ServerTimeout(apiserver.Request{Verb: "patch", Resource: "nodes"})))

	// A context that has ended asks nothing.
	asked, after = nil, nil
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.CoreV1().Nodes().Get(ended, "n", metav1.GetOptions{})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, len(asked), 0)

	liar := server.Client("liar", func(apiserver.Request, func() error) error { return nil })
	assert.Assert(t, panics(func() { _, _ = liar.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}) }) == "apiserver: Around says that a request succeeded which it didn't run: get nodes n")
}

func panics(f func()) (with string) {
	defer func() {
		if r := recover(); r != nil {
			with = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// What isn't simulated says so, whatever it is.
func TestWhatIsNotSimulatedPanics(t *testing.T) {
	server, _ := newServer()
	c := server.Client("a", nil)
	createNode(t, c, "n")
	ctx := t.Context()
	for want, ask := range map[string]func(){
		"apiserver: GET /api/v1/namespaces/ns/services/x isn't simulated": func() { _, _ = c.CoreV1().Services("ns").Get(ctx, "x", metav1.GetOptions{}) },
		"apiserver: GET /apis/batch/v1/jobs isn't simulated":              func() { _, _ = c.BatchV1().Jobs("").List(ctx, metav1.ListOptions{}) },
		"apiserver: GET /api/v1/nodes?watch=true isn't simulated":         func() { _, _ = c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{}) },
		"apiserver: DELETE /api/v1/nodes isn't simulated": func() {
			_ = c.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"apiserver: a patch of nodes [] of type application/strategic-merge-patch+json isn't simulated": func() {
			_, _ = c.CoreV1().Nodes().Patch(ctx, "n", types.StrategicMergePatchType, nil, metav1.PatchOptions{})
		},
		`apiserver: a patch of nodes with what isn't there (strict decoding error: unknown field "spec.novel") isn't simulated`: func() {
			_, _ = c.CoreV1().Nodes().Patch(ctx, "n", types.MergePatchType, []byte(`{"spec":{"novel":1}}`), metav1.PatchOptions{})
		},
		"apiserver: generateName isn't simulated": func() {
			_, _ = c.CoreV1().Pods("ns").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "x"}}, metav1.CreateOptions{})
		},
		"apiserver: a dry run isn't simulated": func() {
			_, _ = c.CoreV1().Nodes().Update(ctx, &corev1.Node{}, metav1.UpdateOptions{DryRun: []string{"All"}})
		},
	} {
		assert.Equal(t, panics(ask), want)
	}
}

// What goes in and comes out is the caller's.
func TestNothingStoredCanBeChangedFromOutside(t *testing.T) {
	server, _ := newServer()
	c := server.Client("a", nil)
	in := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"k": "1"}}}
	w, err := server.Watch(apiserver.Selection{Resource: "nodes"}, "1")
	assert.NilError(t, err)
	created, err := c.CoreV1().Nodes().Create(t.Context(), in, metav1.CreateOptions{})
	assert.NilError(t, err)
	got, err := c.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	assert.NilError(t, err)
	listed, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	at, err := server.ListAt(apiserver.Selection{Resource: "nodes"}, server.Revision())
	assert.NilError(t, err)
	e, ok := w.Next()
	assert.Assert(t, ok)
	for _, n := range []*corev1.Node{in, created, got, &listed.Items[0], at[0].(*corev1.Node), e.Object.(*corev1.Node)} {
		n.Labels["k"] = "2"
	}
	assert.Equal(t, server.Node("n").Labels["k"], "1")
	// What a patch changed leaves the state before as it was.
	before := server.Node("n")
	annotate(t, c, "n", "1")
	assert.Equal(t, len(before.Annotations), 0)
	assert.Assert(t, before.ResourceVersion != server.Node("n").ResourceVersion)
}

func TestCompaction(t *testing.T) {
	server, _ := newServer()
	c := server.Client("a", nil)
	nodes := apiserver.Selection{Resource: "nodes"}
	created := createNode(t, c, "n")
	late, err := server.Watch(nodes, created.ResourceVersion)
	assert.NilError(t, err)
	annotate(t, c, "n", "1")
	second := server.Revision()
	annotate(t, c, "n", "2")
	createNode(t, c, "m")
	assert.NilError(t, c.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}))
	last := server.Revision()

	shown := func(revision int64) string {
		var out []string
		list, err := server.ListAt(nodes, revision)
		if err != nil {
			return string(apierrors.ReasonForError(err))
		}
		for _, o := range list {
			n := o.(*corev1.Node)
			out = append(out, n.Name+n.Annotations["k"]+"@"+n.ResourceVersion)
		}
		return strings.Join(out, " ")
	}
	for revision, want := range []string{"Expired", "", "n@2", "n1@3", "n2@4", "m@5 n2@4", "m@5", "Timeout"} {
		assert.Equal(t, shown(int64(revision)), want, "revision %d", revision)
	}
	exact, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	assert.NilError(t, err)
	assert.Equal(t, exact.Items[0].Annotations["k"], "2")

	early, err := server.Watch(nodes, fmt.Sprint(second))
	assert.NilError(t, err)
	server.Compact(second)
	assert.Equal(t, shown(second-1), "Expired")
	assert.Equal(t, shown(second), "n1@3")
	_, err = server.Watch(nodes, created.ResourceVersion)
	assert.Assert(t, apierrors.IsResourceExpired(err))

	// The one has seen all that is gone, the other hasn't.
	var types []watch.EventType
	for e, ok := early.Next(); ok; e, ok = early.Next() {
		types = append(types, e.Type)
		assert.Assert(t, e.Revision > second && e.Revision <= last && e.At.Equal(start))
	}
	assert.DeepEqual(t, types, []watch.EventType{watch.Modified, watch.Added, watch.Deleted})
	e, ok := late.Next()
	assert.Assert(t, ok)
	assert.Equal(t, e.Type, watch.Error)
	assert.Equal(t, e.Object.(*metav1.Status).Reason, metav1.StatusReasonExpired)
	_, ok = late.Next()
	assert.Assert(t, !ok)

	// From nowhere a watch begins with what is there.
	fresh, err := server.Watch(nodes, "")
	assert.NilError(t, err)
	e, ok = fresh.Next()
	assert.Assert(t, ok && e.Type == watch.Added && e.Object.(*corev1.Node).Name == "m")
	_, ok = fresh.Next()
	assert.Assert(t, !ok)
}

func TestOnWrite(t *testing.T) {
	server, now := newServer()
	var writes []string
	server.OnWrite(func(actor string, r apiserver.Request, before, after runtime.Object) {
		writes = append(writes, fmt.Sprintf("%s: %s: %t %t", actor, r, before != nil, after != nil))
	})
	c := server.Client("kubelet", nil)
	createNode(t, c, "n")
	annotate(t, c, "n", "1")
	annotate(t, c, "n", "1")
	p, err := c.CoreV1().Pods("ns").Create(t.Context(), newPod("p", "n", "x"), metav1.CreateOptions{})
	assert.NilError(t, err)
	p.Status.Phase = corev1.PodRunning
	_, err = c.CoreV1().Pods("ns").UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	assert.NilError(t, err)
	drain := server.Client("controller", nil)
	assert.NilError(t, drain.Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}))
	// The default grace, in whole seconds.
	assert.Assert(t, server.Pod("ns", "p").DeletionTimestamp.Time.Equal(start.Truncate(time.Second).Add(30*time.Second)))
	assert.Equal(t, len(server.PodsOn("n")), 1)
	*now = now.Add(30 * time.Second)
	zero := int64(0)
	assert.NilError(t, c.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	assert.Equal(t, len(server.PodsOn("n")), 0)
	assert.DeepEqual(t, writes, []string{
		"kubelet: create nodes n: false true",
		"kubelet: patch nodes n: true true",
		"kubelet: create pods ns/p: false true",
		"kubelet: update pods/status ns/p: true true",
		"controller: create pods/eviction ns/p: true true",
		"controller: create pods/eviction ns/p: true true",
		"kubelet: delete pods ns/p: true true",
		"kubelet: delete pods ns/p: true false",
	})
	assert.Equal(t, server.Revision(), int64(1+len(writes)))
}

func TestAccessorsOfWorkloadsAndVolumes(t *testing.T) {
	server, _ := newServer()
	s := newSide(t, "ns", server.Client("a", nil))
	for _, name := range []string{"b", "a"} {
		_, err := s.replicaSets().Create(s.ctx, newReplicaSet(name, "x"), metav1.CreateOptions{})
		assert.NilError(t, err)
		_, err = s.claims().Create(s.ctx, newClaim(name, "1Gi"), metav1.CreateOptions{})
		assert.NilError(t, err)
		_, err = s.attachments().Create(s.ctx, s.newAttachment(name, "n"), metav1.CreateOptions{})
		assert.NilError(t, err)
	}
	assert.Equal(t, server.ReplicaSet("ns", "a"), server.ReplicaSets("")[0])
	assert.Assert(t, server.ReplicaSet("other", "a") == nil && len(server.ReplicaSets("ns")) == 2 && len(server.ReplicaSets("other")) == 0)
	assert.Equal(t, server.VolumeAttachment(s.node("a")), server.VolumeAttachments()[0])
	assert.Assert(t, server.VolumeAttachment("c") == nil && len(server.VolumeAttachments()) == 2)
	assert.Equal(t, server.PersistentVolumeClaims("ns")[1].Name, "b")
	assert.Equal(t, len(server.PersistentVolumeClaims("other")), 0)
}

// A grace can only get shorter, and never ends in the past.
func TestShorterGrace(t *testing.T) {
	server, now := newServer()
	pods := server.Client("a", nil).CoreV1().Pods("ns")
	_, err := pods.Create(t.Context(), newPod("p", "n", "x"), metav1.CreateOptions{})
	assert.NilError(t, err)
	remove := func(grace int64) {
		t.Helper()
		assert.NilError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	}
	expect := func(grace, after int) {
		t.Helper()
		p := server.Pod("ns", "p")
		assert.Equal(t, int(*p.DeletionGracePeriodSeconds), grace)
		assert.Assert(t, p.DeletionTimestamp.Time.Equal(start.Truncate(time.Second).Add(time.Duration(after)*time.Second)), p.DeletionTimestamp)
	}
	remove(30)
	expect(30, 30)
	remove(60)
	expect(30, 30)
	*now = start.Add(10 * time.Second)
	remove(20)
	expect(20, 20)
	*now = start.Add(15 * time.Second)
	remove(5)
	expect(1, 15)
	assert.Equal(t, server.Pod("ns", "p").Generation, int64(2))
	remove(0)
	assert.Assert(t, server.Pod("ns", "p") == nil)
}

// A patch that takes the short way ends where the long way through JSON does.
func TestShortWayOfPatches(t *testing.T) {
	// A field that nothing knows in short makes the same patch go the long way.
	const long = `,"spec":{"podCIDR":null}}`
	parts := []string{
		`"annotations":{"a":"1"}`, `"annotations":{"a":null,"b":"2"}`, `"annotations":null`, `"annotations":{"a":"2"}`, `"annotations":{"x":null}`,
		`"labels":{"a":"1"}`, `"labels":{"a":null}`, `"labels":null`, `"labels":{}`,
	}
	random := rand.New(rand.NewPCG(1, 2))
	a, _ := newServer()
	b, _ := newServer()
	short, around := a.Client("a", nil), b.Client("b", nil)
	createNode(t, short, "n")
	createNode(t, around, "n")
	for range 300 {
		body := `{"metadata":{` + parts[random.IntN(5)] + `,` + parts[5+random.IntN(4)] + `}`
		n, err := short.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType, []byte(body+"}"), metav1.PatchOptions{})
		assert.NilError(t, err)
		m, err := around.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType, []byte(body+long), metav1.PatchOptions{})
		assert.NilError(t, err)
		// The resourceVersions tell that they agree on what is a change.
		x, err := json.Marshal(n)
		assert.NilError(t, err)
		y, err := json.Marshal(m)
		assert.NilError(t, err)
		assert.Equal(t, string(x), string(y))
	}
}
