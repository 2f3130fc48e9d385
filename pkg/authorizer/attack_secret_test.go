package authorizer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/certificate"
)

// TestAttackDeletedSecret holds that the loss of the proxies' Secret makes none of them not Ready, and that the CA which
// agents trust is back in it once it was made again.
func TestAttackDeletedSecret(t *testing.T) {
	c := newCluster(t)
	var ahead atomic.Int64
	later := func(p *Proxy) {
		o := c.options
		p.keeper = certificate.NewKeeper(certificate.Config{Client: p.client, Namespace: o.Namespace, SecretName: o.SecretName, CAName: o.CAName,
			ServerName: o.ServerName, Life: certificate.Life{CA: o.CALife, Serving: o.CertificateLife, Settle: o.CASettle}, Log: p.log,
			Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	}
	// What is looked at every 3 s is not Ready after 20 s without an answer.
	c.options.CertificateLife, c.options.CALife, c.options.CASettle = 90*time.Second, 10*time.Minute, time.Minute
	replicas := []*proxy{c.proxy(later), c.proxy(later)}
	secrets := c.admin.CoreV1().Secrets(c.options.Namespace)
	before, err := secrets.Get(t.Context(), c.options.SecretName, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.NilError(t, secrets.Delete(t.Context(), c.options.SecretName, metav1.DeleteOptions{}))
	ahead.Store(int64(25 * time.Second))
	for _, p := range replicas {
		until(t, p.Ready)
	}
	ca := c.ca()
	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.options.SecretName}}, metav1.CreateOptions{})
	assert.NilError(t, err)
	until(t, func() error {
		after, err := secrets.Get(t.Context(), c.options.SecretName, metav1.GetOptions{})
		assert.NilError(t, err)
		if len(after.Data) == 0 {
			return errors.New("the Secret is empty")
		}
		for _, key := range []string{"ca.crt", "ca.key"} {
			assert.DeepEqual(t, after.Data[key], before.Data[key])
		}
		return nil
	})
	assert.DeepEqual(t, c.ca(), ca)
}
