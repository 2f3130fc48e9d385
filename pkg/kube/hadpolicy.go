package kube

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// hadPolicyKey holds the time when the controller first saw a policy. It outlives every process, so that the absence of
// a policy that a cluster has had is told from that of one that it never had.
const hadPolicyKey = "policy"

func hadPolicy(state *corev1.ConfigMap) bool { return state != nil && state.Data[hadPolicyKey] != "" }

// HadPolicy reads live whether this cluster has had a policy.
func HadPolicy(ctx context.Context, client kubernetes.Interface, namespace string) (bool, error) {
	state, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, StateConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && hadPolicy(state), errors.Wrapf(err, "reading ConfigMap %s/%s", namespace, StateConfigMap)
}

// RecordPolicy notes that there is a policy, by compare-and-swap.
func (k *Cluster) RecordPolicy(ctx context.Context, now time.Time) error {
	return k.slots.record(ctx, "recording that there is a policy", hadPolicyKey, func(string) (string, error) {
		return now.UTC().Format(time.RFC3339), nil
	})
}
