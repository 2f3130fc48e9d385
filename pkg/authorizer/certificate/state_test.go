package certificate

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

const serverName = "update-operator-proxy.bottlerocket.svc"

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	life  = Life{CA: 60 * time.Hour, Serving: 6 * time.Hour, Settle: time.Hour}
)

// trusted reports whether an agent that trusts a bundle accepts what is served.
func trusted(t *testing.T, bundle, serving []byte, now time.Time) error {
	t.Helper()
	pool := x509.NewCertPool()
	assert.Assert(t, pool.AppendCertsFromPEM(bundle))
	_, err := parse(serving).Verify(x509.VerifyOptions{Roots: pool, DNSName: serverName, CurrentTime: now})
	return err
}

// TestRotationHasNoGap lets a proxy look at its certificates for many lives of the CA, while agents learn
// of the bundle half an hour late, and a replica serves what it read half an hour ago: all the while every
// agent accepts every replica.
func TestRotationHasNoGap(t *testing.T) {
	const step, late = 10 * time.Minute, 3
	var data map[string][]byte
	var told, served [][]byte
	cas, servings := map[string]bool{}, map[string]bool{}
	now := start
	for i := range int(3 * life.CA / step) {
		var published []byte
		if len(told) > 0 {
			published = told[len(told)-1]
		}
		next, changed, err := advance(data, published, serverName, life, now)
		assert.NilError(t, err)
		assert.Equal(t, changed, !same(data, next))
		data = next
		told, served = append(told, bundle(data)), append(served, data[keyServing])
		cas[string(data[keyCA])], servings[string(data[keyServing])] = true, true
		for _, b := range [][]byte{told[i], told[max(0, i-late)]} {
			for _, s := range [][]byte{served[i], served[max(0, i-late)]} {
				assert.NilError(t, trusted(t, b, s, now), "after %s", now.Sub(start))
			}
		}
		assert.Assert(t, bytes.Count(told[i], []byte("BEGIN")) <= 3)
		now = now.Add(step)
	}
	assert.Assert(t, len(cas) >= 4 && len(cas) <= 6, "%d CAs", len(cas))
	assert.Assert(t, len(servings) >= 40 && len(servings) <= 55, "%d certificates", len(servings))
}

func same(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if !bytes.Equal(v, b[k]) {
			return false
		}
	}
	return true
}

func made(t *testing.T) map[string][]byte {
	t.Helper()
	data, changed, err := advance(nil, nil, serverName, life, start)
	assert.NilError(t, err)
	assert.Assert(t, changed)
	return data
}

func TestAdvance(t *testing.T) {
	t.Run("rests", func(t *testing.T) {
		data := made(t)
		_, changed, err := advance(data, bundle(data), serverName, life, start.Add(time.Hour))
		assert.NilError(t, err)
		assert.Assert(t, !changed)
	})
	t.Run("a new CA waits until agents were told, however long that takes", func(t *testing.T) {
		data := made(t)
		old := data[keyCA]
		now := start.Add(41 * time.Hour)
		data, _, err := advance(data, bundle(data), serverName, life, now)
		assert.NilError(t, err)
		assert.Assert(t, data[keyNext] != nil)
		for range 5 {
			now = now.Add(time.Hour)
			data, _, err = advance(data, old, serverName, life, now)
			assert.NilError(t, err)
			assert.DeepEqual(t, data[keyCA], old)
		}
		data, _, err = advance(data, bundle(data), serverName, life, now)
		assert.NilError(t, err)
		assert.DeepEqual(t, data[keyCA], old)
		data, _, err = advance(data, bundle(data), serverName, life, now.Add(life.Settle-time.Second))
		assert.NilError(t, err)
		assert.DeepEqual(t, data[keyCA], old)
		data, _, err = advance(data, bundle(data), serverName, life, now.Add(life.Settle))
		assert.NilError(t, err)
		assert.DeepEqual(t, data[keyPrevious], old)
		assert.Assert(t, parse(data[keyServing]).CheckSignatureFrom(parse(data[keyCA])) == nil)
		assert.Assert(t, data[keyNext] == nil && data[keyNextSince] == nil)
	})
	t.Run("a lost CA key is replaced without a gap", func(t *testing.T) {
		data := made(t)
		old := bundle(data)
		data[keyCAKey] = []byte("damaged")
		now := start.Add(5 * time.Hour)
		data, changed, err := advance(data, old, serverName, life, now)
		assert.NilError(t, err)
		assert.Assert(t, changed)
		assert.NilError(t, trusted(t, old, data[keyServing], now))
		data, _, err = advance(data, bundle(data), serverName, life, now)
		assert.NilError(t, err)
		data, _, err = advance(data, bundle(data), serverName, life, now.Add(life.Settle))
		assert.NilError(t, err)
		assert.NilError(t, trusted(t, bundle(data), data[keyServing], now.Add(life.Settle)))
		assert.Assert(t, !due(parse(data[keyServing]), now.Add(life.Settle)))
	})
	for name, damage := range map[string]func(data map[string][]byte){
		"a lost serving key":            func(d map[string][]byte) { delete(d, keyKey) },
		"a serving key of another":      func(d map[string][]byte) { d[keyKey] = d[keyCAKey] },
		"a serving certificate damaged": func(d map[string][]byte) { d[keyServing] = []byte("x") },
		"all damaged": func(d map[string][]byte) {
			for k := range d {
				d[k] = []byte("x")
			}
		},
		"a next CA damaged":     func(d map[string][]byte) { d[keyNext] = []byte("x") },
		"a previous CA damaged": func(d map[string][]byte) { d[keyPrevious] = []byte("x") },
	} {
		t.Run(name, func(t *testing.T) {
			data := made(t)
			damage(data)
			data, changed, err := advance(data, bundle(data), serverName, life, start)
			assert.NilError(t, err)
			assert.Assert(t, changed)
			assert.NilError(t, trusted(t, bundle(data), data[keyServing], start))
			_, changed, err = advance(data, bundle(data), serverName, life, start)
			assert.NilError(t, err)
			assert.Assert(t, !changed)
		})
	}
	t.Run("all over", func(t *testing.T) {
		now := start.Add(2 * life.CA)
		data, _, err := advance(made(t), nil, serverName, life, now)
		assert.NilError(t, err)
		assert.NilError(t, trusted(t, bundle(data), data[keyServing], now))
	})
	t.Run("another name", func(t *testing.T) {
		data, changed, err := advance(made(t), nil, "other.example", life, start)
		assert.NilError(t, err)
		assert.Assert(t, changed)
		assert.NilError(t, parse(data[keyServing]).VerifyHostname("other.example"))
	})
	t.Run("a CA vouches for its own name only", func(t *testing.T) {
		data := made(t)
		cert, _, err := makeServing(data[keyCA], data[keyCAKey], "kubernetes.default.svc", life.Serving, start)
		assert.NilError(t, err)
		pool := x509.NewCertPool()
		assert.Assert(t, pool.AppendCertsFromPEM(bundle(data)))
		_, err = parse(cert).Verify(x509.VerifyOptions{Roots: pool, DNSName: "kubernetes.default.svc", CurrentTime: start})
		assert.ErrorContains(t, err, "not permitted")
	})
}
