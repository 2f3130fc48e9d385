package chaos

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

const (
	proxySecret = "update-operator-proxy-tls"
	proxyName   = "update-operator-proxy.bottlerocket.svc"
)

// expireCertificate puts a certificate that has ended into the proxies' Secret, signed by their own CA.
func (w *world) expireCertificate(ctx context.Context, _ Strike) (string, error) {
	return w.expire(ctx, func(s *corev1.Secret) error {
		ca, err := tls.X509KeyPair(s.Data["ca.crt"], s.Data["ca.key"])
		if err != nil {
			return errors.Wrap(err, "reading the proxies' CA")
		}
		s.Data["tls.crt"], s.Data["tls.key"], err = ended(&ca)
		return err
	}, nil)
}

// expireAuthority puts a CA that has ended there, and what it signed, and kills the proxies.
func (w *world) expireAuthority(ctx context.Context, _ Strike) (string, error) {
	return w.expire(ctx, func(s *corev1.Secret) error {
		cert, key, err := ended(nil)
		if err != nil {
			return err
		}
		ca, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return errors.Wrap(err, "reading a CA that was just made")
		}
		s.Data = map[string][]byte{"ca.crt": cert, "ca.key": key}
		s.Data["tls.crt"], s.Data["tls.key"], err = ended(&ca)
		return err
	}, func() { w.Kill(proxy) })
}

// expire changes the Secret and waits until the proxies have put a certificate there that is valid.
func (w *world) expire(ctx context.Context, change func(*corev1.Secret) error, then func()) (string, error) {
	secrets := w.Client.CoreV1().Secrets(simcluster.Namespace)
	var put []byte
	if err := simcluster.Await(ctx, "the proxies' Secret is changed", patience, func() (bool, error) {
		s, err := secrets.Get(ctx, proxySecret, metav1.GetOptions{})
		if err != nil || len(s.Data["ca.key"]) == 0 {
			return false, err
		}
		if err := change(s); err != nil {
			return false, err
		}
		put = s.Data["tls.crt"]
		_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
		return err == nil, err
	}); err != nil {
		return "", err
	}
	if then != nil {
		then()
	}
	began := time.Now()
	err := simcluster.Await(ctx, "the proxies replace what has ended", patience, func() (bool, error) {
		s, err := secrets.Get(ctx, proxySecret, metav1.GetOptions{})
		if err != nil || bytes.Equal(s.Data["tls.crt"], put) {
			return false, err
		}
		pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
		return err == nil && time.Now().Before(pair.Leaf.NotAfter), err
	})
	return "replaced after " + since(began), err
}

// ended makes a certificate that was valid until a minute ago: a CA's, or one for the proxies that the
// parent signs.
func ended(parent *tls.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errors.Wrap(err, "making a key")
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "ended"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(-time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	signer, by := template, any(private)
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		template.DNSNames, template.ExtKeyUsage = []string{proxyName}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		signer, by = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &private.PublicKey, by)
	if err != nil {
		return nil, nil, errors.Wrap(err, "signing a certificate")
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, errors.Wrap(err, "encoding a key")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}
