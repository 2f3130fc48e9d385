package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"github.com/pkg/errors"
)

// certLife is longer than any simulated cluster runs.
const certLife = 365 * 24 * time.Hour

// authority is the certificate authority of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate with its key, both PEM.
type pair struct{ cert, key []byte }

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate("local cluster")
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, errors.Wrap(err, "making a certificate authority")
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.Wrap(err, "making a certificate authority")
	}
	return &authority{cert: cert, key: key, pem: pemBlock("CERTIFICATE", der)}, nil
}

// server makes a serving certificate for names and addresses.
func (a *authority) server(name string, dns []string, ips []net.IP) (pair, error) {
	template, err := newTemplate(name)
	if err != nil {
		return pair{}, err
	}
	template.DNSNames, template.IPAddresses = dns, ips
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.issue(template)
}

// client makes a client certificate that stands for a Kubernetes user.
func (a *authority) client(user string, groups []string) (pair, error) {
	template, err := newTemplate(user)
	if err != nil {
		return pair{}, err
	}
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, errors.Wrapf(err, "issuing a certificate for %q", template.Subject.CommonName)
	}
	keyPEM, err := keyPEM(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: pemBlock("CERTIFICATE", der), key: keyPEM}, nil
}

func newTemplate(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, errors.Wrap(err, "drawing a serial number")
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(certLife),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return key, errors.Wrap(err, "making a key")
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, errors.Wrap(err, "encoding a key")
	}
	return pemBlock("EC PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
