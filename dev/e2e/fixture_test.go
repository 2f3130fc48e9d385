package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/realcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	nodeCount = 3
	variant   = "aws-k8s-1.36"
	// The operator's image. It can't be pulled: the tests load it.
	imageName = "localhost/bottlerocket-update-operator:e2e"
	// labelled is the label that puts a node into the operator's care.
	labelled = string(marker.KeyInterfaceVersion) + "=2.0.0"

	// bound is how long anything may take before it counts as stuck: many times what it takes.
	bound = 5 * time.Minute
)

// world is one cluster with the operator at work, for all tests of the package. Each test leaves it with
// all nodes at rest on the newest version.
type world struct {
	*realcluster.Cluster
	objects manifest.Objects
	// namespace is the operator's at the moment.
	namespace string
	// plans is components/plans/plans.yaml.
	plans manifest.Objects
	// released counts releases, all but the first one after the start.
	released int
	// archive is the image of this build.
	archive string
	watcher *watcher
}

var shared struct {
	ctx context.Context
	// mu is held while a cluster is started or stopped.
	mu sync.Mutex
	// w is nil before the first test and after the last.
	w *world
	// spoiled: a test failed on it, so nothing is known of what it left.
	spoiled bool
	// left is what clusters that ended left behind.
	left []string
}

func TestMain(m *testing.M) {
	// An interrupted run cleans up too.
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shared.ctx = interrupted
	go func() {
		<-interrupted.Done()
		stop() // a second interrupt ends it at once
		end()
		os.Exit(130)
	}()
	status := m.Run()
	end()
	if len(shared.left) > 0 {
		fmt.Fprintf(os.Stderr, "left behind: %v\n", shared.left)
		status = 1
	}
	os.Exit(status)
}

// end stops the cluster, if there is one. A start that is under way ends first.
func end() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.spoiled = false
	if shared.w == nil {
		return
	}
	shared.w.Stop()
	left, err := shared.w.Leftovers()
	if err != nil {
		left = append(left, err.Error())
	}
	shared.left = append(shared.left, left...)
	shared.w = nil
}

// inWorld returns the cluster with all nodes at rest, and dumps it if the test fails. After a test that failed it is a
// new one, so that a failure is that test's alone.
func inWorld(t *testing.T) *world {
	t.Helper()
	controlplane.SkipIfShort(t)
	if shared.spoiled {
		end()
	}
	w := running(t)
	t.Cleanup(func() {
		for _, wrong := range w.watcher.wrongs() {
			t.Errorf("%s", wrong)
		}
		if t.Failed() {
			shared.spoiled = true
			w.dump(t)
		}
	})
	w.awaitRest(t)
	return w
}

// running is the cluster, started now if there is none.
func running(t *testing.T) *world {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	// Once the run was interrupted none is started any more.
	assert.NilError(t, shared.ctx.Err())
	if shared.w == nil {
		err := start(shared.ctx)
		shared.spoiled = err != nil
		assert.NilError(t, err)
	}
	return shared.w
}

