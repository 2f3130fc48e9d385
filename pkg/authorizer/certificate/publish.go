package certificate

import (
	"context"
	"maps"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bundleKey is the ConfigMap's key with the CAs that agents trust.
const bundleKey = "ca.crt"

// published reads the ConfigMap.
func (k *Keeper) published(ctx context.Context) (*corev1.ConfigMap, error) {
	config, err := k.c.Client.CoreV1().ConfigMaps(k.c.Namespace).Get(ctx, k.c.CAName, metav1.GetOptions{})
	if answered(err) {
		k.mu.Lock()
		k.reached = k.c.Now()
		k.mu.Unlock()
	}
	if err != nil {
		return nil, k.readError(err, "ConfigMap", k.c.CAName)
	}
	return config, nil
}

// answered reports whether the API server authenticated this account, whatever it answered.
func answered(err error) bool {
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// publish writes the bundle of CAs to the ConfigMap unless it is there.
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
