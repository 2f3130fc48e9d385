package runner

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// secretKey is where the key stands in the Secret.
	secretKey = "key"
	keyLength = 32
)

// keeper keeps the key of digests: with it, a Secret can't be guessed from a digest. All runners use the same one, so
// that a digest is the same whichever of them computes it. One that is in use goes back into a Secret that was emptied.
type keeper struct {
	client          kubernetes.Interface
	namespace, name string

	mu  sync.Mutex
	key []byte
}

// known returns the key that is in use, and reads it if there is none yet.
func (k *keeper) known(ctx context.Context) ([]byte, error) {
	if key := k.inUse(); key != nil {
		return key, nil
	}
	return k.read(ctx)
}

func (k *keeper) inUse() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key
}

// read returns the key as the Secret has it now, and makes one if it has none. If runners do so at the same time, one
// of them writes the Secret, and the others meet a conflict and read what it wrote.
func (k *keeper) read(ctx context.Context) ([]byte, error) {
	secrets := k.client.CoreV1().Secrets(k.namespace)
	secret, err := secrets.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.Wrapf(err, "reading Secret %s/%s: apply update-operator.yaml again, the runner may not create it", k.namespace, k.name)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "reading Secret %s/%s", k.namespace, k.name)
	}
	if len(secret.Data[secretKey]) < keyLength {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		if secret.Data[secretKey] = k.inUse(); secret.Data[secretKey] == nil {
			secret.Data[secretKey] = make([]byte, keyLength)
			// It never fails.
			_, _ = rand.Read(secret.Data[secretKey])
		}
		if secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return nil, errors.Wrapf(err, "writing Secret %s/%s", k.namespace, k.name)
		}
	}
	key := slices.Clone(secret.Data[secretKey])
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = key
	return key, nil
}
