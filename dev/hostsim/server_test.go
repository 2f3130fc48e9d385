package hostsim

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
)

// served is a fixture behind a real socket.
type served struct {
	*fixture
	server *Server
	path   string
	client *http.Client
}

func serve(t *testing.T, f *fixture) *served {
	t.Helper()
	// A socket's path is bounded to some 100 bytes, so not t.TempDir, which has the test's name in it.
	dir, err := os.MkdirTemp("", "hostsim")
	assert.NilError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &served{fixture: f, server: NewServer(f.Host), path: filepath.Join(dir, "api.sock")}
	assert.NilError(t, s.server.Serve(s.path))
	t.Cleanup(func() { assert.NilError(t, s.server.Close()) })
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.path)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	s.client = &http.Client{Transport: tr, Timeout: 20 * time.Second}
	return s
}

func (s *served) request(method, target string) (int, string, error) {
	req, err := http.NewRequest(method, "http://localhost"+target, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// The bytes on the wire, but for the date.
func TestWire(t *testing.T) {
	s := serve(t, exampleHost(t))
	for _, c := range []struct{ request, want string }{
		{"GET /os HTTP/1.1\r\nhost: x\r\n\r\n",
			"HTTP/1.1 200 OK|content-length: 143|content-type: application/json||" + exampleOS},
		{"GET /updates/status HTTP/1.1\r\nhost: x\r\n\r\n",
			"HTTP/1.1 404 Not Found|content-length: 64||" + bodyUninitialized},
		{"GET /nope HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 404 Not Found|content-length: 0||"},
		{"POST /actions/refresh-updates HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 204 No Content||"},
		{"PATCH /settings?tx=a HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}", "HTTP/1.1 204 No Content||"},
		{"BOGUS\r\n\r\n", "HTTP/1.1 400 Bad Request|content-length: 0|connection: close||"},
	} {
		conn, err := net.Dial("unix", s.path)
		assert.NilError(t, err)
		assert.NilError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = io.WriteString(conn, c.request)
		assert.NilError(t, err)
		assert.Equal(t, readAnswer(t, bufio.NewReader(conn), len(c.want)), c.want)
		assert.NilError(t, conn.Close())
	}
}

// readAnswer reads until there is as much as wanted, without the date.
func readAnswer(t *testing.T, r *bufio.Reader, want int) string {
	t.Helper()
	var got strings.Builder
	for !strings.Contains(got.String(), "||") {
		line, err := r.ReadString('\n')
		assert.NilError(t, err)
		if !strings.HasPrefix(line, "date: ") {
			got.WriteString(strings.TrimSuffix(line, "\r\n") + "|")
		}
	}
	b := make([]byte, max(0, want-got.Len()))
	_, err := io.ReadFull(r, b)
	assert.NilError(t, err)
	return got.String() + string(b)
}

func TestKeepAlive(t *testing.T) {
	s := serve(t, newFixture(t))
	conn, err := net.Dial("unix", s.path)
	assert.NilError(t, err)
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for range 3 {
		_, err = io.WriteString(conn, "GET /nope HTTP/1.1\r\nhost: x\r\n\r\n")
		assert.NilError(t, err)
		assert.Equal(t, readAnswer(t, r, 0), "HTTP/1.1 404 Not Found|content-length: 0||")
	}
}

func TestServeAgain(t *testing.T) {
	s := serve(t, newFixture(t))
	ino := func() uint64 {
		info, err := os.Stat(s.path)
		assert.NilError(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	first := ino()
	assert.ErrorContains(t, s.server.Serve(s.path), "already serving")
	status, _, err := s.request("POST", "/actions/refresh-updates")
	assert.NilError(t, err)
	assert.Equal(t, status, 204)
	assert.NilError(t, s.server.Close())
	assert.NilError(t, s.server.Close())
	_, _, err = s.request("GET", pathOS)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	// Keep the old inode from being used again.
	assert.NilError(t, os.Link(s.path, s.path+".old"))
	assert.NilError(t, s.server.Serve(s.path))
	assert.Assert(t, ino() != first)
	// The record survives a restart of the API server.
	status, _, err = s.request("GET", pathStatus)
	assert.NilError(t, err)
	assert.Equal(t, status, 200)
}

func TestServeSparesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	assert.NilError(t, os.WriteFile(path, []byte("x"), 0o600))
	assert.ErrorContains(t, NewServer(newFixture(t).Host).Serve(path), "isn't a socket")
	assert.ErrorContains(t, NewServer(newFixture(t).Host).Serve(filepath.Join(path, "x")), "stale socket")
	assert.ErrorContains(t, NewServer(newFixture(t).Host).Serve(filepath.Join(t.TempDir(), "no", "such")), "listen")
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	f := newFixture(t)
	f.faults(Fault{ID: F12})
	server := NewServer(f.Host)
	path := filepath.Join(t.TempDir(), "s")
	assert.NilError(t, server.Serve(path))
	var conns []net.Conn
	for i := range 3 {
		c, err := net.Dial("unix", path)
		assert.NilError(t, err)
		conns = append(conns, c)
		if i > 0 { // one that says nothing, and two that hang
			_, err = io.WriteString(c, "GET /os HTTP/1.1\r\nhost: x\r\n\r\n")
			assert.NilError(t, err)
		}
	}
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		if len(f.Requests()) == 2 {
			return poll.Success()
		}
		return poll.Continue("the requests haven't arrived")
	})
	assert.NilError(t, server.Close())
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		// This check runs in a goroutine of its own.
		if n := runtime.NumGoroutine() - 1; n > before {
			return poll.Continue("%d goroutines, %d before", n, before)
		}
		return poll.Success()
	})
	for _, c := range conns {
		_ = c.Close()
	}
}

// OnReboot may do all that the surroundings have to do, in place.
func TestOnRebootMayCloseTheServer(t *testing.T) {
	var s *served
	done := make(chan error, 1)
	f := newFixture(t, func(c *Config) {
		c.OnReboot = func() {
			err := s.server.Close()
			s.Boot()
			if err == nil {
				err = s.server.Serve(s.path)
			}
			done <- err
		}
	})
	s = serve(t, f)
	s.reach(Ready)
	before := s.BootID()
	status, _, err := s.request("POST", pathReboot)
	assert.NilError(t, err)
	assert.Equal(t, status, 204)
	select {
	case err := <-done:
		assert.NilError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the machine doesn't come back")
	}
	_, body, err := s.request("GET", "/os?prefix=version")
	assert.NilError(t, err)
	assert.Equal(t, body, `{"version_id":"1.27.0"}`)
	assert.Assert(t, s.BootID() != before)
}
