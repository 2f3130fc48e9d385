package sim

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// cluster is what of Kubernetes isn't the API server: kubelets, scheduler, the controllers of nodes,
// ReplicaSets, DaemonSets and disruption budgets, each as far as the operator can see it.
type cluster struct {
	w      *world
	client *apiserver.Client
	apps   []*app
	names  int
	// late lets the scheduler bind by an old view of the nodes until then.
	late time.Time
	// heartbeats counts.
	beats int
	// reconciling and budgeting: a look at the workloads, or at the budgets, is on its way.
	reconciling, budgeting bool
	// stuck are pods that don't end, by UID.
	stuck map[string]bool
	// detaching is until when no volume is detached.
	detaching time.Time
}

func (w *world) newCluster() *cluster {
	return &cluster{w: w, client: w.server.Client("kubernetes", func(_ apiserver.Request, run func() error) error { return run() }), stuck: map[string]bool{}}
}

var background = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// register makes the Node of a machine.
func (k *cluster) register(m *machine) {
	if m.node() != nil || m.unregistered {
		return
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.nodeName, Labels: map[string]string{}}}
	if m.labelled && !m.comesUnlabelled() {
		n.Labels[string(marker.KeyInterfaceVersion)] = m.interfaceLabel()
	}
	maps.Copy(n.Labels, m.labels)
	n.Spec.Taints = m.startupTaints()
	must(k.client.CoreV1().Nodes().Create(background, n, metav1.CreateOptions{}))
	k.daemons(m)
}

// kubeletReports is a kubelet's word on its node.
func (k *cluster) kubeletReports(m *machine, runtimeUp bool) {
	if m.isPlanned && !m.kubeletRuns() {
		return
	}
	n := m.node()
	if n == nil {
		k.register(m)
		if n = m.node(); n == nil {
			return
		}
	}
	k.beats++
	n = n.DeepCopy()
	s := m.host.Snapshot()
	n.Status.NodeInfo.BootID, n.Status.NodeInfo.OSImage = s.BootID, s.PrettyName
	if m.isPlanned {
		n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.OSImage = m.kubeletVersion, "Debian GNU/Linux 13 (trixie)"
	}
	setCondition(n, corev1.NodeMemoryPressure, corev1.ConditionFalse, metav1.NewTime(k.w.now), k.beats)
	if m.unwell || !runtimeUp {
		setReady(n, corev1.ConditionFalse, k.w.now)
	} else {
		setReady(n, corev1.ConditionTrue, k.w.now)
	}
	k.status(n)
}

// edit is a write of Kubernetes, or of another program, to a node.
func (k *cluster) edit(m *machine, change func(n *corev1.Node)) bool {
	n := m.node()
	if n == nil {
		return false
	}
	n = n.DeepCopy()
	change(n)
	must(k.client.CoreV1().Nodes().Update(background, n, metav1.UpdateOptions{}))
	return true
}

func (k *cluster) status(n *corev1.Node) {
	must(k.client.CoreV1().Nodes().UpdateStatus(background, n, metav1.UpdateOptions{}))
}

// setReady sets the condition; its transition time changes with its status alone.
func (k *cluster) setReady(name string, s corev1.ConditionStatus) {
	if n := k.w.server.Node(name); n != nil {
		n = n.DeepCopy()
		setReady(n, s, k.w.now)
		k.status(n)
	}
}

func setReady(n *corev1.Node, s corev1.ConditionStatus, now time.Time) {
	setCondition(n, corev1.NodeReady, s, metav1.NewTime(now), 0)
}

func setCondition(n *corev1.Node, kind corev1.NodeConditionType, s corev1.ConditionStatus, now metav1.Time, beat int) {
	message := ""
	if beat > 0 {
		message = fmt.Sprint(beat)
	}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status != s {
			c.Status, c.LastTransitionTime = s, now
		}
		c.Message = message
		return
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: s, LastTransitionTime: now, Message: message})
}
