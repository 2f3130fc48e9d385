package hostsim

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Transport hands the requests of an http.Client to the host in the caller's goroutine, without a
// socket: for simulations on a virtual clock. What would hang on a socket fails with
// os.ErrDeadlineExceeded at once, and a machine that is off refuses the connection.
func (h *Host) Transport() http.RoundTripper { return transport{host: h} }

type transport struct{ host *Host }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if err := t.host.connect(); err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", err)}
	}
	a := t.host.Handle(Request{
		Method:      req.Method,
		Path:        req.URL.Path,
		Query:       req.URL.Query(),
		ContentType: req.Header.Get("Content-Type"),
		Body:        body,
	})
	defer t.host.Settle()
	return a.response(req)
}

// connect is what connect(2) would say.
func (h *Host) connect() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch now := h.advance(); {
	case h.off:
		return syscall.ECONNREFUSED
	case h.holds(F28, now, nil):
		return syscall.EACCES
	}
	return nil
}

// response is the answer as it would come out of a socket.
func (a Answer) response(req *http.Request) (*http.Response, error) {
	var body io.Reader = bytes.NewReader(a.Body)
	switch a.Cut {
	case CutSilent:
		return nil, &net.OpError{Op: "read", Net: "unix", Err: os.ErrDeadlineExceeded}
	case CutEOF:
		return nil, io.EOF
	case CutReset:
		return nil, &net.OpError{Op: "read", Net: "unix", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case CutHeaders:
		if len(a.Body) == 0 {
			return nil, &net.OpError{Op: "read", Net: "unix", Err: os.ErrDeadlineExceeded}
		}
		body = failing{err: os.ErrDeadlineExceeded}
	case CutBody:
		if len(a.Body) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		body = io.MultiReader(bytes.NewReader(a.Body[:len(a.Body)/2]), failing{err: io.ErrUnexpectedEOF})
	case CutNone:
	}
	header := http.Header{}
	if a.ContentType != "" {
		header.Set("Content-Type", a.ContentType)
	}
	return &http.Response{
		Status:        http.StatusText(a.Status),
		StatusCode:    a.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(body),
		ContentLength: int64(len(a.Body)),
		Request:       req,
	}, nil
}

type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }
