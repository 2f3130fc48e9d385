package simcluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

const (
	controller = "controller"
	proxy      = "proxy"
	agent      = "agent"

	nodeCount = 3
	// limit is the default of the policy.
	limit = 1
	// quick is the policy but for shorter times the default one.
	quick = "version: 1\nsoak: 1s\n"
	// renewal is the pace of the controller's Lease.
	renewal = 500 * time.Millisecond
	// bound is how long a rollout may take before it counts as stuck: many times what it takes.
	bound = 3 * time.Minute
)

// span is a time from its begin to its end.
type span struct{ from, to time.Time }

func (s span) covers(t time.Time) bool { return !t.Before(s.from) && !t.After(s.to) }

// world is one cluster with the operator at work, for all tests of the package. Each test leaves it with
// all nodes at rest on the newest version.
type world struct {
	*simcluster.Cluster
	// released counts releases, all but the first one after the start.
	released int
	// gone are the times in which the operator was taken off.
	gone []span
	// before are the Nodes as they were before the operator came, by name.
	before map[string]string
	seen   *nodesim.Observer
}

var shared struct {
	w *world
	// spoiled: a test failed on it, so nothing is known of what it left.
	spoiled bool
}

func TestMain(m *testing.M) {
	status := m.Run()
	shared.w.end()
	os.Exit(status)
}

// inWorld returns the cluster with all nodes at rest, and dumps it if the test fails. After a test that failed it is a
// new one, so that a failure is that test's alone.
func inWorld(t *testing.T) *world {
	t.Helper()
	controlplane.SkipIfShort(t)
	if shared.spoiled {
		shared.w.end()
		shared.w, shared.spoiled = nil, false
	}
	if shared.w == nil {
		w, err := start(context.Background())
		assert.NilError(t, err)
		shared.w = w
	}
	w := shared.w
	t.Cleanup(func() {
		if t.Failed() {
			shared.spoiled = true
			w.dump(t)
		}
	})
	assert.NilError(t, w.awaitRest(t.Context()))
	return w
}

// end stops the cluster, if there is one.
func (w *world) end() {
	if w != nil {
		w.seen.Close()
		w.Stop()
	}
}

func start(ctx context.Context) (_ *world, err error) {
	w := &world{}
	w.Cluster, err = simcluster.Start(ctx, simcluster.Config{
		Nodes: nodeCount, Version: version(0), Progress: os.Stderr,
		Args: map[string][]string{
			controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=" + renewal.String()},
			agent:      {"-refresh-interval=1s"},
		},
		Policy: quick,
		Reboot: nodesim.Reboot{Mode: nodesim.RebootStale, Down: 700 * time.Millisecond},
		Latencies: hostsim.Latencies{
			Refresh: 50 * time.Millisecond, Prepare: time.Second, Activate: 700 * time.Millisecond, Deactivate: 700 * time.Millisecond,
		},
		PodStop: 500 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.Stop()
		}
	}()
	for _, m := range w.Fleet.Machines() {
		if err := w.pin(ctx, m.Name()); err != nil {
			return nil, err
		}
	}
	if err := w.pinSet(ctx, w.Fleet.Machines()[0].Name()); err != nil {
		return nil, err
	}
	// Only then can the scheduler spread the operator's pods.
	if err := simcluster.Await(ctx, "all nodes take pods", bound, func() (bool, error) { return w.pinnedReady(ctx) }); err != nil {
		return nil, err
	}
	if err := w.noteNodes(ctx); err != nil {
		return nil, err
	}
	if err := w.Install(ctx); err != nil {
		return nil, err
	}
	if err := w.Label(ctx); err != nil {
		return nil, err
	}
	if err := w.AwaitOperator(ctx, bound, true); err != nil {
		return nil, err
	}
	w.seen = nodesim.Observe(ctx, w.Client)
	return w, nil
}

