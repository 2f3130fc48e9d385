package certificate

import (
	"context"
	"crypto/x509"
	"os"

	"github.com/pkg/errors"
)

// passFiles serves a certificate of the user's own, and publishes its CA if that is given.
func (k *Keeper) passFiles(ctx context.Context) error {
	config, err := k.published(ctx)
	if err != nil {
		return err
	}
	cert, err := read(k.c.CertFile)
	if err != nil {
		return err
	}
	key, err := read(k.c.KeyFile)
	if err != nil {
		return err
	}
	if k.c.CertCAFile != "" {
		ca, err := read(k.c.CertCAFile)
		if err != nil {
			return err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(ca) {
			return errors.Errorf("reading %q: it holds no certificate", k.c.CertCAFile)
		}
		if err := k.publish(ctx, config, ca); err != nil {
			return err
		}
	}
	return k.use(cert, key)
}

func read(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	return b, errors.Wrap(err, "reading a certificate file")
}
