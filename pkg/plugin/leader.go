package plugin

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// leader returns the pod of the controller that leads. An error says why there is none to be asked.
func (p *plugin) leader(ctx context.Context, client kubernetes.Interface) (pod string, err error) {
	lease, err := p.lease(ctx, client)
	if err != nil {
		return "", err
	}
	if lease == nil {
		return "", errors.Errorf("no controller has ever led in namespace %q: -n names the one that the operator runs in", p.namespace())
	}
	pod, leads := holder(lease, p.now())
	if !leads {
		return "", errors.Errorf("no controller leads now, and nothing happens until one does: see Deployment %s/%s", p.namespace(), kube.LeaseName)
	}
	return pod, nil
}

// lease reads the Lease by which controllers elect their leader; nil if there is none.
func (p *plugin) lease(ctx context.Context, client kubernetes.Interface) (*coordinationv1.Lease, error) {
	lease, err := client.CoordinationV1().Leases(p.namespace()).Get(ctx, kube.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, errors.Wrapf(err, "reading Lease %s/%s", p.namespace(), kube.LeaseName)
}

// holder is the name of the pod that a Lease names, and if it still leads, by this machine's clock.
func holder(lease *coordinationv1.Lease, now time.Time) (pod string, leads bool) {
	s := lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" {
		return "", false
	}
	// The part behind it identifies a process within the pod.
	pod = *s.HolderIdentity
	if i := strings.LastIndex(pod, "_"); i >= 0 {
		pod = pod[:i]
	}
	if s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return pod, true
	}
	return pod, now.Before(s.RenewTime.Add(2 * time.Duration(*s.LeaseDurationSeconds) * time.Second))
}
