package authorizer

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// reviewCounter counts the reviews that a proxy asks the API server for, and holds them up as told.
type reviewCounter struct {
	asked atomic.Int64
	mu    sync.Mutex
	held  chan struct{}
}

func (c *reviewCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			return next.RoundTrip(r)
		}
		c.asked.Add(1)
		c.mu.Lock()
		held := c.held
		c.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
}

// hold makes the API server silent on reviews until it is let go.
func (c *reviewCounter) hold() (letGo func()) {
	held := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = nil
		close(held)
	})
}

// reviewedBattlefield is one whose proxy's reviews are counted, and which has read the keys of tokens.
func reviewedBattlefield(t *testing.T) (*battlefield, *reviewCounter) {
	t.Helper()
	c, counter := newCluster(t), &reviewCounter{}
	c.wrap = counter.wrap
	b := c.battlefield()
	until(t, func() error {
		read, _ := readToken(b.token)
		if !b.p.handler.reviewer.keys.signed(read) {
			return errors.New("the keys were not read yet")
		}
		return nil
	})
	return b, counter
}

// get asks for the agent's own node with any token, on a connection of its own.
func (b *battlefield) get(t *testing.T, token string) int {
	t.Helper()
	code, _ := b.send(t, b.getRequest(token))
	return code
}

func (b *battlefield) getRequest(token string) string {
	return "GET /api/v1/nodes/" + b.own + " HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer " + token + "\r\nAccept: " + acceptOfGets + "\r\n\r\n"
}

// forged is a good token under whose claims the signature is another one each time.
func forged(good string, i int) string {
	end := strings.LastIndex(good, ".") + 1
	return good[:end] + fmt.Sprintf("%016x", i) + good[end+16:]
}

// TestAttackReviews holds that no client makes the API server review tokens beyond a small number, and that no good one
// has to wait for that.
func TestAttackReviews(t *testing.T) {
	t.Run("one token in many spellings", func(t *testing.T) {
		b, counter := reviewedBattlefield(t)
		for i := range 30 {
			at := 10 * (i + 1)
			for _, space := range []string{" ", "\t", "  "} {
				assert.Equal(t, b.get(t, b.token[:at]+space+b.token[at:]), http.StatusUnauthorized)
			}
		}
		assert.Equal(t, counter.asked.Load(), int64(0))
	})
	t.Run("tokens of others", func(t *testing.T) {
		b, counter := reviewedBattlefield(t)
		controller := b.pod(b.options.Namespace, "update-operator-controller", "controller", b.own)
		for _, token := range []string{b.tokenOf(b.agentPod, "vault"), b.cluster.token(b.options.Namespace, "update-operator-controller", controller, b.options.Audience),
			b.cluster.token(b.options.Namespace, b.options.AgentAccount, nil, b.options.Audience), "nonsense", "a.b.c"} {
			code := b.get(t, token)
			assert.Assert(t, code == http.StatusUnauthorized || code == no, code)
		}
		assert.Equal(t, counter.asked.Load(), int64(0))
	})
	t.Run("requests that are cut off", func(t *testing.T) {
		b, counter := reviewedBattlefield(t)
		letGo := counter.hold()
		defer letGo()
		began := time.Now()
		for i := range badTokenBurst + 10 {
			b.cutOff(t, forged(b.token, i), counter)
		}
		asked, most := counter.asked.Load(), badTokenBurst+badTokensPerSecond*(1+time.Since(began).Seconds())
		assert.Assert(t, float64(asked) <= most, "%d reviews", asked)
	})
	t.Run("one token at once", func(t *testing.T) {
		b, counter := reviewedBattlefield(t)
		letGo := counter.hold()
		defer letGo()
		var sent, wg sync.WaitGroup
		for range 60 {
			sent.Add(1)
			wg.Go(func() {
				conn, err := b.dial(t, tls.VersionTLS13)
				if err == nil {
					defer conn.Close()
					_, err = io.WriteString(conn, b.getRequest(b.token))
				}
				sent.Done()
				assert.Check(t, err)
				_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1))
			})
		}
		sent.Wait()
		until(t, func() error {
			if counter.asked.Load() == 0 {
				return errors.New("no review yet")
			}
			return nil
		})
		letGo()
		wg.Wait()
		assert.Equal(t, counter.asked.Load(), int64(1))
	})
	t.Run("the first to ask goes away", func(t *testing.T) {
		b, counter := reviewedBattlefield(t)
		letGo := counter.hold()
		defer letGo()
		b.cutOff(t, b.token, counter)
		letGo()
		assert.Equal(t, b.get(t, b.token), http.StatusOK)
		assert.Equal(t, counter.asked.Load(), int64(1))
	})
}

// cutOff sends a request and goes away once a review of it was asked for, or it was answered without.
func (b *battlefield) cutOff(t *testing.T, token string, counter *reviewCounter) {
	t.Helper()
	before := counter.asked.Load()
	conn, err := b.dial(t, tls.VersionTLS13)
	assert.NilError(t, err)
	_, err = io.WriteString(conn, b.getRequest(token))
	assert.NilError(t, err)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = conn.Read(make([]byte, 1))
	}()
	until(t, func() error {
		select {
		case <-answered:
			return nil
		default:
		}
		if counter.asked.Load() == before {
			return errors.New("neither reviewed nor answered")
		}
		return nil
	})
	assert.NilError(t, conn.Close())
	<-answered
}

