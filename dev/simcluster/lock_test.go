package simcluster_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

var full = flag.Bool("full", false, "TestPinnedHosts runs, for some minutes")

// Policies pin hosts to a version that isn't the newest, to another one, and to a lower one; and none at last. Each host
// goes there by its own setting, within the budget (S1), and has byte for byte what it had before once nothing pins it
// any more, when its node's label is removed, and when the operator is taken off (S5). A host that renders its settings
// late is awaited, an agent that is killed in between goes on, and what can't be done has a reason of its own (S9).
func TestPinnedHosts(t *testing.T) {
	controlplane.SkipIfShort(t)
	if !*full {
		t.Skip("takes more than two minutes: run by make evidence, or with -args -full")
	}
	c, err := simcluster.Start(t.Context(), simcluster.Config{
		Nodes: nodeCount, Version: version(0), Progress: os.Stderr,
		Args: map[string][]string{
			controller: {"-lease-duration=3s", "-lease-renew-deadline=2s", "-lease-retry-period=" + renewal.String()},
			agent:      {"-refresh-interval=1s"},
		},
		Policy: quick,
		Reboot: nodesim.Reboot{Mode: nodesim.RebootStale, Down: 700 * time.Millisecond},
		Latencies: hostsim.Latencies{
			Refresh: 50 * time.Millisecond, Prepare: 200 * time.Millisecond, Activate: 200 * time.Millisecond, Deactivate: 200 * time.Millisecond,
			// The first refresh after a change goes by the old settings, so each takes some seconds.
			Settings: 300 * time.Millisecond,
		},
		PodStop: 500 * time.Millisecond,
	})
	assert.NilError(t, err)
	t.Cleanup(c.Stop)
	w := &world{Cluster: c}
	t.Cleanup(func() {
		if t.Failed() {
			w.dump(t)
		}
	})
	assert.NilError(t, simcluster.Await(t.Context(), "all nodes take pods", bound, func() (bool, error) {
		list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		for i := range list.Items {
			if n := &list.Items[i]; !nodesim.Ready(n) || len(n.Spec.Taints) > 0 {
				return false, err
			}
		}
		return err == nil && len(list.Items) == nodeCount, err
	}))
	assert.NilError(t, w.noteNodes(t.Context()))
	assert.NilError(t, w.Install(t.Context()))
	assert.NilError(t, w.Label(t.Context()))
	assert.NilError(t, w.AwaitOperator(t.Context(), bound, true))
	w.allAt(t, version(0))
	w.seen = nodesim.Observe(t.Context(), w.Client)
	t.Cleanup(w.seen.Close)
	others := w.others(t)
	locks := map[string]string{"node-1": marker.LockLatest, "node-2": "v" + version(0), "node-3": version(2)}
	for name, lock := range locks {
		w.lock(t, name, lock)
	}
	pinned := func(rules string) {
		t.Helper()
		w.setPolicy(t, quick+"retry: {base: 1s, max: 1s}\nversions: {"+rules+"}\n")
	}

	// Locks of others are left alone, and give way where the policy says so.
	pinned("pin: " + version(1))
	assert.NilError(t, w.Release(version(1)))
	w.reason(t, "node-2", plan.ReasonLockedByOthers)
	w.reason(t, "node-3", plan.ReasonLockedByOthers)
	w.runs(t, "node-1", version(1))
	assert.NilError(t, w.Release(version(2)))
	assert.DeepEqual(t, w.locks(), map[string]string{"node-1": version(1), "node-2": locks["node-2"], "node-3": locks["node-3"]})
	before := w.boots()
	pinned("overrideLocks: true, pin: " + version(1))
	w.pinnedAt(t, version(1), locks)
	assert.DeepEqual(t, w.reboots(before), map[string]int{"node-1": 0, "node-2": 1, "node-3": 1})

	// Forward; the agent of a host that has just been locked is killed before it tells of it.
	before = w.boots()
	pinned("overrideLocks: true, pin: " + version(2))
	w.killOnceLocked(t, "node-2", version(2))
	w.pinnedAt(t, version(2), locks)
	// And back, by the policy's leave alone.
	pinned("overrideLocks: true, pin: " + version(1))
	w.reason(t, "node-1", plan.ReasonPinLower)
	pinned("overrideLocks: true, downgrade: true, pin: " + version(1))
	w.pinnedAt(t, version(1), locks)
	assert.DeepEqual(t, w.reboots(before), map[string]int{"node-1": 2, "node-2": 2, "node-3": 2})

	// What is not offered is not asked for, and a host whose settings are locked down says so until it can be locked.
	pinned("overrideLocks: true, pin: " + version(9))
	w.reason(t, "node-1", plan.ReasonPinNotOffered)
	assert.NilError(t, w.Fleet.Machine("node-1").Host().AddFault(hostsim.Fault{ID: hostsim.F26}))
	pinned("overrideLocks: true, pin: " + version(2))
	w.reason(t, "node-1", plan.ReasonLockFailed)
	assert.NilError(t, w.Fleet.Machine("node-1").Host().SetFaults())
	w.pinnedAt(t, version(2), locks)

	// Nothing pins any more.
	pinned("")
	w.unlocked(t, locks)
	assert.DeepEqual(t, w.others(t), others)
	assert.Check(t, w.seen.MaxUnschedulable() <= limit, "%d nodes were cordoned at once", w.seen.MaxUnschedulable())

	// The label goes while the agent can do nothing: it stays until it has unlocked its host, and nothing is left then.
	pinned("overrideLocks: true, pin: " + version(2))
	w.pinnedAt(t, version(2), map[string]string{"node-1": locks["node-1"], "node-2": locks["node-2"]})
	_, goOn := w.Fleet.Pause(func(p *corev1.Pod) bool {
		return p.Labels[manifest.LabelComponent] == agent && p.Spec.NodeName == "node-2"
	})
	pod := w.agentOn(t, "node-2")
	assert.Assert(t, pod != nil)
	_, err = w.Kubectl(t.Context(), "label", "node", "node-2", string(marker.KeyInterfaceVersion)+"-")
	assert.NilError(t, err)
	w.reason(t, "node-2", plan.ReasonLockLeft)
	out, status := w.command(t.Context(), "clean", "node-2", "--force=controller")
	assert.Assert(t, status != 0 && strings.Contains(out, "apiclient set updates.version-lock="+locks["node-2"]), out)
	still := w.agentOn(t, "node-2")
	assert.Assert(t, still != nil && still.UID == pod.UID && still.DeletionTimestamp == nil, "the agent's pod is gone: %+v", still)
	assert.Equal(t, w.locks()["node-2"], version(2))
	goOn()
	w.bareAgain(t, "node-2")
	assert.Equal(t, w.locks()["node-2"], locks["node-2"])
	_, err = w.Kubectl(t.Context(), "label", "node", "node-2", string(marker.KeyInterfaceVersion)+"=2.0.0")
	assert.NilError(t, err)
	w.pinnedAt(t, version(2), map[string]string{"node-1": locks["node-1"], "node-2": locks["node-2"]})

	// With locks standing the operator is taken off, which waits for them.
	w.undeploy(t)
	assert.DeepEqual(t, w.locks(), locks)
	for name := range locks {
		w.bareAgain(t, name)
	}
}

