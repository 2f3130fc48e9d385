package controlplane

import (
	"crypto/ecdsa"
	"crypto/tls"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
)

// keptAuthority reads the authority in a folder, or makes one there if there is none that holds for another while.
func keptAuthority(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && time.Until(pair.Leaf.NotAfter) > certLife/2 {
		if key, ok := pair.PrivateKey.(*ecdsa.PrivateKey); ok {
			return &authority{cert: pair.Leaf, key: key, pem: pemBlock("CERTIFICATE", pair.Leaf.Raw)}, nil
		}
	}
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	key, err := keyPEM(a.key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "making the folder of a certificate authority")
	}
	// Half of a pair is no pair, and is made anew.
	for file, content := range map[string][]byte{certFile: a.pem, keyFile: key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, errors.Wrap(err, "keeping a certificate authority")
		}
	}
	return a, nil
}
