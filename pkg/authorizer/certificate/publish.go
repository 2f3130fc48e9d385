package certificate

import (
	"context"
	"maps"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bundleKey is where agents find what to trust in the ConfigMap.
const bundleKey = "ca.crt"

// published reads what agents are told to trust at present.
func (k *Keeper) published(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := k.c.Client.CoreV1().ConfigMaps(k.c.Namespace).Get(ctx, k.c.CAName, metav1.GetOptions{})
	if answered(err) {
		k.mu.Lock()
		k.reached = k.c.Now()
		k.mu.Unlock()
	}
	if err != nil {
		return nil, k.lost(err, "ConfigMap", k.c.CAName)
	}
	return config, nil
}

// answered reports whether an API server answered that knows this account, whatever it said.
func answered(err error) bool {
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// publish tells agents whom to trust, if that is news.
func (k *Keeper) publish(ctx context.Context, config *corev1.ConfigMap, bundle []byte) error {
	if config.Data[bundleKey] == string(bundle) {
		return nil
	}
	config = config.DeepCopy()
	config.Data = maps.Clone(config.Data)
	if config.Data == nil {
		config.Data = map[string]string{}
	}
	config.Data[bundleKey] = string(bundle)
	_, err := k.c.Client.CoreV1().ConfigMaps(k.c.Namespace).Update(ctx, config, metav1.UpdateOptions{})
	return errors.Wrapf(err, "writing ConfigMap %s/%s", k.c.Namespace, k.c.CAName)
}
