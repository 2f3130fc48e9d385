package post_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/notice"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/post"
)

// secret is the part of the URL that must stand in no error.
const secret = "/services/T000/B000/verysecret"

func sender(t *testing.T, url string) *post.Sender {
	t.Helper()
	dir := t.TempDir()
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "slack"), []byte(url+"\n"), 0o600))
	return post.NewSender(dir)
}

var message = notice.MessageOf("prod", []notice.Notice{{Occasion: policy.NodeLost, Node: "node-1", Version: "1.51.0", Message: "node-1 is Lost",
	At: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)}})

// The receiver gets JSON with Slack's field, and learns nothing of the operator's own.
func TestSend(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	s := sender(t, server.URL+secret)
	for range 2 {
		result, err := s.Send(t.Context(), "slack", message)
		assert.NilError(t, err)
		assert.Equal(t, result, notice.Sent)
		assert.Equal(t, got.Method+" "+got.URL.Path, "POST "+secret)
		for name := range got.Header {
			switch name {
			case "Content-Type", "Content-Length", "User-Agent", "Connection":
			default:
				t.Errorf("the receiver is sent the header %s", name)
			}
		}
		assert.Equal(t, got.UserAgent(), "bottlerocket-update-operator")
	}
	var said map[string]any
	assert.NilError(t, json.Unmarshal(body, &said))
	assert.Equal(t, said["text"], "prod: node-1 is Lost")
	assert.Equal(t, said["notices"].([]any)[0].(map[string]any)["node"], "node-1")
}

// Whatever a receiver does costs the message alone: it is not obeyed, not read, not waited for, and the URL is not told.
func TestReceiverFails(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	hangUp := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte(answer))
				_ = conn.Close()
			}
		}
	}
	for _, tc := range []struct {
		name    string
		answers http.HandlerFunc
		want    notice.Result
		err     string
	}{
		{"it says no", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, notice.Refused, "status 403"},
		{"it is ill", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, notice.Refused, "status 500"},
		{"its gateway has no answer", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) }, notice.Unknown, "status 504"},
		{"it redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, notice.Refused, "status 307"},
		{"it redirects to no URL", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", ":://")
			w.WriteHeader(http.StatusFound)
		}, notice.Unknown, "no answer"},
		{"it ends the connection", hangUp(""), notice.Unknown, "no answer"},
		{"it speaks something else", hangUp("HELO <!channel>\r\n"), notice.Unknown, "no answer"},
		{"its headers don't end", hangUp("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 200<<10)), notice.Unknown, "no answer"},
		{"its body doesn't end", func(w http.ResponseWriter, r *http.Request) {
			// The server sees that a connection ends only once it has read the request.
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, notice.Sent, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(tc.answers)
			defer server.Close()
			result, err := sender(t, server.URL+secret).Send(t.Context(), "slack", message)
			assert.Equal(t, result, tc.want)
			if tc.err == "" {
				assert.NilError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.err)
			assert.Assert(t, !strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), "channel"), "%v", err)
		})
	}
	assert.Equal(t, elsewhere.Load(), int64(0), "a redirect was followed")
	t.Run("it hangs", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		assert.NilError(t, err)
		defer listener.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		result, err := sender(t, "http://"+listener.Addr().String()+secret).Send(ctx, "slack", message)
		assert.Equal(t, result, notice.Unknown)
		assert.Assert(t, !strings.Contains(err.Error(), "secret"), "%v", err)
	})
	t.Run("it isn't there", func(t *testing.T) {
		gone := httptest.NewServer(nil)
		gone.Close()
		result, err := sender(t, gone.URL+secret).Send(t.Context(), "slack", message)
		assert.Equal(t, result, notice.Refused)
		assert.ErrorContains(t, err, "connection refused")
		assert.Assert(t, !strings.Contains(err.Error(), "secret"), "%v", err)
	})
}

// A Secret that can't be used says what to do, and not what it holds.
func TestSecret(t *testing.T) {
	for url, want := range map[string]string{
		"ftp://example.com" + secret: "key slack of Secret update-notify is no URL that begins with http:// or https://",
		"hooks" + secret:             "is no URL",
		"http://[" + secret:          "is no URL",
		"":                           "is no URL",
	} {
		result, err := sender(t, url).Send(t.Context(), "slack", message)
		assert.Equal(t, result, notice.Refused)
		assert.ErrorContains(t, err, want)
		assert.Assert(t, !strings.Contains(err.Error(), "verysecret"), "%v", err)
	}
	_, err := post.NewSender(t.TempDir()).Send(t.Context(), "slack", message)
	assert.ErrorContains(t, err, "there is no key slack of Secret update-notify, or it is not mounted yet")
}
