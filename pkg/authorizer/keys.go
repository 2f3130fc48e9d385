package authorizer

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
)

const (
	// keysPath is where an API server shows every service account the public keys of service accounts' tokens.
	keysPath = "/openid/v1/jwks"
	// keysAgain is the least time between two requests for the keys, however many tokens name an unknown key; keysEvery is
	// the time after which they are requested anyway.
	keysAgain = 10 * time.Second
	keysEvery = time.Hour
	// maxKeys limits the keys that are kept.
	maxKeys = 64
)

// algorithms are those of API servers and of external signers (https://kep.k8s.io/740).
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// keys are the public keys for tokens' signatures. A token with a good signature may have been revoked, but it is not
// made up: such tokens are reviewed apart from all others, which therefore can't delay an agent. Without the keys,
// every new token is reviewed as if it were made up.
type keys struct {
	fetch func(ctx context.Context) ([]byte, error)
	log   logrus.FieldLogger
	// wanted is signalled when a token names an unknown key.
	wanted chan struct{}

	mu   sync.Mutex
	byID map[string]jose.JSONWebKey
	// problem is the last failure; empty after a success.
	problem string
}

func newKeys(fetch func(ctx context.Context) ([]byte, error), log logrus.FieldLogger) *keys {
	return &keys{fetch: fetch, log: log, wanted: make(chan struct{}, 1)}
}

// run fetches the keys until ctx ends. Nothing else does, so that no request causes one directly.
func (k *keys) run(ctx context.Context) {
	for ctx.Err() == nil {
		k.refresh(ctx)
		for _, wait := range []struct {
			most   time.Duration
			signal <-chan struct{}
		}{{keysAgain, nil}, {keysEvery, k.wanted}} {
			select {
			case <-ctx.Done():
			case <-time.After(wait.most):
			case <-wait.signal:
			}
		}
	}
}

func (k *keys) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	content, err := k.fetch(ctx)
	var found map[string]jose.JSONWebKey
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
		k.log.WithError(err).Warn("Could not read the keys of service accounts' tokens: new tokens are reviewed at a low rate")
	}
}

// signed reports whether a token has a good signature by a known key.
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
	signed, err := jose.ParseSignedCompact(t.text, algorithms)
	if err == nil {
		_, err = signed.Verify(key)
	}
	return err == nil
}

// readKeys reads a JSON Web Key Set (RFC 7517). It skips what it doesn't understand.
func readKeys(content []byte) (map[string]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(content, &set); err != nil {
		return nil, errors.Wrap(err, "decoding the keys of service accounts' tokens")
	}
	out := map[string]jose.JSONWebKey{}
	for _, text := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var k jose.JSONWebKey
		if json.Unmarshal(text, &k) == nil && k.IsPublic() {
			out[k.KeyID] = k
		}
	}
	return out, nil
}
