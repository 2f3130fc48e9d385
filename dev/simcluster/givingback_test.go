package simcluster_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// groupLabel puts a lent node into a group of lentPolicy.
const groupLabel = "example.com/group"

// lentBound is many times what a step of a node takes.
const lentBound = 90 * time.Second

// lentPolicy lets everybody go but the group "staged", whose window is a leap day.
const lentPolicy = `version: 1
maxUnavailable: 100
maxLost: 10
soak: 2s
deadlines: {reboot: 10s, return: 20s}
handsOff: 1s
drain: {predict: false}
maxFailed: unlimited
countUnavailable: false
groups:
- name: staged
  nodeSelector: {matchLabels: {example.com/group: staged}}
  windows: [{schedule: 0 0 29 2 *, duration: 1h}]
`

// lent is a machine that a user gives to the operator, and how its Node was before.
type lent struct {
	*world
	name    string
	machine *nodesim.Machine
	repo    *hostsim.Repo
	before  string
}

// lender is a cluster whose machines are lent to the operator one by one. Two more, which are not, hold its controller
// and proxies.
type lender struct {
	*world
	t *testing.T
}

func newLender(t *testing.T) *lender {
	t.Helper()
	controlplane.SkipIfShort(t)
	ctx := t.Context()
	c, err := simcluster.Start(ctx, simcluster.Config{
		Nodes: 2, Version: version(0), Progress: os.Stderr,
		Args: map[string][]string{
			controller: {
				"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=" + renewal.String(),
			},
			agent: {"-refresh-interval=1s"},
		},
		Reboot:  nodesim.Reboot{Mode: nodesim.RebootStale, Down: 2 * time.Second},
		PodStop: 100 * time.Millisecond,
	})
	assert.NilError(t, err)
	t.Cleanup(c.Stop)
	l := &lender{world: &world{Cluster: c}, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			l.dump(t)
		}
	})
	l.install()
	return l
}

func (l *lender) install() {
	l.t.Helper()
	assert.NilError(l.t, l.Install(l.t.Context()))
	l.setPolicy(l.t, lentPolicy)
	assert.NilError(l.t, l.AwaitOperator(l.t.Context(), bound, false))
}

// lend makes a machine with what users have on their nodes, two of the marks for others among it. Its host is offered
// nothing yet.
func (l *lender) lend(t *testing.T, name, group string, cordoned bool) *lent {
	t.Helper()
	return l.lendWith(t, name, group, cordoned, map[string]string{marker.LabelExcluded: "mine"}, map[string]string{marker.AnnotationScaleDown: "true"})
}

// lendUnmarked makes one on which no mark for load balancers or autoscalers stands, so that the operator sets all three.
func (l *lender) lendUnmarked(t *testing.T, name string) *lent {
	t.Helper()
	return l.lendWith(t, name, "", false, nil, nil)
}

func (l *lender) lendWith(t *testing.T, name, group string, cordoned bool, labels, annotations map[string]string) *lent {
	t.Helper()
	withLabels := map[string]string{groupLabel: group, "example.com/team": "shop"}
	maps.Copy(withLabels, labels)
	withAnnotations := map[string]string{"example.com/note": "keep me", "bottlerocket.aws/note": "of a newer operator"}
	maps.Copy(withAnnotations, annotations)
	n := &lent{world: l.world, name: name, repo: &hostsim.Repo{}}
	assert.NilError(t, n.repo.Release(hostsim.Release{Version: version(0), Variant: simcluster.Variant, Arch: simcluster.Arch}))
	var err error
	n.machine, err = l.Fleet.Add(t.Context(), nodesim.MachineConfig{
		Name: name, Labels: withLabels, Annotations: withAnnotations,
		Host: hostsim.Config{Version: version(0), Variant: simcluster.Variant, Arch: simcluster.Arch, Repo: n.repo, Settings: hostsim.Settings{Seed: 1},
			Latencies: hostsim.Latencies{Refresh: 50 * time.Millisecond, Prepare: 300 * time.Millisecond, Activate: 300 * time.Millisecond, Deactivate: 300 * time.Millisecond}},
	})
	assert.NilError(t, err)
	assert.NilError(t, l.pin(t.Context(), name))
	n.await(t, "its pod runs", func() bool { return n.pods(t, metav1.NamespaceDefault, "app=on-"+name) == 1 })
	spec := map[string]any{"taints": []corev1.Taint{{Key: "example.com/gpu", Value: "yes", Effect: corev1.TaintEffectPreferNoSchedule}}}
	if cordoned {
		spec["unschedulable"] = true
	}
	n.patch(t, map[string]any{"spec": spec})
	// Kubernetes' own controllers have their say on a new Node too.
	taints := 1
	if cordoned {
		taints = 2
	}
	n.await(t, "it is settled", func() bool {
		node := n.get(t)
		return len(node.Spec.Taints) == taints && nodesim.Ready(node)
	})
	n.before = bare(t, n.get(t))
	return n
}

