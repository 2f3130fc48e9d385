package nodesim

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// defaultLease is the Lease duration of kubelets.
const defaultLease = 40 * time.Second

// beat renews the node's Lease four times in its duration. Ready that was taken away meanwhile, as the controller
// manager does when it heard nothing for too long, is reported again.
func (u *uptime) beat() {
	for u.persist(u.m.renewLease) && u.persist(u.m.reportIfMissed) && pause(u.ctx, u.m.leaseDuration()/4) {
	}
}

func (m *Machine) leaseDuration() time.Duration {
	if d := m.fleet.config.LeaseDuration; d > 0 {
		return d
	}
	return defaultLease
}

func (m *Machine) renewLease(ctx context.Context) error {
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       &m.name,
		LeaseDurationSeconds: new(int32(m.leaseDuration().Seconds())),
		RenewTime:            new(metav1.NowMicro()),
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return errors.Wrap(err, "encoding a lease")
	}
	leases := m.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	_, err = leases.Patch(ctx, m.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: m.name, UID: m.uid}
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: m.name, OwnerReferences: []metav1.OwnerReference{owner}}, Spec: spec,
		}, metav1.CreateOptions{})
	}
	return errors.Wrapf(err, "renewing the lease of node %q", m.name)
}

func (m *Machine) reportIfMissed(ctx context.Context) error {
	node, err := m.kubelet.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return errors.Wrapf(err, "reading node %q", m.name)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return m.reportBoot(ctx)
		}
	}
	return nil
}
