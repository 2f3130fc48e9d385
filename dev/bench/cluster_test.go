package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const (
	// managedNodes are updated. One more node has the controller and isn't: the figures are about those
	// whose reboot doesn't take the controller away, which all but one of a fleet are.
	managedNodes   = 30
	controllerNode = "node-1"
	podsOnNode     = 5
	bootTime       = 5 * time.Second
	// patience bounds everything that is waited for.
	patience = 5 * time.Minute
)

// world is a cluster of simulated machines with the real programs: hosts that carry out commands at once
// and take 5 s to boot, no soak, everything else as in the manifest.
type world struct {
	*simcluster.Cluster
	minor  int
	rounds int
	// cycle is what one node took, of those that went alone; zero if that wasn't measured.
	cycle time.Duration
}

func newWorld(b *testing.B) *world {
	b.Helper()
	w := &world{minor: 50}
	var err error
	w.Cluster, err = simcluster.Start(b.Context(), simcluster.Config{
		Nodes: managedNodes + 1, Version: w.version(), Progress: os.Stderr,
		Args: map[string][]string{
			"controller": {"-lease-duration=6s", "-lease-renew-deadline=4s", "-lease-retry-period=1s"},
			// Sooner than the half hour of the manifest, so that a release is soon known.
			"agent": {"-refresh-interval=5s"},
		},
		Reboot: nodesim.Reboot{Down: bootTime},
	})
	assert.NilError(b, err)
	b.Cleanup(w.Stop)
	assert.NilError(b, w.Install(b.Context()))
	w.limit(b, 1)
	w.place(b)
	for _, n := range w.managed() {
		w.annotate(b, n, marker.KeyPaused, "until it is measured")
		_, err := w.Kubectl(b.Context(), "label", "node", n, string(marker.KeyInterfaceVersion)+"=2.0.0")
		assert.NilError(b, err)
	}
	w.until(b, "all agents have reported", func(n *corev1.Node) bool { return w.rests(n) })
	return w
}

func (w *world) version() string { return fmt.Sprintf("1.%d.0", w.minor) }

// managed are the names of the nodes in the operator's care.
func (w *world) managed() []string {
	var out []string
	for _, m := range w.Fleet.Machines() {
		if m.Name() != controllerNode {
			out = append(out, m.Name())
		}
	}
	return out
}

// limit says how many nodes may be unavailable, all of it without a soak.
func (w *world) limit(b *testing.B, n int) {
	b.Helper()
	assert.NilError(b, w.SetPolicy(b.Context(), fmt.Sprintf("version: 1\nmaxUnavailable: %d\nsoak: 0s\n", n)))
}

// place keeps the controller on its node.
func (w *world) place(b *testing.B) {
	b.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{%q:%q}}}}}`, corev1.LabelHostname, controllerNode)
	_, err := w.Kubectl(b.Context(), "-n", namespace, "patch", "deployment", "update-operator-controller", "-p", patch)
	assert.NilError(b, err)
	assert.NilError(b, w.AwaitOperator(b.Context(), patience, false))
	assert.NilError(b, simcluster.Await(b.Context(), "the controller on its node leads", patience, func() (bool, error) {
		pods, err := w.Pods(b.Context(), "controller")
		if err != nil || len(pods) != 1 || pods[0].Spec.NodeName != controllerNode {
			return false, err
		}
		at, err := w.PlanURL(b.Context())
		if err != nil {
			return false, err
		}
		code, _, err := get(b.Context(), at)
		return code == 200, err
	}))
}

func (w *world) annotate(b *testing.B, node string, key marker.Key, value any) {
	b.Helper()
	text := "null"
	if value != nil {
		text = fmt.Sprintf("%q", value)
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, text)
	_, err := w.Client.CoreV1().Nodes().Patch(b.Context(), node, types.MergePatchType, body, metav1.PatchOptions{})
	assert.NilError(b, err)
}

// until waits until something holds of all managed nodes.
func (w *world) until(b *testing.B, what string, ok func(*corev1.Node) bool, names ...string) {
	b.Helper()
	if len(names) == 0 {
		names = w.managed()
	}
	assert.NilError(b, simcluster.Await(b.Context(), what, patience, func() (bool, error) {
		list, err := w.Client.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		held := map[string]bool{}
		for i := range list.Items {
			held[list.Items[i].Name] = ok(&list.Items[i])
		}
		for _, n := range names {
			if !held[n] {
				return false, nil
			}
		}
		return true, nil
	}))
}

// rests reports whether a node runs the newest version and nothing is under way.
func (w *world) rests(n *corev1.Node) bool {
	m, problems := marker.Decode(n.Annotations)
	return len(problems) == 0 && m.Disruption == nil && m.Intent.Action == marker.ActionStabilize &&
		m.Report.Answer(m.Intent.ID) == marker.StateReady && m.Report.Current == w.version() &&
		fleet.OSVersion(n.Status.NodeInfo.OSImage) == w.version() && !n.Spec.Unschedulable && nodesim.Ready(n)
}

// pods puts pods without grace period on nodes and waits until they run.
func (w *world) pods(b *testing.B, names []string) {
	b.Helper()
	w.rounds++
	pods := w.Client.CoreV1().Pods(metav1.NamespaceDefault)
	eachOf(b, len(names)*podsOnNode, func(ctx context.Context, i int) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-%d-%d", w.rounds, i), Labels: map[string]string{"app": "load"}}}
		p.Spec.NodeName = names[i/podsOnNode]
		p.Spec.TerminationGracePeriodSeconds = new(int64)
		p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}}
		_, err := pods.Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	assert.NilError(b, simcluster.Await(b.Context(), "the load runs", patience, func() (bool, error) {
		list, err := pods.List(b.Context(), metav1.ListOptions{LabelSelector: "app=load"})
		if err != nil {
			return false, err
		}
		on := map[string]int{}
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				on[list.Items[i].Spec.NodeName]++
			}
		}
		for _, n := range names {
			if on[n] < podsOnNode {
				return false, nil
			}
		}
		return true, nil
	}))
}

// update releases a version, lets all of the nodes go at once when their agents know of it, and returns how
// they went.
func (w *world) update(b *testing.B, names []string, limit int) []span {
	b.Helper()
	w.pods(b, names)
	w.minor++
	assert.NilError(b, w.Release(w.version()))
	w.until(b, "agents know of the new version", func(n *corev1.Node) bool {
		m, _ := marker.Decode(n.Annotations)
		return m.Report.Available == w.version()
	})
	boots := map[string]int{}
	for _, n := range names {
		boots[n] = w.Fleet.Machine(n).Host().Snapshot().Counters.Boots
	}
	seen := nodesim.Observe(b.Context(), w.Client)
	defer seen.Close()
	t := watchTimeline(b, w.Client)
	for _, n := range names {
		w.annotate(b, n, marker.KeyPaused, nil)
	}
	w.until(b, "all are updated", w.rests, names...)
	t.stop()
	for _, n := range names {
		w.annotate(b, n, marker.KeyPaused, "until it is measured")
		assert.Equal(b, w.Fleet.Machine(n).Host().Snapshot().Counters.Boots-boots[n], 1, "reboots of %s", n)
	}
	assert.Assert(b, seen.MaxUnschedulable() <= limit, "%d nodes were cordoned at once, the limit is %d", seen.MaxUnschedulable(), limit)
	spans := t.done()
	assert.Equal(b, len(spans), len(names))
	t.explain(b)
	return spans
}
