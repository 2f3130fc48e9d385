package updateapi

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

// maxBody bounds what is read of an answer's body, in bytes; real ones have a few thousand.
const maxBody = 1 << 20

// answer is a complete answer: one whose body didn't arrive in full is an error instead.
type answer struct {
	status int
	body   []byte
	// cut: the body is longer than maxBody bytes, and the rest was not read.
	cut bool
}

// empty reports whether the body is empty: so is that of a 404 for an unknown route, but not that of a handler's 404.
func (a answer) empty() bool { return strings.TrimSpace(string(a.body)) == "" }

// exchange sends one request without a body and reads the answer, within the timeout.
func (c *Client) exchange(ctx context.Context, method, path string) (answer, error) {
	return c.exchangeBody(ctx, method, path, nil)
}

// exchangeBody is exchange for a request whose body is JSON, or nil for none.
func (c *Client) exchangeBody(ctx context.Context, method, path string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	what := strings.ToLower(method) + " " + path
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, errors.Wrap(err, what)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, c.failed(what, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNoContent {
		return answer{status: resp.StatusCode}, nil
	}
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return answer{}, errors.Wrapf(err, "%s: read the body of the %d answer", what, resp.StatusCode)
	}
	return answer{status: resp.StatusCode, body: got[:min(len(got), maxBody)], cut: len(got) > maxBody}, nil
}

// failed returns the error of a connection that failed, by its remedy.
func (c *Client) failed(what string, err error) error {
	// The error repeats method and URL, whose host is made up.
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return errors.Wrap(err, what)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return &platform.GoneError{Path: c.socket, Err: errors.Wrap(err, what)}
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return errors.Wrapf(err, "%s: the socket %s may not be used: "+
			"check the SELinux type of the container (control_t or super_t) and its uid (0) or supplemental group (274)",
			what, c.socket)
	}
	return errors.Wrap(err, what)
}
