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
	// keysPath is where an API server shows the public keys of its service accounts' tokens, to every service account.
	keysPath = "/openid/v1/jwks"
	// keysAgain is how long the keys aren't asked for again, however many tokens name another; keysEvery is when they
	// are, though none does.
	keysAgain = 10 * time.Second
	keysEvery = time.Hour
	// mostKeys of an answer are kept.
	mostKeys = 64
)

// algorithms are those of API servers, and of what may sign for them (https://kep.k8s.io/740).
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// keys are the public keys that tokens are signed with. A good signature is no proof that a token is good still, but
// only the API server makes one: so such tokens are reviewed apart from those that anybody can make up, and no number
// of these holds up an agent. Without the keys all tokens that are new are reviewed as if made up.
type keys struct {
	fetch func(ctx context.Context) ([]byte, error)
	log   logrus.FieldLogger
	// wanted gets a word when a token names a key that isn't here.
	wanted chan struct{}

	mu   sync.Mutex
	byID map[string]jose.JSONWebKey
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
			select {
			case <-ctx.Done():
			case <-time.After(wait.most):
			case <-wait.word:
			}
		}
	}
}

func (k *keys) look(ctx context.Context) {
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
	signed, err := jose.ParseSignedCompact(t.text, algorithms)
	if err == nil {
		_, err = signed.Verify(key)
	}
	return err == nil
}

// readKeys reads a set of keys as RFC 7517 has it. What isn't understood is left out.
func readKeys(content []byte) (map[string]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(content, &set); err != nil {
		return nil, errors.Wrap(err, "decoding the keys of service accounts' tokens")
	}
	out := map[string]jose.JSONWebKey{}
	for _, text := range set.Keys[:min(len(set.Keys), mostKeys)] {
		var k jose.JSONWebKey
		if json.Unmarshal(text, &k) == nil && k.IsPublic() {
			out[k.KeyID] = k
		}
	}
	return out, nil
}
