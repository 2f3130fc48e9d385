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
	// mostStrangers is how many connections are open on which no good token was shown yet: as many as agents of one
	// proxy that come at the same moment.
	mostStrangers = 1000
	// strangerTime is how long a connection may take until then, from its first byte; strangerBytes is what may be
	// read of it, TLS included: some headers and a report.
	strangerTime  = 30 * time.Second
	strangerBytes = 32 << 10
	// agentConnections is how many connections one agent has; it needs one, and another while the first one hangs.
	agentConnections = 4
	// farewellTime is how long a stranger may take to read why it was refused.
	farewellTime = 2 * time.Second
	// The kernel's buffers of a connection: what is under way in them is memory of the container too.
	readBuffer, writeBuffer = 16 << 10, 32 << 10
)

// connections is a listener that bounds what is connected. Strangers are all until a good token was shown on their
// connection: of those there is a most. Neither a stranger elsewhere nor one that does nothing keeps an agent out, and
// agents lose nothing to strangers.
type connections struct {
	net.Listener

	mu        sync.Mutex
	strangers *connlimit.Limit[*connection]
	// agents are by their pods' UIDs, in the order in which they came.
	agents map[string][]*connection
}

func limitConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, strangers: connlimit.New[*connection](most), agents: map[string][]*connection{}}
}

// Accept returns the next connection, in the place of another one where there are too many.
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
	c.left.Store(strangerBytes)
	l.mu.Lock()
	c.end = time.AfterFunc(strangerTime, func() { _ = c.Close() })
	over, full := l.strangers.Add(connlimit.Source(accepted.RemoteAddr().String()), c)
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
	l.strangers.Remove(c)
	i := slices.Index(l.agents[c.agent], c)
	if i < 0 {
		return
	}
	if l.agents[c.agent] = slices.Delete(l.agents[c.agent], i, i+1); len(l.agents[c.agent]) == 0 {
		delete(l.agents, c.agent)
	}
}

// connection is one with what is known of its peer.
type connection struct {
	net.Conn
	of *connections
	// left is how many bytes may still be read.
	left atomic.Int64
	// end closes the connection of a stranger, agent is the pod's UID that was proven, empty for a stranger; of.mu
	// guards both.
	end   *time.Timer
	agent string
}

func (c *connection) Read(b []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, errors.Errorf("more than %d bytes without a good token", strangerBytes)
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

// prove notes whose connection it is: it is no stranger's any more. The first agent counts.
func (c *connection) prove(pod string) {
	if c == nil {
		return
	}
	if over := c.of.prove(c, pod); over != nil {
		_ = over.Close()
	}
}

// prove returns which connection of the agent has to go.
func (l *connections) prove(c *connection, pod string) (over *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// One that is no stranger's is closed, or proven.
	if !l.strangers.Remove(c) {
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

// dismiss ends a stranger's connection once it could read the answer that is about to be written.
func (c *connection) dismiss(w http.ResponseWriter) {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.agent != "" {
		return
	}
	w.Header().Set("Connection", "close")
	c.end.Reset(farewellTime)
}

type connectionKey struct{}

// withConnection is a server's ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection that a request came on, nil if it came on none.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}