func (n *lent) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), n.name+": "+what, lentBound, func() (bool, error) { return ok(), nil }))
}

func (n *lent) get(t *testing.T) *corev1.Node {
	t.Helper()
	node, err := n.Client.CoreV1().Nodes().Get(t.Context(), n.name, metav1.GetOptions{})
	assert.NilError(t, err)
	return node
}

func (n *lent) patch(t *testing.T, body any) {
	t.Helper()
	data, err := json.Marshal(body)
	assert.NilError(t, err)
	_, err = n.Client.CoreV1().Nodes().Patch(t.Context(), n.name, types.MergePatchType, data, metav1.PatchOptions{})
	assert.Check(t, err)
}

// pods counts those on the node.
func (n *lent) pods(t *testing.T, namespace, selector string) int {
	t.Helper()
	list, err := n.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector, FieldSelector: "spec.nodeName=" + n.name})
	assert.NilError(t, err)
	return len(list.Items)
}

func (n *lent) label(t *testing.T, value any) {
	t.Helper()
	n.patch(t, map[string]any{"metadata": map[string]any{"labels": map[marker.Key]any{marker.KeyInterfaceVersion: value}}})
}

func (n *lent) release(t *testing.T) {
	t.Helper()
	assert.NilError(t, n.repo.Release(hostsim.Release{Version: version(1), Variant: simcluster.Variant, Arch: simcluster.Arch}))
}

// comesTo lends the node, offers it an update, and does something as soon as it comes to a moment.
func (n *lent) comesTo(t *testing.T, m moment, do func()) {
	t.Helper()
	var once sync.Once
	came := make(chan struct{})
	stop := n.follow(t, func(r reached) {
		if r.node == n.name && r.moment == m {
			once.Do(func() { do(); close(came) })
		}
	})
	defer stop()
	n.label(t, "2.0.0")
	n.await(t, "it is managed", func() bool { return atRest(n.get(t), version(0)) || n.get(t).Spec.Unschedulable })
	n.release(t)
	n.await(t, "it comes to "+string(m), func() bool {
		select {
		case <-came:
			return true
		default:
			return false
		}
	})
}

// goesDown waits until the host is down for its reboot.
func (n *lent) goesDown(t *testing.T) {
	t.Helper()
	n.await(t, "its host goes down", func() bool { n.machine.Host().Settle(); return !n.machine.Up() })
}

// isBack waits until the Node is as it was, to the byte, and nobody is there who could change it again.
func (n *lent) isBack(t *testing.T) {
	t.Helper()
	var now string
	err := simcluster.Await(t.Context(), n.name+" is as it was", lentBound, func() (bool, error) {
		now = bare(t, n.get(t))
		return now == n.before && n.pods(t, simcluster.Namespace, "app.kubernetes.io/component=agent") == 0, nil
	})
	assert.Check(t, err)
	assert.Check(t, now == n.before, "before:\n%s\nnow:\n%s", n.before, now)
	state, err := n.Client.CoreV1().ConfigMaps(simcluster.Namespace).Get(t.Context(), kube.StateConfigMap, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		assert.NilError(t, err)
		n.await(t, "its slot is free", func() bool {
			state, err = n.Client.CoreV1().ConfigMaps(simcluster.Namespace).Get(t.Context(), kube.StateConfigMap, metav1.GetOptions{})
			return err == nil && !strings.Contains(state.Data["slots"], string(n.machine.NodeUID()))
		})
	}
}

