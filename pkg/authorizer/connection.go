package authorizer

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
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
// connection: of those there is a most, and above it the address that has most of them loses its oldest one. So
// neither a stranger elsewhere nor one that does nothing keeps an agent out, and agents lose nothing to strangers.
type connections struct {
	net.Listener
	most int

	mu sync.Mutex
	// Both are in the order in which they came; strangers by address, agents by their pods' UIDs.
	strangers, agents map[string][]*connection
	count             int
}

func limitConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, most: most, strangers: map[string][]*connection{}, agents: map[string][]*connection{}}
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
	c := &connection{Conn: accepted, of: l, source: source(accepted.RemoteAddr().String())}
	c.left.Store(strangerBytes)
	if over := l.add(c); over != nil {
		_ = over.Close()
	}
	return c, nil
}

// add returns which one has to go.
func (l *connections) add(c *connection) (over *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.end = time.AfterFunc(strangerTime, func() { _ = c.Close() })
	l.strangers[c.source] = append(l.strangers[c.source], c)
	if l.count++; l.count <= l.most {
		return nil
	}
	heaviest := c.source
	for s, of := range l.strangers {
		if len(of) > len(l.strangers[heaviest]) {
			heaviest = s
		}
	}
	return l.strangers[heaviest][0]
}

// drop takes a connection out of a list, and reports whether it was there.
func drop(from map[string][]*connection, key string, c *connection) bool {
	i := slices.Index(from[key], c)
	if i < 0 {
		return false
	}
	if from[key] = slices.Delete(from[key], i, i+1); len(from[key]) == 0 {
		delete(from, key)
	}
	return true
}

func (l *connections) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.end.Stop()
	if drop(l.strangers, c.source, c) {
		l.count--
	}
	if c.agent != "" {
		drop(l.agents, c.agent, c)
	}
}

// connection is one with what is known of its peer.
type connection struct {
	net.Conn
	of     *connections
	source string
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
	if !drop(l.strangers, c.source, c) {
		return nil
	}
	l.count--
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

// source is what strangers are told apart by: an address, of IPv6 the network that a host has to itself.
func source(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := at.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(64); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}
