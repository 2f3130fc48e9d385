package certificate

import (
	"bytes"
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

// Life says how long things are valid.
type Life struct {
	// CA and Serving are renewed at two thirds of their life.
	CA, Serving time.Duration
	// Settle is how long a new CA is published before it signs.
	Settle time.Duration
}

// Keys of the Secret.
const (
	keyCA       = "ca.crt"
	keyCAKey    = "ca.key"
	keyNext     = "next-ca.crt"
	keyNextKey  = "next-ca.key"
	keyPrevious = "previous-ca.crt"
	keyServing  = "tls.crt"
	keyKey      = "tls.key"
)

// backdate makes a certificate valid for clocks that are a little behind.
const backdate = 5 * time.Minute

// advance returns the Secret's data as it should be now, and if that is a change. published is what
// agents are told to trust at present: a CA that isn't in it signs nothing.
func advance(data map[string][]byte, published []byte, name string, life Life, now time.Time) (map[string][]byte, bool, error) {
	next := map[string][]byte{}
	for k, v := range data {
		next[k] = v
	}
	changed := false
	ca := parse(next[keyCA])
	if ca == nil || !now.Before(ca.NotAfter) || !pairs(next[keyCA], next[keyCAKey]) {
		// The first one, or one that is beyond use: nobody trusts anything that would still work.
		cert, key, err := makeCA(name, life.CA, now)
		if err != nil {
			return nil, false, err
		}
		next = map[string][]byte{keyCA: cert, keyCAKey: key}
		ca, changed = parse(cert), true
	}
	pending := parse(next[keyNext])
	switch {
	case pending == nil && due(ca, now):
		cert, key, err := makeCA(name, life.CA, now)
		if err != nil {
			return nil, false, err
		}
		next[keyNext], next[keyNextKey], changed = cert, key, true
	case pending != nil && bytes.Contains(published, bytes.TrimSpace(next[keyNext])) && !now.Before(pending.NotBefore.Add(backdate+life.Settle)):
		next[keyPrevious] = next[keyCA]
		next[keyCA], next[keyCAKey] = next[keyNext], next[keyNextKey]
		delete(next, keyNext)
		delete(next, keyNextKey)
		ca, changed = pending, true
	}
	if previous := parse(next[keyPrevious]); len(next[keyPrevious]) > 0 && (previous == nil || !now.Before(previous.NotAfter)) {
		delete(next, keyPrevious)
		changed = true
	}
	serving := parse(next[keyServing])
	if serving == nil || due(serving, now) || serving.CheckSignatureFrom(ca) != nil || serving.VerifyHostname(name) != nil || !pairs(next[keyServing], next[keyKey]) {
		cert, key, err := makeServing(next[keyCA], next[keyCAKey], name, life.Serving, now)
		if err != nil {
			return nil, false, err
		}
		next[keyServing], next[keyKey], changed = cert, key, true
	}
	return next, changed, nil
}

// bundle is what agents are to trust.
func bundle(data map[string][]byte) []byte {
	var b []byte
	for _, k := range []string{keyCA, keyNext, keyPrevious} {
		if parse(data[k]) != nil {
			b = append(append(b, bytes.TrimSpace(data[k])...), '\n')
		}
	}
	return b
}

// due tells if two thirds of the certificate's life are over.
func due(c *x509.Certificate, now time.Time) bool {
	from := c.NotBefore.Add(backdate)
	return !now.Before(from.Add(c.NotAfter.Sub(from) * 2 / 3))
}

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

func makeCA(name string, life time.Duration, now time.Time) (cert, key []byte, err error) {
	return sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name + " CA " + now.UTC().Format(time.RFC3339)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil, nil, life, now)
}

func makeServing(caCert, caKey []byte, name string, life time.Duration, now time.Time) (cert, key []byte, err error) {
	ca, err := tls.X509KeyPair(caCert, caKey)
	if err != nil {
		return nil, nil, errors.Wrap(err, "reading the CA")
	}
	parent := parse(caCert)
	if end := parent.NotAfter.Sub(now); life > end {
		life = end
	}
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, parent, ca.PrivateKey, life, now)
}

// sign makes a key and a certificate of it; without a parent it signs itself.
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