// bare is a Node but for what changes by itself.
func bare(t *testing.T, n *corev1.Node) string {
	t.Helper()
	n = n.DeepCopy()
	n.ResourceVersion, n.ManagedFields, n.Status = "", nil, corev1.NodeStatus{}
	text, err := json.MarshalIndent(n, "", " ")
	assert.NilError(t, err)
	return string(text)
}

// hold keeps the node's pod from being evicted.
func (n *lent) hold(t *testing.T) {
	t.Helper()
	assert.NilError(t, n.budget(t.Context(), n.name))
}

// TestGivingBack lends nodes, each with its user's labels, annotations and taint, and takes them back at every point
// of their update: a Node is then what it was, to the byte, but for its status, resourceVersion and managedFields (S5).
func TestGivingBack(t *testing.T) {
	l := newLender(t)
	for _, at := range []struct {
		name     string
		group    string
		cordoned bool
		way      func(t *testing.T, n *lent)
		boots    int
	}{
		{"idle", "", false, func(t *testing.T, n *lent) {
			n.label(t, "2.0.0")
			n.await(t, "it is managed", func() bool { return atRest(n.get(t), version(0)) })
			n.label(t, nil)
		}, 0},
		{"staging", "", false, func(t *testing.T, n *lent) { n.comesTo(t, preparing, func() { n.label(t, nil) }) }, 0},
		{"staged", "staged", false, func(t *testing.T, n *lent) { n.comesTo(t, prepared, func() { n.label(t, nil) }) }, 0},
		{"draining (SUC_71, brupop_28)", "", false, func(t *testing.T, n *lent) {
			n.hold(t)
			n.comesTo(t, draining, func() { n.label(t, nil) })
		}, 0},
		{"draining, and cordoned by its user before (SUC_341)", "", true, func(t *testing.T, n *lent) {
			n.hold(t)
			n.comesTo(t, draining, func() { n.label(t, nil) })
		}, 0},
		{"asked to reboot, before the agent heard of it", "", false, func(t *testing.T, n *lent) {
			n.hold(t)
			n.comesTo(t, draining, func() {})
			_, goOn := l.Fleet.Pause(func(p *corev1.Pod) bool { return p.Labels["app.kubernetes.io/component"] == proxy })
			defer goOn()
			assert.NilError(t, l.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Delete(t.Context(), n.name, metav1.DeleteOptions{}))
			n.await(t, "it is asked to reboot", func() bool { return momentOf(n.get(t)) == rebooting })
			n.label(t, nil)
			n.await(t, "it is given back at once", func() bool { return !n.get(t).Spec.Unschedulable })
		}, 0},
		{"past the point of no return (kured_63, brupop_630)", "", false, func(t *testing.T, n *lent) {
			n.comesTo(t, pointOfNoReturn, func() {})
			n.goesDown(t)
			n.label(t, nil)
		}, 1},
		{"Lost: it has not come back", "", false, func(t *testing.T, n *lent) {
			n.machine.SetReboot(nodesim.Reboot{Mode: nodesim.RebootStale, Down: 25 * time.Second})
			n.comesTo(t, pointOfNoReturn, func() {})
			n.await(t, "it is Lost", func() bool {
				n.machine.Host().Settle()
				out, err := n.plan(t.Context())
				return err == nil && slices.ContainsFunc(out.Nodes, func(s plan.Decision) bool { return s.Node == n.name && s.Phase == intent.PhaseLost })
			})
			n.label(t, nil)
			n.await(t, "it is given back at once", func() bool { return !n.get(t).Spec.Unschedulable && !n.machine.Up() })
		}, 1},
		{"back, in its soak", "", false, func(t *testing.T, n *lent) { n.comesTo(t, verifying, func() { n.label(t, nil) }) }, 1},
		{"back, and cordoned by its user before", "", true, func(t *testing.T, n *lent) { n.comesTo(t, verifying, func() { n.label(t, nil) }) }, 1},
	} {
		t.Run(at.name, func(t *testing.T) {
			name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(at.name), "-"), "-")
			n := l.lend(t, name, at.group, at.cordoned)
			at.way(t, n)
			n.isBack(t)
			assert.Equal(t, n.machine.Host().Snapshot().Counters.Boots, at.boots)
		})
	}
	t.Run("draining, with all marks for others set by the operator", l.marked)
	t.Run("paused for good while it drains", l.paused)
	t.Run("undeployed", l.undeployed)
	l.install()
	t.Run("cleaned", l.cleaned)
}

