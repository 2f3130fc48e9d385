package telemetry_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// mostOpen is what the port may keep open, as documented.
const mostOpen = 64

// sloths are ways to hold a connection to the port: what is sent on it, while its answers are not read.
var sloths = map[string]string{
	"nothing":            "",
	"half a request":     "GET /metrics HTTP/1.1\r\nHost: p\r\n",
	"long headers":       "GET /metrics HTTP/1.1\r\nHost: p\r\nX: " + strings.Repeat("a", 15<<10),
	"scrapes, not read":  strings.Repeat("GET /metrics HTTP/1.1\r\nHost: p\r\n\r\n", 40),
	"plans, not read":    strings.Repeat("GET /plan HTTP/1.1\r\nHost: p\r\n\r\n", 5),
	"a body without end": "GET /healthz HTTP/1.1\r\nHost: p\r\nContent-Length: 9000000\r\n\r\n" + strings.Repeat("a", 8<<10),
	"a file without end": "POST /plan HTTP/1.1\r\nHost: p\r\nContent-Length: 60000\r\n\r\n" + strings.Repeat("a", 8<<10),
	"a probe, kept open": "GET /healthz HTTP/1.1\r\nHost: p\r\n\r\n",
}

func dialFrom(t *testing.T, host, addr string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: 10 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	assert.NilError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// counted is a listener that counts which of its connections the server keeps.
type counted struct {
	net.Listener
	open atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &countedConn{TCPConn: c.(*net.TCPConn), end: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type countedConn struct {
	*net.TCPConn
	end func()
}

func (c *countedConn) Close() error {
	c.end()
	return c.TCPConn.Close()
}

func serveCounted(t *testing.T, cfg telemetry.Config) (addr string, l *counted) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NilError(t, err)
	l = &counted{Listener: listener}
	cfg.Log, _ = logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- telemetry.ServeOn(ctx, l, cfg) }()
	t.Cleanup(func() {
		cancel()
		assert.Check(t, <-ended)
	})
	return listener.Addr().String(), l
}

// largePlan serves as much as the plan of some thousand nodes, and counts how many are served at once, and were at most.
type largePlan struct{ now, most atomic.Int64 }

const largePlanSize = 4 << 20

func (p *largePlan) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	now := p.now.Add(1)
	defer p.now.Add(-1)
	for most := p.most.Load(); now > most && !p.most.CompareAndSwap(most, now); most = p.most.Load() {
	}
	_, _ = w.Write(make([]byte, largePlanSize))
}

// TestAttackPort holds that few connections to the port of probes, metrics and plan are open, whatever they do, that one
// more is answered within a second meanwhile, and that few plans are in memory.
func TestAttackPort(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	for name, says := range sloths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := &largePlan{}
			addr, l := serveCounted(t, telemetry.Config{Gatherer: registry, Handlers: map[string]http.Handler{"/plan": plan}})
			for i := range 4 * mostOpen {
				conn := dialFrom(t, fmt.Sprintf("127.0.0.%d", 2+i%3), addr)
				assert.NilError(t, conn.(*net.TCPConn).SetReadBuffer(1<<10))
				// Its end may come while it speaks.
				_, _ = io.WriteString(conn, says)
				if i%mostOpen == mostOpen-1 {
					answeredSoon(t, addr, telemetry.PathHealth)
					answeredSoon(t, addr, telemetry.PathMetrics)
				}
			}
			assert.Assert(t, plan.most.Load() <= 2, "%d plans at once", plan.most.Load())
			open := l.open.Load()
			assert.Assert(t, open <= mostOpen, "%d connections are open", open)
		})
	}
	t.Run("an address for each", func(t *testing.T) {
		t.Parallel()
		addr, _ := serve(t, telemetry.Config{Gatherer: registry})
		for i := range 2 * mostOpen {
			dialFrom(t, fmt.Sprintf("127.0.1.%d", 1+i), addr)
		}
		answeredSoon(t, addr, telemetry.PathHealth)
	})
	t.Run("headers too long", func(t *testing.T) {
		t.Parallel()
		addr, _ := serve(t, telemetry.Config{Gatherer: registry})
		conn := dialFrom(t, "127.0.0.2", addr)
		_, _ = io.WriteString(conn, sloths["long headers"]+"\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		assert.NilError(t, err)
		defer res.Body.Close()
		assert.Equal(t, res.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
	})
}

func answeredSoon(t *testing.T, addr, path string) {
	t.Helper()
	conn := dialFrom(t, "127.0.0.1", addr)
	defer conn.Close()
	assert.NilError(t, conn.SetDeadline(time.Now().Add(time.Second)))
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
	assert.NilError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	assert.NilError(t, err)
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	assert.NilError(t, err)
	assert.Equal(t, res.StatusCode, http.StatusOK)
}

// TestLargePlan holds that a plan comes whole to one that reads it slowly, and waits for its turn beside others.
func TestLargePlan(t *testing.T) {
	addr, _ := serve(t, telemetry.Config{Gatherer: prometheus.NewRegistry(), Handlers: map[string]http.Handler{"/plan": &largePlan{}}})
	// These two have their turn, and end it when they are read.
	var others []*http.Response
	for range 2 {
		res, err := http.Get("http://" + addr + "/plan")
		assert.NilError(t, err)
		defer res.Body.Close()
		others = append(others, res)
	}
	whole := make(chan error, 1)
	go func() {
		res, err := http.Get("http://" + addr + "/plan")
		if err == nil {
			defer res.Body.Close()
			var n int64
			if n, err = io.Copy(io.Discard, res.Body); err == nil && n != largePlanSize {
				err = errors.Errorf("%s, %d bytes", res.Status, n)
			}
		}
		whole <- err
	}()
	for _, res := range others {
		n, err := io.Copy(io.Discard, res.Body)
		assert.NilError(t, err)
		assert.Equal(t, n, int64(largePlanSize))
	}
	assert.NilError(t, <-whole)
}

// Of a body that is too long no more is read than shows that it is.
func TestBodyIsBounded(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}
	addr, _ := serve(t, telemetry.Config{Gatherer: prometheus.NewRegistry(), Handlers: map[string]http.Handler{"/plan": http.HandlerFunc(read)}})
	for sent, want := range map[int]int{3: 3, telemetry.MaxBody: telemetry.MaxBody, 4 * telemetry.MaxBody: telemetry.MaxBody + 1} {
		res, err := http.Post("http://"+addr+"/plan", "", strings.NewReader(strings.Repeat("x", sent)))
		assert.NilError(t, err)
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		assert.NilError(t, err)
		assert.Equal(t, string(got), fmt.Sprint(want, nil))
	}
}
