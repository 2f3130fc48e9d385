package channel_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/channel"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// half makes every wait as long as it is without jitter.
func half() float64 { return 0.5 }

// polled asks a server for the path once, or until a result pleases, as the runner would, and returns the result.
func polled(t *testing.T, server *httptest.Server, path string) channel.Result {
	t.Helper()
	transport := channel.NewTransport()
	transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	changed := make(chan struct{}, 1)
	p := channel.New(channel.Config{Transport: transport, Now: time.Now, Random: half, Changed: func() { changed <- struct{}{} }})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { p.Run(ctx) })
	defer run.Wait()
	defer cancel()
	p.Set([]string{server.URL + path})
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("the channel was not asked within a minute")
	}
	return p.Current()[server.URL+path]
}

// A channel learns that the operator asks, and which version of it, and nothing else.
func TestRequest(t *testing.T) {
	var got *http.Request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, "https://example.com/releases/tag/v1.36.3%2Bk3s1", http.StatusFound)
	}))
	defer server.Close()
	r := polled(t, server, "/stable?x=y")
	assert.Assert(t, !r.At.IsZero())
	assert.Equal(t, r, channel.Result{Version: "v1.36.3+k3s1", At: r.At})
	assert.Equal(t, got.Method+" "+got.RequestURI, "GET /stable?x=y")
	assert.Equal(t, got.UserAgent(), "bottlerocket-update-operator/"+telemetry.Version)
	for name := range got.Header {
		assert.Assert(t, name == "User-Agent" || name == "Connection", "the channel is sent the header %s", name)
	}
}

// Whatever a channel does, it costs a bounded time and memory, and no redirect is followed.
func TestServers(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, tc := range []struct {
		name, path string
		answers    http.HandlerFunc
		version    string
		problem    string
	}{
		{"it redirects to another server", "/", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/v1.36.3", http.StatusMovedPermanently)
		}, "v1.36.3", ""},
		{"it redirects to itself", "/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "v1.36.3")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "v1.36.3", ""},
		{"it redirects to itself without end", "/", func(w http.ResponseWriter, r *http.Request) {
			elsewhere.Add(int64(len(r.URL.Query().Get("again"))))
			http.Redirect(w, r, "/?again=x", http.StatusFound)
		}, "", `the channel redirects to "", which is no version`},
		{"it redirects to no address", "/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", ":://")
			w.WriteHeader(http.StatusFound)
		}, "", "the channel redirects to what is no address"},
		{"it redirects to http", "/", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/v1.36.3", http.StatusFound)
		}, "", "that does not begin with https://"},
		{"it is itself the version, and its body doesn't end", "/v1.36.3+k3s1", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		}, "v1.36.3+k3s1", ""},
		{"its headers don't end", "/v1.36.3", func(w http.ResponseWriter, r *http.Request) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("A", i), strings.Repeat("a", 1<<10))
			}
		}, "", "server response headers exceeded 65536 bytes"},
		{"it has no such channel", "/", http.NotFound, "", "the channel answers with status 404"},
		{"it ends the connection", "/v1.36.3", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", "the channel can't be reached: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewTLSServer(tc.answers)
			defer server.Close()
			r := polled(t, server, tc.path)
			assert.Equal(t, r.Version, tc.version)
			assert.Assert(t, strings.Contains(r.Problem, tc.problem) && (r.Problem == "") == (tc.problem == ""), r.Problem)
		})
	}
	assert.Equal(t, elsewhere.Load(), int64(0), "a redirect was followed")

	t.Run("its certificate is not trusted", func(t *testing.T) {
		server := httptest.NewTLSServer(nil)
		defer server.Close()
		server.Client().Transport.(*http.Transport).TLSClientConfig = nil
		assert.Equal(t, polled(t, server, "/v1.36.3").Problem,
			"the channel can't be reached: tls: failed to verify certificate: x509: certificate signed by unknown authority")
	})
	t.Run("it isn't there", func(t *testing.T) {
		server := httptest.NewTLSServer(nil)
		server.Close()
		assert.Equal(t, polled(t, server, "/v1.36.3").Problem, "the channel can't be reached: dial: connect: connection refused")
	})
}

