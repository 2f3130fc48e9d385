package kube

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// noticesKey holds what messages told, and are to tell, as pkg/notice writes it. It outlives every process, so that
// none tells again what another one told.
const noticesKey = "notices"

// RecordNotices replaces what is kept of messages, by compare-and-swap: if something else than before stands there by
// now, it is ErrConflict. It may be called while a pass is under way: that pass takes slots by the list that it
// planned by, so the list in memory is replaced only by one with the same slots.
func (k *Cluster) RecordNotices(ctx context.Context, before, after string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	// A slot that was taken in between is no reason to send once more what was sent.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return k.recordNotices(ctx, before, after) })
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errors.WithMessage(ErrConflict, "recording what messages tell")
	}
	return err
}

func (k *Cluster) recordNotices(ctx context.Context, before, after string) error {
	s := &k.slots
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	stands, err := maps.Get(ctx, StateConfigMap, metav1.GetOptions{})
	if err == nil && stands.Data[noticesKey] != before {
		return errors.WithMessage(ErrConflict, "what messages tell")
	}
	if err != nil {
		return errors.Wrapf(err, "reading ConfigMap %s/%s", s.namespace, StateConfigMap)
	}
	object := stands.DeepCopy()
	delete(object.Data, noticesKey)
	if after != "" {
		if object.Data == nil {
			object.Data = map[string]string{}
		}
		object.Data[noticesKey] = after
	}
	written, err := maps.Update(ctx, object, metav1.UpdateOptions{})
	if err != nil {
		return errors.Wrapf(err, "writing ConfigMap %s/%s", s.namespace, StateConfigMap)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object != nil && s.object.ResourceVersion == stands.ResourceVersion {
		s.object = written
	}
	return nil
}
