package plugin

import (
	"context"
	"encoding/json"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// configKey is one key of a ConfigMap in the operator's namespace.
type configKey struct{ namespace, name, key string }

// change gives the key the value that edit returns for what the ConfigMap holds; nil leaves it as it is. It touches no
// other key, makes a ConfigMap that is missing, and tries again after a conflict.
func (k configKey) change(ctx context.Context, client kubernetes.Interface, dry *dryRun, edit func(data map[string]string) (*string, error)) (changed bool, err error) {
	maps := client.CoreV1().ConfigMaps(k.namespace)
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultBackoff, again, func() error {
		object, err := maps.Get(ctx, k.name, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return errors.Wrapf(err, "reading ConfigMap %s/%s", k.namespace, k.name)
		}
		if missing {
			object = &corev1.ConfigMap{}
		}
		value, err := edit(object.Data)
		changed = value != nil
		if err != nil || value == nil || !dry.sends() {
			return err
		}
		if missing {
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: k.namespace}, Data: map[string]string{k.key: *value}},
				metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry.options()})
			return errors.Wrapf(err, "creating ConfigMap %s/%s", k.namespace, k.name)
		}
		return k.patch(ctx, client, dry, object, value)
	})
	return changed, err
}

// remove takes the key out, if it stands there.
func (k configKey) remove(ctx context.Context, client kubernetes.Interface, dry *dryRun) (removed bool, err error) {
	maps := client.CoreV1().ConfigMaps(k.namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := maps.Get(ctx, k.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return errors.Wrapf(err, "reading ConfigMap %s/%s", k.namespace, k.name)
		}
		if _, removed = object.Data[k.key]; !removed || !dry.sends() {
			return nil
		}
		return k.patch(ctx, client, dry, object, nil)
	})
	return removed, err
}

// patch gives the key another value, nil takes it out, unless the object was written to since it was read.
func (k configKey) patch(ctx context.Context, client kubernetes.Interface, dry *dryRun, read *corev1.ConfigMap, value *string) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": read.ResourceVersion}, "data": map[string]*string{k.key: value}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ConfigMaps(k.namespace).Patch(ctx, k.name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry.options()})
	return errors.Wrapf(err, "writing ConfigMap %s/%s", k.namespace, k.name)
}