func start(ctx context.Context) error {
	began := time.Now()
	c, err := realcluster.Start(ctx, realcluster.Config{
		Nodes: nodeCount, Version: version(0), Variant: variant, Down: 2 * time.Second, GracePeriod: 16 * time.Second, Progress: os.Stderr,
		Latencies: hostsim.Latencies{Refresh: 50 * time.Millisecond, Prepare: time.Second, Activate: 500 * time.Millisecond, Deactivate: 500 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	w := &world{Cluster: c, namespace: manifest.Namespace}
	shared.w = w
	if err := w.buildImage(ctx, "", imageName); err != nil {
		return err
	}
	if err := w.applyFile(ctx, "workload.yaml"); err != nil {
		return err
	}
	if w.objects, err = rendered(imageName); err != nil {
		return err
	}
	if w.plans, err = renderedPlans(imageName); err != nil {
		return err
	}
	if err := w.install(ctx, w.objects); err != nil {
		return err
	}
	for _, n := range w.Nodes {
		if _, err := w.Kubectl(ctx, "label", "node", n.Name(), labelled); err != nil {
			return err
		}
	}
	if err := simcluster.Await(ctx, "all pods are Ready", bound, func() (bool, error) { return w.allReady(ctx) }); err != nil {
		return err
	}
	w.watcher = watch(w)
	fmt.Fprintf(os.Stderr, "the cluster, its workload and the operator run, after %.0f s\n", time.Since(began).Seconds())
	return nil
}

// rendered is update-operator.yaml with patch.yaml and an image.
func rendered(name string) (manifest.Objects, error) {
	o, err := manifest.Load()
	if err != nil {
		return o, err
	}
	patch, err := os.ReadFile("patch.yaml")
	if err != nil {
		return o, err
	}
	if o, err = o.Patched(patch); err != nil {
		return o, err
	}
	o.SetImage(name)
	return o, nil
}

// renderedPlans is components/plans/plans.yaml with an image.
func renderedPlans(name string) (manifest.Objects, error) {
	content, err := manifest.Component("plans")
	if err != nil {
		return manifest.Objects{}, err
	}
	o, err := manifest.Decode(content)
	if err != nil {
		return o, err
	}
	o.SetImage(name)
	return o, nil
}

// quick is the policy but for shorter times the default one.
const quick = "version: 1\nsoak: 2s\nretry: {base: 5s}\ndeadlines: {reboot: 40s}\n"

// install applies a version of the operator, and components/plans/plans.yaml of this one.
func (w *world) install(ctx context.Context, o manifest.Objects) error {
	for _, file := range []manifest.Objects{o, w.plans} {
		y, err := file.YAML()
		if err != nil {
			return err
		}
		if err := w.Apply(ctx, string(y)); err != nil {
			return err
		}
	}
	return w.setPolicy(ctx, quick)
}

// setPolicy puts a policy in force.
func (w *world) setPolicy(ctx context.Context, text string) error {
	maps := w.Client.CoreV1().ConfigMaps(w.namespace)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kube.PolicyConfigMap}, Data: map[string]string{kube.PolicyKey: text}}
	_, err := maps.Update(ctx, config, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, config, metav1.CreateOptions{})
	}
	return err
}

func (w *world) applyFile(ctx context.Context, name string) error {
	y, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return w.Apply(ctx, string(y))
}

// buildImage builds the operator's image for this machine, as `make image` does, from a checkout (empty: this
// one), and loads it on all nodes.
func (w *world) buildImage(ctx context.Context, checkout, name string) error {
	called, err := image.ParseReference(name)
	if err != nil {
		return err
	}
	root := checkout
	if root == "" {
		if root, err = controlplane.Root(); err != nil {
			return err
		}
	}
	dir := filepath.Join(w.Dir(), called.Tag)
	platforms, err := image.ParsePlatforms(image.Here().String())
	if err != nil {
		return err
	}
	content, err := image.Compile(ctx, root, dir, image.Build{Version: "e2e"}, platforms)
	if err != nil {
		return err
	}
	index, err := image.Index(content)
	if err != nil {
		return err
	}
	archive := dir + ".tar"
	w.archive = archive
	if err := image.WriteArchive(archive, called, index); err != nil {
		return err
	}
	return w.Load(ctx, archive)
}

// version is that of the n-th release.
func version(n int) string { return fmt.Sprintf("1.%d.0", 50+n) }

// newest is the version that all hosts are offered.
func (w *world) newest() string { return version(w.released) }

// release publishes the next version.
func (w *world) release(t *testing.T) {
	t.Helper()
	w.released++
	assert.NilError(t, w.Release(w.newest()))
}

// await polls until ok holds.
func await(t *testing.T, what string, ok func() (bool, error)) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), what, bound, ok))
}

// Node is the one of that name, nil if there is none.
func (w *world) Node(name string) *realcluster.Node {
	for _, n := range slices.Concat(w.Nodes, w.Joiners()) {
		if n.Name() == name {
			return n
		}
	}
	return nil
}

// views are the nodes in the operator's care as it sees them.
func (w *world) views(ctx context.Context) ([]fleet.Node, error) {
	list, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: labelled})
	if err != nil {
		return nil, err
	}
	var out []fleet.Node
	for i := range list.Items {
		out = append(out, kube.View(&list.Items[i]))
	}
	return out, nil
}

