package hostsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
)

// F11: connections end, then no server or no socket is at the path; a new socket stands there afterwards, and
// the status file survives.
func apiServerRestarts(t *testing.T, _ string) {
	s := serve(t, newFixture(t))
	s.reach(Staged)
	record := string(s.do("GET", pathStatus).Body)
	old := s.path + ".old"
	assert.NilError(t, os.Link(s.path, old)) // what a pod has mounted

	// One request is under way when the server goes.
	s.faults(Fault{ID: F12, On: pathOS, Count: 1})
	failed := make(chan error, 1)
	go func() {
		_, _, err := s.request("GET", pathOS)
		failed <- err
	}()
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		if len(s.Faults()) == 0 {
			return poll.Success()
		}
		return poll.Continue("the request hasn't arrived")
	})
	assert.NilError(t, s.server.Close())
	err := <-failed
	assert.Assert(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)

	_, _, err = s.request("GET", pathOS)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.NilError(t, os.Remove(s.path))
	_, _, err = s.request("GET", pathOS)
	assert.ErrorIs(t, err, syscall.ENOENT)

	assert.NilError(t, s.server.Serve(s.path))
	then, err := os.Stat(old)
	assert.NilError(t, err)
	now, err := os.Stat(s.path)
	assert.NilError(t, err)
	assert.Assert(t, !os.SameFile(then, now))
	status, body, err := s.request("GET", pathStatus)
	assert.NilError(t, err)
	assert.Equal(t, status, 200)
	assert.Equal(t, body, record)
	// A client that has the old one mounted can't connect any more.
	_, err = net.Dial("unix", old)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// F12: the connection is made, and then no byte comes, or the headers and no more, or half a body.
func socketHangs(t *testing.T, variant string) {
	for _, target := range []string{"GET /os", "GET /nope", "POST /actions/refresh-updates"} {
		t.Run(target, func(t *testing.T) {
			s := serve(t, newFixture(t))
			s.faults(Fault{ID: F12, Variant: variant, Count: 1})
			s.client.Timeout = 200 * time.Millisecond
			method, path, _ := strings.Cut(target, " ")
			status, body, err := s.request(method, path)
			if variant == "truncated" {
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			} else {
				assert.Assert(t, isTimeout(err), "%v", err)
			}
			withBody := path == "/os"
			if withBody && variant != "silent" {
				assert.Equal(t, status, 200)
			}
			assert.Equal(t, len(body) > 0, withBody && variant == "truncated")
			// A stuck worker hasn't read the request; otherwise it has done its work.
			s.client.Timeout = 20 * time.Second
			status, _, err = s.request("GET", pathStatus)
			assert.NilError(t, err)
			assert.Equal(t, status == 200, method == "POST" && variant != "silent")
		})
	}

	// On one path only.
	s := serve(t, newFixture(t))
	s.faults(Fault{ID: F12, Variant: variant, On: pathStatus})
	status, _, err := s.request("GET", pathOS)
	assert.NilError(t, err)
	assert.Equal(t, status, 200)
	s.client.Timeout = 200 * time.Millisecond
	_, _, err = s.request("GET", pathStatus)
	assert.Assert(t, err != nil)

	// And without a socket, where nothing can hang.
	s = &served{fixture: newFixture(t)}
	s.client = &http.Client{Transport: s.Transport()}
	s.faults(Fault{ID: F12, Variant: variant})
	for _, path := range []string{pathOS, "/nope"} {
		_, _, err = s.request("GET", path)
		want := os.ErrDeadlineExceeded
		if variant == "truncated" {
			want = io.ErrUnexpectedEOF
		}
		assert.ErrorIs(t, err, want)
	}
}

// F13: an answer that isn't one, arrived whole.
func answerIsMalformed(t *testing.T, variant string) {
	good := map[string]string{}
	f := newFixture(t)
	f.reach(Staged)
	for _, path := range []string{pathStatus, pathOS} {
		good[path] = string(f.do("GET", path).Body)
	}
	for path, was := range good {
		s := serve(t, newFixture(t))
		s.reach(Staged)
		s.faults(Fault{ID: F13, Variant: variant, On: path, Count: 1})
		status, body, err := s.request("GET", path)
		assert.NilError(t, err)
		malformedAs(t, variant, path, was, status, body)
		// It was the answer alone.
		_, body, err = s.request("GET", path)
		assert.NilError(t, err)
		assert.Equal(t, body, was)
	}
	if variant != "dispatcher" {
		return
	}
	// A status file that can't be read stops commands as well, before anything starts.
	for _, c := range allCommands {
		f := newFixture(t)
		f.reach(Staged)
		f.faults(Fault{ID: F13, Variant: variant, On: posts[c], Count: 1})
		f.answers("POST", posts[c], 500, "Update dispatcher failed")
		f.isJSON(pathStatus, good[pathStatus])
	}
}

