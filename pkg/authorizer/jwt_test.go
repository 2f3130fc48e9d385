package authorizer

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/pkg/errors"
	"github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
)

// testKey is what the API server of these tests signs with.
var testKey, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)

const testKeyID = "test-key"

// testClaims are an agent's, good for an hour from noon; the word makes each token another one.
func testClaims(word string) map[string]any {
	return map[string]any{"jti": word, "sub": testAccount, "aud": []string{testAudience}, "exp": noon.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "bottlerocket", "pod": map[string]string{"name": agent.PodName, "uid": agent.PodUID},
			"node": map[string]string{"name": agent.NodeName, "uid": agent.NodeUID}}}
}

func part(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// jwtOf is a token with a signature that any client could have made up.
func jwtOf(claims map[string]any) string {
	return part(map[string]string{"alg": "ES256", "kid": testKeyID}) + "." + part(claims) + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64))
}

func madeUp(word string) string { return jwtOf(testClaims(word)) }

// signedJWT is a token that the API server signed.
func signedJWT(word string) string { return sign(jose.ES256, testKey, testKeyID, testClaims(word)) }

func sign(how jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: how, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	out, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return out
}

// wordOf is the word that a token was made with.
func wordOf(text string) string {
	var claims struct {
		Word string `json:"jti"`
	}
	content, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if err == nil {
		err = json.Unmarshal(content, &claims)
	}
	if err != nil {
		panic(err)
	}
	return claims.Word
}

// public is a key as an API server shows it.
func public(id string, key any) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: id, Use: "sig"}
}

func keySet(all ...any) []byte {
	text, err := json.Marshal(map[string]any{"keys": all})
	if err != nil {
		panic(err)
	}
	return text
}

// testKeys are those of an API server that has testKey.
func testKeys() *keys {
	log, _ := test.NewNullLogger()
	k := newKeys(func(context.Context) ([]byte, error) { return keySet(public(testKeyID, &testKey.PublicKey)), nil }, log)
	k.refresh(context.Background())
	return k
}

func TestReadToken(t *testing.T) {
	good := madeUp("a")
	parts := strings.Split(good, ".")
	read, ok := readToken(good)
	assert.Assert(t, ok)
	assert.Equal(t, read.keyID, testKeyID)
	assert.Equal(t, read.Subject, testAccount)
	assert.DeepEqual(t, read.Audience, audience{testAudience})
	assert.DeepEqual(t, read.Kubernetes.Node, bound{agent.NodeName, agent.NodeUID})
	one := testClaims("a")
	one["aud"] = testAudience
	read, ok = readToken(jwtOf(one))
	assert.Assert(t, ok)
	assert.DeepEqual(t, read.Audience, audience{testAudience})
	// The last sign of 64 bytes has four bits to spare.
	spare := good[:len(good)-1] + "B"
	for name, text := range map[string]string{"empty": "", "a word": "word", "two parts": parts[0] + "." + parts[1], "four parts": good + "." + parts[2],
		"no signature": parts[0] + "." + parts[1] + ".", "a space": good + " ", "a space inside": parts[0] + ". " + parts[1] + "." + parts[2],
		"a tab": parts[0] + ".\t" + parts[1] + "." + parts[2], "a line break": parts[0] + ".\n" + parts[1] + "." + parts[2], "padding": good + "==",
		"bits to spare": spare, "signs of the other alphabet": strings.Replace(good, parts[2], strings.Repeat("+", len(parts[2])), 1),
		"no JSON": "AAAA." + parts[1] + "." + parts[2], "claims of another form": jwtOf(map[string]any{"aud": 3})} {
		_, ok := readToken(text)
		assert.Assert(t, !ok, name)
	}
}

// FuzzToken: what is read as a token has no second spelling.
func FuzzToken(f *testing.F) {
	for _, s := range []string{madeUp("a"), signedJWT("b"), "a.b.c", "e30.e30.AA", "e30.e30.AB", "e30.e30.AA\n", " e30.e30.AA", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, ok := readToken(text)
		if !ok {
			return
		}
		parts := strings.Split(text, ".")
		for _, p := range parts {
			content, err := base64.RawURLEncoding.DecodeString(p)
			assert.NilError(t, err)
			assert.Equal(t, base64.RawURLEncoding.EncodeToString(content), p)
		}
		assert.Equal(t, read.text, text)
	})
}

