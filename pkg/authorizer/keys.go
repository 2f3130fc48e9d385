package authorizer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
)

const (
	// keysPath is where an API server shows the public keys of its service accounts' tokens, to every service account.
	keysPath = "/openid/v1/jwks"
	// keysAgain is how long the keys aren't asked for again, however many tokens name another; keysEvery is when they
	// are, though none does.
	keysAgain = 10 * time.Second
	keysEvery = time.Hour
	// mostKeys of an answer are kept.
	mostKeys = 64
)

// keys are the public keys that tokens are signed with. A good signature is no proof that a token is good still, but
// only the API server makes one: so such tokens are reviewed apart from those that anybody can make up, and no number
// of these holds up an agent. Without the keys all tokens that are new are reviewed as if made up.
type keys struct {
	fetch func(ctx context.Context) ([]byte, error)
	log   logrus.FieldLogger
	// wanted gets a word when a token names a key that isn't here.
	wanted chan struct{}

	mu   sync.Mutex
	byID map[string]crypto.PublicKey
	// problem is what was in the way last.
	problem string
}

func newKeys(fetch func(ctx context.Context) ([]byte, error), log logrus.FieldLogger) *keys {
	return &keys{fetch: fetch, log: log, wanted: make(chan struct{}, 1)}
}

// run keeps the keys until ctx ends. It alone asks for them, so that strangers can't.
func (k *keys) run(ctx context.Context) {
	for ctx.Err() == nil {
		k.look(ctx)
		for _, wait := range []struct {
			most time.Duration
			word <-chan struct{}
		}{{keysAgain, nil}, {keysEvery, k.wanted}} {
			timer := time.NewTimer(wait.most)
			select {
			case <-ctx.Done():
			case <-timer.C:
			case <-wait.word:
			}
			timer.Stop()
		}
	}
}

func (k *keys) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	content, err := k.fetch(ctx)
	var found map[string]crypto.PublicKey
	if err == nil {
		found, err = readKeys(content)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.byID, k.problem = found, ""
		return
	}
	if problem := err.Error(); problem != k.problem && !errors.Is(ctx.Err(), context.Canceled) {
		k.problem = problem
		k.log.WithError(err).Warn("Could not read the keys of service accounts' tokens: tokens that are new are reviewed at a low rate")
	}
}

// signed reports whether a token has a good signature by a key that is known.
func (k *keys) signed(t jwt) bool {
	k.mu.Lock()
	key, ok := k.byID[t.keyID]
	k.mu.Unlock()
	if !ok {
		select {
		case k.wanted <- struct{}{}:
		default:
		}
		return false
	}
	return verify(key, []byte(t.signed), t.signature)
}

func verify(key crypto.PublicKey, signed, signature []byte) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		digest := sha256.Sum256(signed)
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		size := (key.Params().BitSize + 7) / 8
		if len(signature) != 2*size {
			return false
		}
		var digest []byte
		switch key.Curve {
		case elliptic.P256():
			d := sha256.Sum256(signed)
			digest = d[:]
		case elliptic.P384():
			d := sha512.Sum384(signed)
			digest = d[:]
		default:
			d := sha512.Sum512(signed)
			digest = d[:]
		}
		return ecdsa.Verify(key, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
	}
	return false
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// readKeys reads a set of keys as RFC 7517 has it. What isn't understood is left out.
func readKeys(content []byte) (map[string]crypto.PublicKey, error) {
	var set struct {
		Keys []struct {
			ID       string `json:"kid"`
			Type     string `json:"kty"`
			Curve    string `json:"crv"`
			X        string `json:"x"`
			Y        string `json:"y"`
			Modulus  string `json:"n"`
			Exponent string `json:"e"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(content, &set); err != nil {
		return nil, errors.Wrap(err, "decoding the keys of service accounts' tokens")
	}
	number := func(text string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			return new(big.Int)
		}
		return new(big.Int).SetBytes(b)
	}
	out := map[string]crypto.PublicKey{}
	for _, k := range set.Keys[:min(len(set.Keys), mostKeys)] {
		switch curve := curves[k.Curve]; {
		case k.Type == "RSA":
			if e := number(k.Exponent); e.IsInt64() && e.Int64() < 1<<31 {
				out[k.ID] = &rsa.PublicKey{N: number(k.Modulus), E: int(e.Int64())}
			}
		case k.Type == "EC" && curve != nil:
			size := (curve.Params().BitSize + 7) / 8
			x, y := number(k.X), number(k.Y)
			if len(x.Bytes()) > size || len(y.Bytes()) > size {
				continue
			}
			point := append([]byte{4}, x.FillBytes(make([]byte, size))...)
			if key, err := ecdsa.ParseUncompressedPublicKey(curve, append(point, y.FillBytes(make([]byte, size))...)); err == nil {
				out[k.ID] = key
			}
		}
	}
	return out, nil
}