func malformedAs(t *testing.T, variant, path, was string, status int, body string) {
	t.Helper()
	if variant == "dispatcher" {
		assert.Equal(t, status, 500)
		assert.Equal(t, body, "Update dispatcher failed")
		return
	}
	assert.Equal(t, status, 200)
	replaced := func(pairs ...string) {
		t.Helper()
		assert.Equal(t, body, strings.NewReplacer(pairs...).Replace(was))
		assert.Assert(t, json.Valid([]byte(body)))
	}
	switch variant {
	case "cut":
		assert.Equal(t, body, was[:len(was)/2])
		assert.Assert(t, !json.Valid([]byte(body)))
	case "html":
		assert.Assert(t, strings.HasPrefix(body, "<html>"))
	case "empty":
		assert.Equal(t, body, "")
	case "oversize":
		assert.Assert(t, len(body) > 1<<20 && strings.HasSuffix(body, was))
	case "extra":
		replaced(was, `{"surprise":{"level":9,"tags":["a",null]},`+was[1:])
	case "types":
		replaced(`"update_state":"Staged"`, `"update_state":7`, `"version_id":"1.26.1"`, `"version_id":7`)
	case "version":
		replaced(`"version":"1.27.0"`, `"version":"one point two"`, `"version":"1.26.1"`, `"version":"one point two"`,
			`"version_id":"1.26.1"`, `"version_id":"one point two"`)
	case "state":
		replaced(`"update_state":"Staged"`, `"update_state":"Rebooting"`)
	case "command":
		replaced(`"cmd_type":"prepare"`, `"cmd_type":"defragment"`)
	case "nulls":
		from := bytes.Index([]byte(was), []byte(`"most_recent_command":`))
		if path == pathOS {
			from = len(was)
		}
		assert.Equal(t, body[:from], was[:from])
		if path == pathStatus {
			assert.Equal(t, body[from:], `"most_recent_command":{"cmd_type":"refresh","cmd_status":"Unknown","timestamp":"2026-09-20T10:00:02Z","exit_status":null,"stderr":null}}`)
		}
	default:
		t.Fatalf("variant %s isn't known here", variant)
	}
}

// F28: connecting is EACCES for all users but root, which no mode stops.
func socketRefusesAll(t *testing.T, _ string) {
	s := serve(t, newFixture(t))
	assert.NilError(t, os.Chmod(filepath.Dir(s.path), 0o755))
	dial := func(mode os.FileMode) error {
		t.Helper()
		info, err := os.Stat(s.path)
		assert.NilError(t, err)
		assert.Equal(t, info.Mode().Perm(), mode)
		return unprivileged(t, s.path, func() error {
			c, err := net.Dial("unix", s.path)
			if err == nil {
				err = c.Close()
			}
			return err
		})
	}
	assert.NilError(t, dial(0o660))
	s.faults(Fault{ID: F28})
	assert.NilError(t, s.server.Close())
	assert.NilError(t, s.server.Serve(s.path))
	assert.ErrorIs(t, dial(0), syscall.EACCES)
	s.faults()
	assert.NilError(t, s.server.Close())
	assert.NilError(t, s.server.Serve(s.path))
	assert.NilError(t, dial(0o660))

	s = &served{fixture: newFixture(t)}
	s.client = &http.Client{Transport: s.Transport()}
	s.faults(Fault{ID: F28})
	for _, target := range []string{"GET /os", "GET /updates/status", "POST /actions/reboot"} {
		method, path, _ := strings.Cut(target, " ")
		_, _, err := s.request(method, path)
		assert.ErrorIs(t, err, syscall.EACCES)
		var op *net.OpError
		assert.Assert(t, errors.As(err, &op) && op.Op == "dial")
	}
	assert.Equal(t, s.downs, 0)
	assert.Equal(t, len(s.Requests()), 0)
}