// marked: what the operator wrote into all three marks for others goes, and leaves no trace.
func (l *lender) marked(t *testing.T) {
	n := l.lendUnmarked(t, "unmarked")
	n.hold(t)
	n.comesTo(t, draining, func() {})
	n.carriesAllMarks(t)
	n.label(t, nil)
	n.isBack(t)
	assert.Equal(t, n.machine.Host().Snapshot().Counters.Boots, 0)
}

func (n *lent) carriesAllMarks(t *testing.T) {
	t.Helper()
	node := n.get(t)
	assert.Equal(t, node.Labels[marker.LabelExcluded], marker.OthersValue)
	for _, k := range marker.AutoscalerMarks() {
		assert.Equal(t, node.Annotations[k], marker.OthersValue, k)
		assert.Assert(t, !strings.Contains(n.before, k), k)
	}
	assert.Assert(t, !strings.Contains(n.before, marker.LabelExcluded))
}

// paused: a node that is paused is given back too, and keeps of our keys what the protocol keeps of any node at rest.
func (l *lender) paused(t *testing.T) {
	n := l.lend(t, "paused", "", false)
	n.hold(t)
	n.comesTo(t, draining, func() { assert.Check(t, l.annotate(t.Context(), n.name, marker.KeyPaused, `"for good"`)) })
	n.await(t, "it is at rest", func() bool { return atRest(n.get(t), version(0)) && len(n.get(t).Spec.Taints) == 1 })
	node := n.get(t)
	kept := map[marker.Key]bool{marker.KeyHistory: true}
	for _, k := range append(marker.Keys(marker.WriterAgent), marker.KeyActionWanted, marker.KeyIntentID, marker.KeyIntentTime, marker.KeyIntentUntil) {
		kept[k] = true
	}
	for k := range node.Annotations {
		if marker.Owns(marker.WriterController, k) || marker.Owns(marker.WriterAgent, k) {
			assert.Check(t, kept[marker.Key(k)], "%s=%s is left", k, node.Annotations[k])
			delete(node.Annotations, k)
		}
	}
	assert.Equal(t, node.Annotations[string(marker.KeyPaused)], "for good")
	delete(node.Annotations, string(marker.KeyPaused))
	delete(node.Labels, string(marker.KeyInterfaceVersion))
	assert.Equal(t, bare(t, node), n.before)
	assert.Equal(t, n.machine.Host().Snapshot().Counters.Boots, 0)
	n.patch(t, map[string]any{"metadata": map[string]any{"annotations": map[marker.Key]any{marker.KeyPaused: nil}}})
	n.label(t, nil)
	n.isBack(t)
}

// underWay are nodes at different points of their update, all at once.
func (l *lender) underWay(t *testing.T, prefix string) []*lent {
	t.Helper()
	idle, staged := l.lend(t, prefix+"-idle", "", false), l.lend(t, prefix+"-staged", "staged", false)
	drains, cordoned := l.lend(t, prefix+"-drains", "", false), l.lend(t, prefix+"-drains-cordoned", "", true)
	idle.label(t, "2.0.0")
	idle.await(t, "it is managed", func() bool { return atRest(idle.get(t), version(0)) })
	staged.comesTo(t, prepared, func() {})
	unmarked := l.lendUnmarked(t, prefix+"-unmarked")
	for _, n := range []*lent{drains, cordoned, unmarked} {
		n.hold(t)
		n.comesTo(t, draining, func() {})
	}
	unmarked.carriesAllMarks(t)
	reboots := l.lend(t, prefix+"-reboots", "", false)
	reboots.comesTo(t, pointOfNoReturn, func() {})
	reboots.goesDown(t)
	return []*lent{idle, staged, drains, cordoned, unmarked, reboots}
}

// shell runs lines of a page, or a script of this repository, as a user of this cluster does.
func (l *lender) shell(t *testing.T, script string) string {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	bin := t.TempDir()
	assert.NilError(t, os.Symlink(l.Plane.Binaries().Kubectl, filepath.Join(bin, "kubectl")))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Plane.Kubeconfig(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", script, out)
	assert.NilError(t, err)
	return string(out)
}

// undeployed: make undeploy in the middle of an update leaves nothing behind.
func (l *lender) undeployed(t *testing.T) {
	all := l.underWay(t, "undeployed")
	l.shell(t, "kubectl apply -f docs/force-drain.yaml")
	l.shell(t, "sh dev/undeploy.sh")
	for _, n := range all {
		n.isBack(t)
	}
	// Interrupted in the deletion it is run again.
	l.shell(t, "sh dev/undeploy.sh")
	_, err := l.Client.CoreV1().Namespaces().Get(t.Context(), simcluster.Namespace, metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
	_, err = l.Client.RbacV1().ClusterRoles().Get(t.Context(), "update-operator-controller-force-drain", metav1.GetOptions{})
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
}

// cleaned: the operator is deleted in the middle of an update, and what it left is taken back by the plugin from some
// nodes, and by the lines of docs/uninstall.md from others.
func (l *lender) cleaned(t *testing.T) {
	root, err := controlplane.Root()
	assert.NilError(t, err)
	plugin := filepath.Join(t.TempDir(), "kubectl-bottlerocket")
	assert.NilError(t, controlplane.Go(t.Context(), root, "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", plugin, "./cmd/kubectl-bottlerocket"))
	all, others := l.underWay(t, "cleaned"), l.underWay(t, "by-hand")
	l.shell(t, "kubectl delete -f update-operator.yaml")
	assert.Assert(t, strings.Contains(l.shell(t, "sh dev/undeploy.sh || true"), "kubectl bottlerocket clean --all"), "it says what to do where nobody gives nodes back")
	var names []string
	for _, n := range all {
		names = append(names, n.name)
		n.await(t, "its kubelet shows the boot that it is in", func() bool {
			return n.machine.Up() && n.get(t).Status.NodeInfo.BootID == n.machine.Host().Snapshot().BootID
		})
		assert.Assert(t, bare(t, n.get(t)) != n.before)
	}
	l.shell(t, plugin+" clean --labels "+strings.Join(names, " "))
	for _, n := range all {
		n.isBack(t)
	}

	page, err := os.ReadFile(filepath.Join(root, "docs", "uninstall.md"))
	assert.NilError(t, err)
	_, lines, found := strings.Cut(string(page), "### With kubectl and jq alone")
	assert.Assert(t, found)
	_, lines, _ = strings.Cut(lines, "```sh\n")
	lines, _, _ = strings.Cut(lines, "```\n")
	if _, err := exec.LookPath("jq"); err != nil {
		t.Log("jq is not installed: the page's lines are not tried")
		return
	}
	l.shell(t, lines)
	for _, n := range others {
		n.label(t, nil)
		n.isBack(t)
	}
	assert.Assert(t, strings.Contains(l.shell(t, plugin+" clean --all"), "Nothing of the operator is left"))
	assert.Assert(t, slices.ContainsFunc(others, func(n *lent) bool { return n.get(t).Spec.Unschedulable }), "a user's cordon stays")
}
