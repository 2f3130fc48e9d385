package nodesim

import (
	"context"
	"encoding/json"
	"runtime"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// retryAfter is the pause between tries while the API server is away.
const retryAfter = 200 * time.Millisecond

// register creates the Node.
func (m *Machine) register(ctx context.Context) error {
	labels := map[string]string{
		corev1.LabelHostname:   m.name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: m.arch(),
	}
	for k, v := range m.config.Labels {
		labels[k] = v
	}
	node, err := m.fleet.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: labels, Annotations: m.config.Annotations},
	}, metav1.CreateOptions{})
	if err != nil {
		return errors.Wrapf(err, "creating node %q", m.name)
	}
	m.uid = node.UID
	return nil
}

func (m *Machine) deleteNode(ctx context.Context) error {
	err := m.fleet.client.CoreV1().Nodes().Delete(ctx, m.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return errors.Wrapf(err, "deleting node %q", m.name)
}

// arch is the architecture in Go's and Kubernetes' words.
func (m *Machine) arch() string {
	switch m.config.Host.Arch {
	case "aarch64":
		return "arm64"
	case "x86_64":
		return "amd64"
	}
	return runtime.GOARCH
}

// reportBoot is what a kubelet writes after a boot: that it is ready, and of
// which boot and system, in one patch.
func (m *Machine) reportBoot(ctx context.Context) error {
	node, err := m.kubelet.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "reading node %q", m.name)
	}
	host := m.host.Snapshot()
	if m.config.OSImage != "" {
		host.PrettyName = m.config.OSImage
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("16"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	return m.patchStatus(ctx, corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: m.hostIP()},
			{Type: corev1.NodeHostName, Address: m.name},
		},
		NodeInfo: corev1.NodeSystemInfo{
			BootID:                  host.BootID,
			OSImage:                 host.PrettyName,
			KubeletVersion:          m.reportedKubelet(),
			ContainerRuntimeVersion: "containerd://2.1.4+bottlerocket",
			KernelVersion:           "6.12.40",
			OperatingSystem:         "linux",
			Architecture:            m.arch(),
			MachineID:               string(m.uid),
			SystemUUID:              string(m.uid),
		},
		Conditions: conditions(node.Status.Conditions, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	})
}

// reportShutdown is the last word of a kubelet that is told to shut down.
func (m *Machine) reportShutdown(ctx context.Context) error {
	node, err := m.kubelet.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "reading node %q", m.name)
	}
	return m.patchStatus(ctx, corev1.NodeStatus{
		Conditions: conditions(node.Status.Conditions, corev1.ConditionFalse, "KubeletNotReady", "node is shutting down"),
	})
}

// conditions are a kubelet's four, with the times of those that don't change.
func conditions(before []corev1.NodeCondition, ready corev1.ConditionStatus, reason, message string) []corev1.NodeCondition {
	now := metav1.Now()
	out := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: ready, Reason: reason, Message: message},
	}
	for i := range out {
		out[i].LastHeartbeatTime, out[i].LastTransitionTime = now, now
		for _, b := range before {
			if b.Type == out[i].Type && b.Status == out[i].Status {
				out[i].LastTransitionTime = b.LastTransitionTime
			}
		}
	}
	return out
}

// patchStatus changes the fields of the node's status that are set.
func (m *Machine) patchStatus(ctx context.Context, status corev1.NodeStatus) error {
	fields, err := fieldsOf(status)
	if err != nil {
		return err
	}
	// A list or struct that isn't set must not go into a patch as empty.
	if status.NodeInfo == (corev1.NodeSystemInfo{}) {
		delete(fields, "nodeInfo")
	}
	delete(fields, "daemonEndpoints")
	patch, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		return errors.Wrap(err, "encoding a node's status")
	}
	_, err = m.kubelet.CoreV1().Nodes().Patch(ctx, m.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return errors.Wrapf(err, "writing the status of node %q", m.name)
}

func fieldsOf(v any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, errors.Wrap(err, "encoding a status")
	}
	var fields map[string]any
	return fields, errors.Wrap(json.Unmarshal(b, &fields), "encoding a status")
}
