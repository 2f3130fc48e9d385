package hostsim

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"gotest.tools/v3/assert"
)

func TestTransport(t *testing.T) {
	f := newFixture(t)
	s := &served{fixture: f, client: &http.Client{Transport: f.Transport()}}
	status, body, err := s.request("GET", "/os?prefix=version")
	assert.NilError(t, err)
	assert.Equal(t, status, 200)
	assert.Equal(t, body, `{"version_id":"1.26.1"}`)
	req, err := http.NewRequest("PATCH", "http://localhost/settings?tx=a", strings.NewReader(`{"updates":{"seed":3}}`))
	assert.NilError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	assert.NilError(t, err)
	assert.NilError(t, resp.Body.Close())
	assert.Equal(t, resp.StatusCode, 204)

	for _, c := range []struct {
		fault  Fault
		target string
		want   error
	}{
		{Fault{ID: F12}, pathOS, os.ErrDeadlineExceeded},
		{Fault{ID: F12, Variant: "headers"}, pathOS, os.ErrDeadlineExceeded},
		{Fault{ID: F12, Variant: "headers"}, "/nope", os.ErrDeadlineExceeded},
		{Fault{ID: F12, Variant: "truncated"}, pathOS, io.ErrUnexpectedEOF},
		{Fault{ID: F12, Variant: "truncated"}, "/nope", io.ErrUnexpectedEOF},
		{Fault{ID: F28}, pathOS, syscall.EACCES},
	} {
		f.faults(c.fault)
		_, _, err = s.request("GET", c.target)
		assert.ErrorIs(t, err, c.want)
	}
	f.faults(Fault{ID: F15, Count: 1}, Fault{ID: F15, Variant: "reset"})
	_, _, err = s.request("POST", pathReboot)
	assert.ErrorIs(t, err, io.EOF)
	assert.Equal(t, f.downs, 1)
	_, _, err = s.request("POST", pathReboot)
	assert.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Equal(t, f.downs, 2)
	f.PowerOff()
	_, _, err = s.request("GET", pathOS)
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}