// TestAttackSharedAddress holds that agents behind one address, that of a NAT for instance, are served while a client
// behind it sends made-up tokens: those that were seen before, and those that come for the first time, all at once.
func TestAttackSharedAddress(t *testing.T) {
	b, _ := reviewedBattlefield(t)
	assert.Equal(t, b.get(t, b.token), http.StatusOK)
	refused := 0
	for i := range 2 * badTokenBurst {
		if b.get(t, forged(b.token, i)) == http.StatusTooManyRequests {
			refused++
		}
	}
	assert.Assert(t, refused > 0)
	assert.Equal(t, b.get(t, b.token), http.StatusOK)
	var tokens []string
	for i := range 40 {
		pod := b.pod(b.options.Namespace, b.options.AgentAccount, fmt.Sprintf("new-%d", i), b.own)
		tokens = append(tokens, b.tokenOf(pod, b.options.Audience))
	}
	var wg sync.WaitGroup
	for _, token := range tokens {
		wg.Go(func() { assert.Check(t, b.get(t, token) == http.StatusOK) })
	}
	wg.Wait()
}

// TestAttackFlush holds that no number of bad tokens makes the proxy forget which were good, also where it doesn't know
// the keys that they are signed with.
func TestAttackFlush(t *testing.T) {
	w := newReviewWorld()
	w.set(func(word string) (authenticationv1.TokenReviewStatus, error) {
		if word == "good" {
			return goodReview(agent), nil
		}
		return authenticationv1.TokenReviewStatus{}, nil
	})
	ask := func(word string) *Refusal {
		v, err := w.identify(context.Background(), madeUp(word), "10.0.0.1")
		assert.NilError(t, err)
		return v.refusal
	}
	assert.Assert(t, ask("good") == nil)
	for i := range maxEntries + 10 {
		assert.Assert(t, ask(fmt.Sprint(i)) != nil)
	}
	w.at(noon.Add(reviewFor + time.Millisecond))
	for range badTokensPerSecond * 20 {
		ask(fmt.Sprint(time.Now().UnixNano()))
	}
	assert.Equal(t, verdict(ask("good")), orAllowed(""))
}

// TestAttackTokensOfAPod holds that root on a node, which gets any number of tokens of its agent's pod from the API
// server, has few of them reviewed, whether they are good or the pod is gone, and that neither other agents nor an open
// watch of that pod feels it.
func TestAttackTokensOfAPod(t *testing.T) {
	for _, good := range []bool{true, false} {
		t.Run(fmt.Sprintf("good=%t", good), func(t *testing.T) {
			w := newReviewWorld()
			w.set(func(string) (authenticationv1.TokenReviewStatus, error) {
				if good {
					return goodReview(agent), nil
				}
				return authenticationv1.TokenReviewStatus{}, nil
			})
			var tokens []string
			for i := range 100 {
				tokens = append(tokens, signedJWT(fmt.Sprint(i)))
			}
			const seconds = 120
			for second := range seconds {
				w.at(noon.Add(time.Duration(second) * time.Second))
				for _, token := range tokens {
					_, err := w.identify(t.Context(), token, "10.0.0.1")
					assert.NilError(t, err)
				}
			}
			assert.Assert(t, w.asked.Load() <= podReviewBurst+podReviewsPerSecond*seconds, "%d reviews", w.asked.Load())

			w.set(func(string) (authenticationv1.TokenReviewStatus, error) { return goodReview(agent), nil })
			v, err := w.ask(t.Context(), tokens[99], w.signedReview)
			assert.NilError(t, err)
			assert.Equal(t, verdict(v.refusal), orAllowed(""), "a watch of that pod")
			claims := testClaims("other")
			claims["kubernetes.io"].(map[string]any)["pod"] = map[string]string{"name": "other", "uid": "other"}
			v, err = w.identify(t.Context(), sign(jose.ES256, testKey, testKeyID, claims), "10.0.0.1")
			assert.NilError(t, err)
			assert.Equal(t, verdict(v.refusal), orAllowed(""), "another agent")
		})
	}
}

// TestBusyAgentIsReviewed holds that an agent that never rests, with a new token each hour, is refused no review, also
// after an outage in which it tried again and again.
func TestBusyAgentIsReviewed(t *testing.T) {
	w := newReviewWorld()
	token := ""
	for second := range 3 * 3600 {
		if second%3600 == 0 {
			token = signedJWT(fmt.Sprint(second))
		}
		w.at(noon.Add(time.Duration(second) * time.Second))
		down := second/600 == 5
		w.set(func(string) (authenticationv1.TokenReviewStatus, error) {
			if down {
				return authenticationv1.TokenReviewStatus{}, errors.New("down")
			}
			return goodReview(agent), nil
		})
		v, err := w.identify(t.Context(), token, "10.0.0.1")
		assert.Assert(t, down || err == nil, "%v", err)
		assert.Equal(t, verdict(v.refusal), orAllowed(""), "after %d s", second)
	}
}