func TestToldWithoutAReview(t *testing.T) {
	r := newReviewer(nil, testKeys(), testAudience, "bottlerocket", "update-operator-agent", func() time.Time { return noon }, NewMetrics(nil))
	for _, tc := range []struct {
		name   string
		change func(claims map[string]any)
		want   Reason
	}{
		{"an agent's", func(map[string]any) {}, ""},
		{"two audiences", func(c map[string]any) { c["aud"] = []string{"vault", testAudience} }, ""},
		{"another audience", func(c map[string]any) { c["aud"] = []string{"vault"} }, rule.ReasonBadToken},
		{"no audience", func(c map[string]any) { delete(c, "aud") }, rule.ReasonBadToken},
		{"over by this clock, which may be wrong", func(c map[string]any) { c["exp"] = noon.Add(-clockError).Unix() }, ""},
		{"over whatever the clock", func(c map[string]any) { c["exp"] = noon.Add(-clockError - time.Second).Unix() }, rule.ReasonBadToken},
		{"without an end", func(c map[string]any) { delete(c, "exp") }, rule.ReasonBadToken},
		{"an end out of all range", func(c map[string]any) { c["exp"] = 1e300 }, ""},
		{"any issuer: there may be several", func(c map[string]any) { c["iss"] = "https://new.example" }, ""},
		{"another account", func(c map[string]any) { c["sub"] = "system:serviceaccount:bottlerocket:update-operator-controller" }, rule.ReasonAccount},
		{"no pod", func(c map[string]any) { delete(c["kubernetes.io"].(map[string]any), "pod") }, rule.ReasonUnbound},
		{"no node", func(c map[string]any) { delete(c["kubernetes.io"].(map[string]any), "node") }, rule.ReasonUnbound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			claims := maps.Clone(testClaims("a"))
			tc.change(claims)
			read, ok := readToken(jwtOf(claims))
			assert.Assert(t, ok)
			assert.Equal(t, verdict(r.refuseEarly(read)), orAllowed(tc.want))
		})
	}
}

// TestSignatures holds which signatures are good, by every kind of key that an API server signs with, and that keys which
// aren't understood, or are secret, are left out.
func TestSignatures(t *testing.T) {
	log, _ := test.NewNullLogger()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	assert.NilError(t, err)
	private := map[jose.SignatureAlgorithm]crypto.Signer{jose.RS256: rsaKey}
	for how, curve := range map[jose.SignatureAlgorithm]elliptic.Curve{jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521()} {
		private[how], err = ecdsa.GenerateKey(curve, rand.Reader)
		assert.NilError(t, err)
	}
	odd := []any{map[string]string{"kid": "odd", "kty": "new"}, map[string]string{"kid": "bad", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
		map[string]string{"kid": "secret", "kty": "oct", "k": "AAAA"}}
	for how, key := range private {
		t.Run(string(how), func(t *testing.T) {
			k := newKeys(func(context.Context) ([]byte, error) { return keySet(append(odd, public("k", key.Public()))...), nil }, log)
			k.refresh(t.Context())
			assert.Equal(t, len(k.byID), 1)
			good := func(text string) bool {
				read, ok := readToken(text)
				assert.Assert(t, ok)
				return k.signed(read)
			}
			token := sign(how, key, "k", testClaims("a"))
			parts, others := strings.Split(token, "."), strings.Split(sign(how, key, "k", testClaims("b")), ".")
			assert.Assert(t, good(token))
			assert.Assert(t, !good(parts[0]+"."+others[1]+"."+parts[2]), "another content")
			assert.Assert(t, !good(parts[0]+"."+parts[1]+"."+others[2]), "another signature")
			assert.Assert(t, !good(parts[0]+"."+parts[1]+".AAAA"))
			assert.Assert(t, !good(sign(jose.HS256, make([]byte, 32), "k", testClaims("a"))), "a secret is no key")
			assert.Assert(t, !good(part(map[string]string{"alg": "none", "kid": "k"})+"."+parts[1]+"."+parts[2]))
		})
	}
	_, err = readKeys([]byte("nothing"))
	assert.ErrorContains(t, err, "decoding the keys")
}

// TestKeysAreAskedForAgain holds that a key that is new is found, one that is gone is forgotten, and that the keys stand
// while the API server doesn't answer.
func TestKeysAreAskedForAgain(t *testing.T) {
	log, _ := test.NewNullLogger()
	var content []byte
	err := errors.New("down")
	k := newKeys(func(context.Context) ([]byte, error) { return content, err }, log)
	known := func(text string) bool {
		t.Helper()
		k.refresh(t.Context())
		read, ok := readToken(text)
		assert.Assert(t, ok)
		return k.signed(read)
	}
	good := signedJWT("a")
	assert.Assert(t, !known(good))
	assert.Equal(t, len(k.wanted), 1, "a token names a key that isn't here")
	content, err = keySet(public(testKeyID, &testKey.PublicKey)), nil
	assert.Assert(t, known(good))
	assert.Assert(t, !known(madeUp("a")))
	err = errors.New("down again")
	assert.Assert(t, known(good))
	content, err = keySet(), nil
	assert.Assert(t, !known(good))
	many := make([]any, 3*maxKeys)
	for i := range many {
		many[i] = public(fmt.Sprint(i), &testKey.PublicKey)
	}
	found, err := readKeys(keySet(many...))
	assert.NilError(t, err)
	assert.Equal(t, len(found), maxKeys)
}