// channels is a transport without a network: what it answers, and what it was asked, with the time.
type channels struct {
	mu      sync.Mutex
	began   time.Time
	asked   []string
	answers func(*http.Request) (*http.Response, error)
}

func (c *channels) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := fmt.Sprint(time.Since(c.began), " ", r.URL)
	for _, h := range []string{"If-None-Match", "If-Modified-Since"} {
		if v := r.Header.Get(h); v != "" {
			said += " " + v
		}
	}
	c.asked = append(c.asked, said)
	return c.answers(r)
}

// log returns what was asked since the last call, sorted.
func (c *channels) log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	slices.Sort(asked)
	return asked
}

func respond(status int, header ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// running is a Poller in a bubble of synctest, with a count of what it said has changed.
func running(t *testing.T, answers func(*http.Request) (*http.Response, error)) (*channel.Poller, *channels, *atomic.Int64) {
	t.Helper()
	c := &channels{began: time.Now(), answers: answers}
	var changes atomic.Int64
	p := channel.New(channel.Config{Transport: c, Now: time.Now, Random: half, Changed: func() { changes.Add(1) }})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { p.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	return p, c, &changes
}

// until lets the bubble's clock go on, and all end that is due by then.
func until(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

const (
	stable = "https://example.com/stable"
	latest = "https://example.com/latest"
)

// Each channel is asked once, however many plans name it, then every 15 minutes; one that is taken out is asked no more,
// and one that is added is asked at once.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, changes := running(t, func(r *http.Request) (*http.Response, error) { return respond(302, "Location", "/v1.36.3"), nil })
		until(time.Hour)
		assert.DeepEqual(t, c.log(), []string(nil))
		p.Set([]string{stable, stable})
		assert.Equal(t, len(p.Current()), 0, "it was not asked yet")
		until(time.Minute)
		assert.DeepEqual(t, c.log(), []string{"1h0m0s " + stable})
		assert.Equal(t, p.Current()[stable].Version, "v1.36.3")
		p.Set([]string{stable, latest})
		until(14*time.Minute + 30*time.Second)
		assert.DeepEqual(t, c.log(), []string{"1h15m0s " + stable, "1h1m0s " + latest})
		p.Set([]string{latest})
		assert.Equal(t, len(p.Current()), 1)
		until(time.Minute)
		assert.DeepEqual(t, c.log(), []string{"1h16m0s " + latest})
		p.Set(nil)
		until(24 * time.Hour)
		assert.DeepEqual(t, c.log(), []string(nil))
		assert.Equal(t, changes.Load(), int64(2), "what stays as it is has not changed")
	})
}

// A 304 keeps the version, and its validators are asked by.
func TestValidators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own = "https://example.com/v1.36.3"
		p, c, changes := running(t, func(r *http.Request) (*http.Response, error) {
			switch {
			case r.Header.Get("If-None-Match") == `"b"`:
				return respond(304), nil
			case r.Header.Get("If-None-Match") == `"a"`:
				return respond(304, "ETag", `"b"`, "Last-Modified", "now"), nil
			}
			return respond(200, "ETag", `"a"`, "Last-Modified", "then"), nil
		})
		p.Set([]string{own})
		until(50 * time.Minute)
		assert.DeepEqual(t, c.log(), []string{"0s " + own, `15m0s ` + own + ` "a" then`, `30m0s ` + own + ` "b" now`, `45m0s ` + own + ` "b" now`})
		assert.Equal(t, p.Current()[own], channel.Result{Version: "v1.36.3", At: c.began.Add(45 * time.Minute)})
		assert.Equal(t, changes.Load(), int64(1))
	})
}