// noteNodes gives one node what its user may have on it, a mark for others among it, and notes how all of them are.
func (w *world) noteNodes(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"mine"},"annotations":{%q:"false","bottlerocket.aws/note":"of a newer operator"}},`+
		`"spec":{"taints":[{"key":"example.com/gpu","value":"yes","effect":"PreferNoSchedule"}]}}`, marker.LabelExcluded, marker.AnnotationScaleDown)
	if _, err := w.Client.CoreV1().Nodes().Patch(ctx, w.Fleet.Machines()[0].Name(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	list, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.before = map[string]string{}
	for i := range list.Items {
		w.before[list.Items[i].Name] = bare(&list.Items[i])
	}
	return nil
}

// pin keeps one pod on a node: evicted, another waits until the node takes it again.
func (w *world) pin(ctx context.Context, node string) error {
	labels := map[string]string{"app": "on-" + node}
	_, err := w.Client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelHostname: node},
					Containers:   []corev1.Container{{Name: "app", Image: "workload"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// pinSet is the same of a StatefulSet.
func (w *world) pinSet(ctx context.Context, node string) error {
	labels := map[string]string{"app": "kept-on-" + node}
	_, err := w.Client.AppsV1().StatefulSets(metav1.NamespaceDefault).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "kept-on-" + node},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelHostname: node},
					Containers:   []corev1.Container{{Name: "app", Image: "workload"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// version is that of the n-th release.
func version(n int) string { return fmt.Sprintf("1.%d.0", 50+n) }

// release publishes the next version.
func (w *world) release(t *testing.T) {
	t.Helper()
	w.released++
	assert.NilError(t, w.Release(version(w.released)))
}

// boots are the reboots of each machine so far.
func (w *world) boots() map[string]int {
	boots := map[string]int{}
	for _, m := range w.Fleet.Machines() {
		boots[m.Name()] = m.Host().Snapshot().Counters.Boots
	}
	return boots
}

// rollout releases the next version, does what the test has to do meanwhile, and waits until all nodes
// run it: each after exactly one reboot, and never more of them cordoned than the limit.
func (w *world) rollout(t *testing.T, meanwhile func()) {
	t.Helper()
	before := w.boots()
	w.release(t)
	if meanwhile != nil {
		meanwhile()
	}
	assert.NilError(t, w.awaitRest(t.Context()))
	for name, boots := range w.boots() {
		assert.Check(t, boots == before[name]+1, "%s rebooted %d times on its way to %s", name, boots-before[name], version(w.released))
	}
	assert.Check(t, w.seen.MaxUnschedulable() <= limit, "%d nodes were cordoned at once", w.seen.MaxUnschedulable())
	assert.NilError(t, w.Plane.Alive())
}

// awaitRest waits until all nodes are at rest on the newest version, with all that runs there.
func (w *world) awaitRest(ctx context.Context) error {
	return simcluster.Await(ctx, "all nodes are at rest on "+version(w.released), bound, func() (bool, error) {
		list, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !atRest(&list.Items[i], version(w.released)) {
				return false, nil
			}
		}
		if len(list.Items) != nodeCount {
			return false, nil
		}
		if err := w.AwaitOperator(ctx, time.Second, true); err != nil {
			return false, err
		}
		return w.pinnedReady(ctx)
	})
}

func (w *world) pinnedReady(ctx context.Context) (bool, error) {
	list, err := w.Client.AppsV1().Deployments(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		if list.Items[i].Status.ReadyReplicas < 1 {
			return false, nil
		}
	}
	return true, nil
}

func atRest(n *corev1.Node, version string) bool {
	m, problems := marker.Decode(n.Annotations)
	return len(problems) == 0 && m.Disruption == nil && (m.Failure == nil || m.Failure.Count == 0) && m.Intent.Action == marker.ActionStabilize &&
		m.Report.Answer(m.Intent.ID) == marker.StateReady && m.Report.Current == version &&
		fleet.OSVersion(n.Status.NodeInfo.OSImage) == version && !n.Spec.Unschedulable && nodesim.Ready(n)
}

// dump shows what a failed test left: the marks of all nodes, all pods, and what the operator said last.
func (w *world) dump(t *testing.T) {
	ctx := context.Background()
	if list, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			n := &list.Items[i]
			t.Logf("%s: cordoned %t, ready %t, %s, %v", n.Name, n.Spec.Unschedulable, nodesim.Ready(n), n.Status.NodeInfo.OSImage, n.Annotations)
		}
	}
	if list, err := w.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			p := &list.Items[i]
			t.Logf("pod %s/%s on %q: %s, deleted %v, %v", p.Namespace, p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, p.Status.Conditions)
		}
	}
	for _, what := range []string{controller, proxy, agent} {
		pods, err := w.Pods(ctx, what)
		if err != nil {
			t.Log(err)
			continue
		}
		for i := range pods {
			name := pods[i].Spec.NodeName + "-" + pods[i].Name + ".log"
			t.Logf("%s:\n%s", name, process.LogTail(filepath.Join(w.Fleet.Logs(), name), 8192))
		}
	}
}

// annotate writes a JSON value to an annotation of a node; null removes it.
func (w *world) annotate(ctx context.Context, node string, key marker.Key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	return simcluster.Await(ctx, "an annotation of "+node+" is written", bound, func() (bool, error) {
		_, err := w.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil, err
	})
}

// log is all that one component's pods have said.
func (w *world) log(ctx context.Context, what, node string) (string, error) {
	pods, err := w.Pods(ctx, what)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i := range pods {
		if pods[i].Spec.NodeName == node {
			content, err := os.ReadFile(filepath.Join(w.Fleet.Logs(), node+"-"+pods[i].Name+".log"))
			if err != nil {
				return "", err
			}
			all.Write(content)
		}
	}
	return all.String(), nil
}

func (w *world) plan(ctx context.Context) (plan.Plan, error) {
	var o plan.Plan
	at, err := w.PlanURL(ctx)
	if err != nil {
		return o, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?format=json", nil)
	if err != nil {
		return o, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return o, err
	}
	defer resp.Body.Close()
	return o, json.NewDecoder(resp.Body).Decode(&o)
}

// setPolicy puts a policy in force, or tries to.
func (w *world) setPolicy(t *testing.T, text string) {
	t.Helper()
	assert.NilError(t, w.SetPolicy(t.Context(), text))
}