// rests reports whether nothing is left to do on a node: by what agent, kubelet and controller say.
func (w *world) rests(n fleet.Node) bool {
	return n.Phase() == intent.PhaseWaiting && n.Marks.Report.Answer(n.Marks.Intent.ID) == marker.StateReady && n.Ready && !n.Unschedulable &&
		n.Marks.Report.Current == w.newest() && n.OSVersion == w.newest() && n.Marks.Report.BootID == n.BootID
}

// awaitRest waits until all nodes are on the newest version and all pods are Ready.
func (w *world) awaitRest(t *testing.T) {
	t.Helper()
	await(t, "all nodes rest on "+w.newest(), func() (bool, error) {
		nodes, err := w.views(t.Context())
		if err != nil || len(nodes) != nodeCount {
			return false, err
		}
		for _, n := range nodes {
			if !w.rests(n) {
				return false, nil
			}
		}
		return w.allReady(t.Context())
	})
}

// allReady reports whether all pods that there should be are Ready.
func (w *world) allReady(ctx context.Context) (bool, error) {
	for selector, want := range map[string]int{
		w.namespace + "/app.kubernetes.io/component=controller": 1, w.namespace + "/app.kubernetes.io/component=proxy": 2,
		w.namespace + "/app.kubernetes.io/component=agent": nodeCount, w.namespace + "/app.kubernetes.io/component=runner": 1,
		"shop/app=web": 2, "shop/app=client": nodeCount, "kube-system/k8s-app=kube-dns": 2,
	} {
		namespace, labels, _ := strings.Cut(selector, "/")
		pods, err := w.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels})
		if err != nil {
			return false, err
		}
		n := 0
		for i := range pods.Items {
			if p := &pods.Items[i]; podReady(p) && p.DeletionTimestamp == nil {
				n++
			}
		}
		if n != want {
			return false, fmt.Errorf("%d of %d pods with %s are Ready", n, want, selector)
		}
	}
	return true, nil
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// pods are the operator's of one component.
func (w *world) pods(t *testing.T, component string) []corev1.Pod {
	t.Helper()
	list, err := w.Client.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: manifest.LabelComponent + "=" + component})
	assert.NilError(t, err)
	return list.Items
}

// home is the node that the controller's pod is on.
func (w *world) home(t *testing.T) string {
	t.Helper()
	pods := w.pods(t, manifest.Controller)
	assert.Equal(t, len(pods), 1)
	return pods[0].Spec.NodeName
}

// other is a node that the controller isn't on.
func (w *world) other(t *testing.T) *realcluster.Node {
	t.Helper()
	home := w.home(t)
	for _, n := range w.Nodes {
		if n.Name() != home {
			return n
		}
	}
	return nil
}

// reaches waits until a node is in one of some phases.
func (w *world) reaches(t *testing.T, is func(n fleet.Node) bool, phases ...intent.Phase) fleet.Node {
	t.Helper()
	var found fleet.Node
	await(t, fmt.Sprintf("a node is %v", phases), func() (bool, error) {
		nodes, err := w.views(t.Context())
		if err != nil {
			return false, err
		}
		for _, n := range nodes {
			for _, p := range phases {
				if n.Phase() == p && is(n) {
					found = n
					return true, nil
				}
			}
		}
		return false, nil
	})
	return found
}

func anyNode(fleet.Node) bool { return true }

// dump prints what a user would look at.
func (w *world) dump(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, args := range [][]string{
		{"get", "nodes,pods", "-A", "-o", "wide"},
		{"get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.unschedulable} {.metadata.annotations}{"\n"}{end}`},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", w.namespace, "logs", "--prefix", "--tail=40", "-l", manifest.LabelName + "=" + manifest.Name},
		{"-n", w.namespace, "logs", "--prefix", "--tail=20", "--previous", "-l", manifest.LabelName + "=" + manifest.Name},
		{"-n", w.namespace, "describe", "pods"},
	} {
		out, err := w.Kubectl(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		t.Logf("kubectl %s\n%s", strings.Join(args, " "), out[max(0, len(out)-12000):])
	}
	for _, n := range w.Nodes {
		t.Logf("kubelet of %s: %s", n.Name(), n.Log("kubelet", 1500))
	}
}