// lock sets a host's version-lock as its user does.
func (w *world) lock(t *testing.T, node, lock string) {
	t.Helper()
	h := w.Fleet.Machine(node).Host()
	s := h.Snapshot().Settings
	s.VersionLock = lock
	assert.NilError(t, h.SetSettings(s))
}

// locks are what all hosts have, byte for byte.
func (w *world) locks() map[string]string {
	locks := map[string]string{}
	for _, m := range w.Fleet.Machines() {
		locks[m.Name()] = m.Host().Snapshot().Settings.VersionLock
	}
	return locks
}

// reboots are those of each machine since.
func (w *world) reboots(since map[string]int) map[string]int {
	n := w.boots()
	for name := range n {
		n[name] -= since[name]
	}
	return n
}

// others are what stands on all nodes that is not the operator's.
func (w *world) others(t *testing.T) map[string]string {
	t.Helper()
	list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	assert.NilError(t, err)
	stands := map[string]string{}
	for i := range list.Items {
		n := &list.Items[i]
		ours := func(key, _ string) bool {
			return marker.Owns(marker.WriterController, key) || marker.Owns(marker.WriterAgent, key)
		}
		maps.DeleteFunc(n.Annotations, ours)
		maps.DeleteFunc(n.Labels, ours)
		text, err := json.Marshal([]any{n.Labels, n.Annotations, n.Spec})
		assert.NilError(t, err)
		stands[n.Name] = string(text)
	}
	return stands
}

