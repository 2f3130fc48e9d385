package certificate

import (
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
)

// backdate makes a certificate valid for clocks that are a little behind.
const backdate = 5 * time.Minute

// parse returns the first certificate of a PEM text; nil if there is none.
func parse(cert []byte) *x509.Certificate {
	block, _ := pem.Decode(cert)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

func pairs(cert, key []byte) bool {
	_, err := tls.X509KeyPair(cert, key)
	return err == nil
}

// makeCA returns a new CA that can sign for one DNS name only.
func makeCA(name string, life time.Duration, now time.Time) (cert, key []byte, err error) {
	return sign(&x509.Certificate{
		Subject:                     pkix.Name{CommonName: "update-operator-proxy CA " + now.UTC().Format(time.RFC3339)},
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{name},
	}, nil, nil, life, now)
}

func makeServing(caCert, caKey []byte, name string, life time.Duration, now time.Time) (cert, key []byte, err error) {
	ca, err := tls.X509KeyPair(caCert, caKey)
	if err != nil {
		return nil, nil, errors.Wrap(err, "reading the CA")
	}
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "update-operator-proxy"},
		DNSNames:    []string{name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca.Leaf, ca.PrivateKey, min(life, ca.Leaf.NotAfter.Sub(now)), now)
}

// sign returns a new key and its certificate, which is self-signed without a parent.
func sign(template, parent *x509.Certificate, signer any, life time.Duration, now time.Time) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errors.Wrap(err, "making a key")
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, errors.Wrap(err, "making a serial number")
	}
	template.NotBefore, template.NotAfter = now.Add(-backdate), now.Add(life)
	if parent == nil {
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		return nil, nil, errors.Wrap(err, "signing a certificate")
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, errors.Wrap(err, "encoding a key")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}
