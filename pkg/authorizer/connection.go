package authorizer

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/connlimit"
)

const (
	// maxUnauthenticated limits open connections without a good token so far: the agents that may connect to one proxy at
	// the same moment.
	maxUnauthenticated = 1000
	// authTime is how long a connection may take to show a good token; authBytes limits what is read of it until then, TLS
	// included: some headers and a report.
	authTime  = 30 * time.Second
	authBytes = 32 << 10
	// agentConnections is how many connections one agent may have; it needs one, and another while the first one hangs.
	agentConnections = 4
	// refusalTime is how long a client without a good token may take to read its refusal.
	refusalTime = 2 * time.Second
	// The sizes of the kernel's buffers for a connection: they count as the container's memory.
	readBuffer, writeBuffer = 16 << 10, 32 << 10
)

// connections is a listener that limits open connections. A connection is unauthenticated until a request on it shows a
// good token. Those have a limit of their own: neither many of one address nor idle ones keep an agent out, and no
// agent loses a connection to them.
type connections struct {
	net.Listener

	mu              sync.Mutex
	unauthenticated *connlimit.Limit[*connection]
	// agents are the other connections by their pods' UIDs, in the order of arrival.
	agents map[string][]*connection
}

func limitConnections(l net.Listener, max int) *connections {
	return &connections{Listener: l, unauthenticated: connlimit.New[*connection](max), agents: map[string][]*connection{}}
}

// Accept returns the next connection. If there are too many, it closes another one.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t, ok := accepted.(*net.TCPConn); ok {
		_ = t.SetReadBuffer(readBuffer)
		_ = t.SetWriteBuffer(writeBuffer)
	}
	c := &connection{Conn: accepted, of: l}
	c.left.Store(authBytes)
	l.mu.Lock()
	c.end = time.AfterFunc(authTime, func() { _ = c.Close() })
	over, full := l.unauthenticated.Add(connlimit.Source(accepted.RemoteAddr().String()), c)
	l.mu.Unlock()
	if full {
		_ = over.Close()
	}
	return c, nil
}

func (l *connections) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.end.Stop()
	l.unauthenticated.Remove(c)
	i := slices.Index(l.agents[c.agent], c)
	if i < 0 {
		return
	}
	if l.agents[c.agent] = slices.Delete(l.agents[c.agent], i, i+1); len(l.agents[c.agent]) == 0 {
		delete(l.agents, c.agent)
	}
}

// connection is a connection and what is known of its peer.
type connection struct {
	net.Conn
	of *connections
	// left is how many bytes may still be read.
	left atomic.Int64
	// end closes an unauthenticated connection. agent is the UID of the token's pod; empty while unauthenticated. of.mu
	// guards both.
	end   *time.Timer
	agent string
}

func (c *connection) Read(b []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, errors.Errorf("more than %d bytes without a good token", authBytes)
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// Close may be called more than once.
func (c *connection) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}

// authenticate notes that a request of the pod with a good token came on the connection. The first pod counts.
func (c *connection) authenticate(pod string) {
	if c == nil {
		return
	}
	if over := c.of.authenticate(c, pod); over != nil {
		_ = over.Close()
	}
}

// authenticate returns the agent's connection to close if it has too many; nil otherwise.
func (l *connections) authenticate(c *connection, pod string) (over *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.unauthenticated.Remove(c) {
		// It is closed, or authenticated already.
		return nil
	}
	c.end.Stop()
	c.agent = pod
	c.left.Store(math.MaxInt64)
	l.agents[pod] = append(l.agents[pod], c)
	if of := l.agents[pod]; len(of) > agentConnections {
		return of[0]
	}
	return nil
}

// endAfterAnswer makes an unauthenticated connection end after refusalTime, in which the client can read the answer
// that is about to be written.
func (c *connection) endAfterAnswer(w http.ResponseWriter) {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.agent != "" {
		return
	}
	w.Header().Set("Connection", "close")
	c.end.Reset(refusalTime)
}

type connectionKey struct{}

// withConnection is a server's ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a request; nil if it has none, as in tests.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}