// A channel that is ill is asked less and less, its last version stays known, and its return is seen.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var status atomic.Int64
		status.Store(302)
		p, c, changes := running(t, func(r *http.Request) (*http.Response, error) {
			if status.Load() == 0 {
				return nil, errors.New("no\nroute")
			}
			return respond(int(status.Load()), "Location", "/v1.36.3"), nil
		})
		p.Set([]string{stable})
		until(time.Minute)
		status.Store(500)
		until(19 * time.Minute)
		assert.DeepEqual(t, c.log(), []string{"0s " + stable, "15m0s " + stable, "16m0s " + stable, "18m0s " + stable})
		r := p.Current()[stable]
		assert.Equal(t, r.Version+": "+r.Problem, "v1.36.3: the channel answers with status 500")
		status.Store(0)
		until(3 * time.Hour)
		assert.DeepEqual(t, c.log(), []string{"1h18m0s " + stable, "22m0s " + stable, "2h18m0s " + stable, "30m0s " + stable, "3h18m0s " + stable, "46m0s " + stable})
		r = p.Current()[stable]
		assert.Equal(t, r.Version+": "+r.Problem, "v1.36.3: the channel can't be reached: no route")
		status.Store(302)
		until(time.Hour)
		assert.Equal(t, p.Current()[stable].Problem, "")
		assert.DeepEqual(t, c.log(), []string{"4h18m0s " + stable})
		assert.Equal(t, changes.Load(), int64(4))
	})
}

// A channel that wants to be left alone is, for a day at most.
func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7200":                          2 * time.Hour,
		"Sat, 01 Jan 2000 03:00:00 GMT": 3 * time.Hour,
		"604800":                        24 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, time.Now().UTC().Year(), 2000, "the bubble's clock begins elsewhere")
			p, c, _ := running(t, func(r *http.Request) (*http.Response, error) { return respond(429, "Retry-After", value), nil })
			p.Set([]string{stable})
			until(want - time.Second)
			assert.DeepEqual(t, c.log(), []string{"0s " + stable})
			until(time.Minute)
			assert.Equal(t, len(c.log()), 1)
		})
	}
}

// A poll that gets no answer ends after 10 seconds, and keeps no other one from being asked; never are more than four
// on their way.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		c := roundTripper(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if r.URL.Path == "/stable" {
				return respond(302, "Location", "/v1.36.3"), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		p := channel.New(channel.Config{Transport: c, Now: time.Now, Random: half})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			p.Run(ctx)
			close(done)
		}()
		all := []string{stable}
		for i := range 9 {
			all = append(all, fmt.Sprint("https://example.com/slow/", i))
		}
		began := time.Now()
		p.Set(all)
		until(31 * time.Second)
		assert.Equal(t, len(p.Current()), 10)
		assert.Equal(t, most.Load(), int64(4))
		r := p.Current()
		assert.Equal(t, r[stable].Version, "v1.36.3")
		assert.Equal(t, r[all[1]], channel.Result{Problem: "the channel gave no answer within 10s", At: began.Add(10 * time.Second)})

		// A poll that the end interrupts says nothing of the channel.
		p.Set([]string{"https://example.com/more"})
		until(time.Second)
		assert.Equal(t, now.Load(), int64(1))
		cancel()
		<-done
		assert.Equal(t, len(p.Current()), 0)
	})
}

// What is answered after a channel was taken out, or taken out and put in again, is not taken.
func TestSetWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int64
		c := roundTripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return respond(302, "Location", fmt.Sprintf("/v1.0.%d", count.Add(1))), nil
		})
		var changes atomic.Int64
		p := channel.New(channel.Config{Transport: c, Now: time.Now, Random: half, Changed: func() { changes.Add(1) }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			p.Run(ctx)
			close(done)
		}()
		p.Set([]string{stable})
		until(time.Second / 2)
		p.Set(nil)
		p.Set([]string{stable})
		until(time.Second)
		assert.Equal(t, len(p.Current()), 0)
		until(time.Second)
		assert.Equal(t, p.Current()[stable].Version, "v1.0.2")
		assert.Equal(t, changes.Load(), int64(1))
		cancel()
		<-done
	})
}

// A channel that may not be asked is not, and what is wrong with it is said.
func TestNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := running(t, func(r *http.Request) (*http.Response, error) { return respond(302, "Location", "/v1.36.3"), nil })
		bad := []string{"http://example.com/v1.36.3", "https://me:secret@example.com/stable", "https://example.com/\x7f"}
		p.Set(bad)
		until(time.Hour)
		assert.DeepEqual(t, c.log(), []string(nil))
		for _, b := range bad {
			r := p.Current()[b]
			assert.Assert(t, r.Version == "" && r.Problem != "" && !strings.Contains(r.Problem, "secret"), "%+v", r)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
