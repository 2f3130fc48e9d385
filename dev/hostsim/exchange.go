package hostsim

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pkg/errors"
)

const (
	// idle is how long a connection is kept for another request, as long as the real server does.
	idle = 5 * time.Second
	// maxHead and maxBody bound a request, in bytes.
	maxHead = 64 << 10
	maxBody = 1 << 20
)

// exchange reads a request and writes the answer; it tells whether the connection is good for more.
func (r *serving) exchange(c *net.UnixConn) bool {
	if err := c.SetReadDeadline(time.Now().Add(idle)); err != nil {
		return false
	}
	head, err := readHead(c)
	if err != nil {
		return false
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(head, '\n'))))
	if err != nil || req.ContentLength < 0 || req.ContentLength > maxBody {
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
		return false
	}
	in := Request{
		Method:      req.Method,
		Path:        req.URL.Path,
		Query:       req.URL.Query(),
		ContentType: req.Header.Get("Content-Type"),
	}
	if req.ContentLength == 0 {
		a := r.host.Handle(in)
		if a.Cut == CutReset {
			return false
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			return false
		}
		return write(c, a, req.Close) && !r.host.rebootDue()
	}
	tail := make([]byte, 1+req.ContentLength)
	if _, err := io.ReadFull(c, tail); err != nil {
		return false
	}
	in.Body = tail[1:]
	return write(c, r.host.Handle(in), req.Close) && !r.host.rebootDue()
}

// readHead reads the head of a request but for its last byte, a line feed. To close a unix socket with
// something unread in it is what makes the other end see a reset.
func readHead(c io.Reader) ([]byte, error) {
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r")) {
		if len(head) >= maxHead {
			return nil, errors.New("the head of the request is too long")
		}
		if _, err := io.ReadFull(c, one); err != nil {
			return nil, err
		}
		head = append(head, one[0])
	}
	return head, nil
}

// write writes the answer, as far as it is to arrive, and tells whether the connection may go on.
func write(c *net.UnixConn, a Answer, last bool) bool {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	if a.Status != http.StatusNoContent {
		fmt.Fprintf(&head, "content-length: %d\r\n", len(a.Body))
	}
	if a.ContentType != "" {
		fmt.Fprintf(&head, "content-type: %s\r\n", a.ContentType)
	}
	if last {
		head.WriteString("connection: close\r\n")
	}
	fmt.Fprintf(&head, "date: %s\r\n", time.Now().UTC().Format(http.TimeFormat))
	end := "\r\n"
	switch a.Cut {
	case CutSilent:
		stall(c)
		return false
	case CutEOF, CutReset:
		return false
	case CutHeaders:
		if len(a.Body) == 0 {
			// Without a body, whole headers would be a whole answer.
			end = ""
		}
		_, _ = io.WriteString(c, head.String()+end)
		stall(c)
		return false
	case CutBody:
		if len(a.Body) == 0 {
			_, _ = c.Write(head.Bytes()[:head.Len()/2])
			return false
		}
		_, _ = io.WriteString(c, head.String()+end)
		_, _ = c.Write(a.Body[:len(a.Body)/2])
		return false
	case CutNone:
	}
	if _, err := c.Write(append(append(head.Bytes(), end...), a.Body...)); err != nil {
		return false
	}
	return !last
}

// stall holds the connection until the client gives up or the server is closed.
func stall(c *net.UnixConn) {
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c)
}