func (w *world) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	assert.NilError(t, err)
	return n
}

// reason waits until the plan has a reason for a node.
func (w *world) reason(t *testing.T, node string, r plan.Reason) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), node+" has the reason "+string(r), bound, func() (bool, error) {
		out, err := w.plan(t.Context())
		for _, d := range out.Nodes {
			if d.Node == node && d.Reason == r {
				return true, nil
			}
		}
		return false, err
	}))
}

// runs waits until a node is at rest on a version.
func (w *world) runs(t *testing.T, node, version string) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), node+" is at rest on "+version, bound, func() (bool, error) {
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		return err == nil && atRest(n, version), err
	}))
}

// pinnedAt waits until all nodes are at rest on a version, and these are locked to it with a record of what they had.
func (w *world) pinnedAt(t *testing.T, version string, before map[string]string) {
	t.Helper()
	for name := range before {
		assert.NilError(t, simcluster.Await(t.Context(), name+" is locked to "+version, bound, func() (bool, error) {
			n, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			l, _ := marker.DecodeLock(n.Annotations)
			return l != nil && l.Want == version && !l.GiveBack && w.locks()[name] == version && atRest(n, version), nil
		}))
		l, _ := marker.DecodeLock(w.node(t, name).Annotations)
		assert.Equal(t, l.Before, before[name])
		assert.Equal(t, w.node(t, name).Labels[string(marker.KeyLocked)], "true")
	}
	w.allAt(t, version)
}

// unlocked waits until no record of a lock stands; each host has what it had then.
func (w *world) unlocked(t *testing.T, locks map[string]string) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), "no record of a lock stands", bound, func() (bool, error) {
		list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		for i := range list.Items {
			n := &list.Items[i]
			if n.Annotations[string(marker.KeyLock)] != "" || n.Labels[string(marker.KeyLocked)] != "" {
				return false, err
			}
		}
		return err == nil, err
	}))
	assert.DeepEqual(t, w.locks(), locks)
}

// killOnceLocked kills the agent of a host that has just been locked and doesn't heed it yet, and holds that its Node
// doesn't tell of the lock.
func (w *world) killOnceLocked(t *testing.T, node, version string) {
	t.Helper()
	assert.NilError(t, simcluster.Await(t.Context(), node+" is locked", bound, func() (bool, error) { return w.locks()[node] == version, nil }))
	w.reason(t, node, plan.ReasonLocking)
	killed := w.Fleet.Kill(func(p *corev1.Pod) bool { return p.Labels[manifest.LabelComponent] == agent && p.Spec.NodeName == node })
	assert.Equal(t, killed, 1)
	n := w.node(t, node)
	assert.Assert(t, n.Annotations[string(marker.KeyVersionLock)] != version && n.Annotations[string(marker.KeyActionState)] == string(marker.StateBusy), "%v", n.Annotations)
}

// agentOn is the agent's pod on a node, nil if there is none.
func (w *world) agentOn(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	pods, err := w.Pods(t.Context(), agent)
	assert.NilError(t, err)
	for i := range pods {
		if pods[i].Spec.NodeName == node {
			return &pods[i]
		}
	}
	return nil
}

// bareAgain waits until a node is as it was before the operator came.
func (w *world) bareAgain(t *testing.T, node string) {
	t.Helper()
	now := ""
	err := simcluster.Await(t.Context(), node+" is as it was before the operator came", bound, func() (bool, error) {
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		now = bare(n)
		return err == nil && now == w.before[node], err
	})
	assert.NilError(t, err, "before:\n%s\nnow:\n%s", w.before[node], now)
}
