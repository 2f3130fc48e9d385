package certificate

import (
	"bytes"
	"crypto/x509"
	"maps"
	"time"
)

// Life is how long certificates are valid.
type Life struct {
	// CA and Serving are the lives of the CA and the serving certificate; each is renewed at two thirds of it.
	CA, Serving time.Duration
	// Settle is how long a new CA is published before it signs.
	Settle time.Duration
}

// Keys of the Secret.
const (
	keyCA    = "ca.crt"
	keyCAKey = "ca.key"
	// The next CA signs nothing before it was published for Life.Settle.
	keyNext      = "next-ca.crt"
	keyNextKey   = "next-ca.key"
	keyNextSince = "next-ca.published"
	// The previous CA signs nothing and is trusted until it expires.
	keyPrevious = "previous-ca.crt"
	keyServing  = "tls.crt"
	keyKey      = "tls.key"
)

// advance returns the Secret's data after the next step that is due, and whether that is a change. published is the
// ConfigMap's bundle. A call takes one step, so that a new CA is published before the next one.
func advance(data map[string][]byte, published []byte, name string, life Life, now time.Time) (map[string][]byte, bool, error) {
	s := state{data: maps.Clone(data), name: name, life: life, now: now}
	if s.data == nil {
		s.data = map[string][]byte{}
	}
	if !s.signs() && !s.serves() {
		// There is no usable certificate, so nothing is lost.
		clear(s.data)
		if err := s.newCA(keyCA, keyCAKey); err != nil {
			return nil, false, err
		}
	}
	if err := s.rotateCA(published); err != nil {
		return nil, false, err
	}
	if !s.serves() || due(parse(s.data[keyServing]), now) {
		if err := s.newServing(); err != nil {
			return nil, false, err
		}
	}
	return s.data, s.changed, nil
}

// state is the Secret's data while advance changes it.
type state struct {
	data    map[string][]byte
	changed bool
	name    string
	life    Life
	now     time.Time
}

// signs reports whether there is a CA that can sign.
func (s *state) signs() bool { return s.usable(keyCA, keyCAKey) }

// serves reports whether there is a serving certificate that agents accept by the CA.
func (s *state) serves() bool {
	serving, ca := parse(s.data[keyServing]), parse(s.data[keyCA])
	return s.usable(keyServing, keyKey) && serving.VerifyHostname(s.name) == nil &&
		ca != nil && s.now.Before(ca.NotAfter) && serving.CheckSignatureFrom(ca) == nil
}

func (s *state) usable(cert, key string) bool {
	c := parse(s.data[cert])
	return c != nil && s.now.Before(c.NotAfter) && pairs(s.data[cert], s.data[key])
}

// rotateCA takes the step that is due: make the next CA, note when it was published, make it the present one, or drop
// the expired previous one.
func (s *state) rotateCA(published []byte) error {
	if len(s.data[keyPrevious]) > 0 {
		if previous := parse(s.data[keyPrevious]); previous == nil || !s.now.Before(previous.NotAfter) {
			s.drop(keyPrevious)
		}
	}
	if len(s.data[keyNext]) > 0 && !s.usable(keyNext, keyNextKey) {
		s.drop(keyNext, keyNextKey, keyNextSince)
	}
	if len(s.data[keyNext]) == 0 {
		if s.signs() && !due(parse(s.data[keyCA]), s.now) {
			return nil
		}
		return s.newCA(keyNext, keyNextKey)
	}
	if !bytes.Contains(published, bytes.TrimSpace(s.data[keyNext])) {
		return nil
	}
	since, err := time.Parse(time.RFC3339Nano, string(s.data[keyNextSince]))
	if err != nil || since.After(s.now) {
		since = s.now
		s.put(keyNextSince, []byte(since.UTC().Format(time.RFC3339Nano)))
	}
	if s.now.Before(since.Add(s.life.Settle)) {
		return nil
	}
	s.put(keyPrevious, s.data[keyCA])
	s.put(keyCA, s.data[keyNext])
	s.put(keyCAKey, s.data[keyNextKey])
	s.drop(keyNext, keyNextKey, keyNextSince)
	return nil
}

func (s *state) newCA(cert, key string) error {
	c, k, err := makeCA(s.name, s.life.CA, s.now)
	if err != nil {
		return err
	}
	s.put(cert, c)
	s.put(key, k)
	return nil
}

// newServing signs a new serving certificate. While the CA can't sign, the old one stays until the next CA is the
// present one.
func (s *state) newServing() error {
	if !s.signs() {
		return nil
	}
	c, k, err := makeServing(s.data[keyCA], s.data[keyCAKey], s.name, s.life.Serving, s.now)
	if err != nil {
		return err
	}
	s.put(keyServing, c)
	s.put(keyKey, k)
	return nil
}

func (s *state) put(key string, value []byte) {
	s.data[key] = value
	s.changed = true
}

func (s *state) drop(keys ...string) {
	for _, k := range keys {
		delete(s.data, k)
	}
	s.changed = true
}

// bundle returns the CAs that agents should trust.
func bundle(data map[string][]byte) []byte {
	var b []byte
	for _, k := range []string{keyCA, keyNext, keyPrevious} {
		if parse(data[k]) != nil {
			b = append(append(b, bytes.TrimSpace(data[k])...), '\n')
		}
	}
	return b
}

// due reports whether two thirds of the certificate's life are over.
func due(c *x509.Certificate, now time.Time) bool {
	from := c.NotBefore.Add(backdate)
	return !now.Before(from.Add(c.NotAfter.Sub(from) * 2 / 3))
}
