package telemetry

import (
	"net"
	"sync"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/connlimit"
)

const (
	// maxConnections limits open connections: the kubelet, Prometheus and an administrator need one each.
	maxConnections = 64
	// The sizes of the kernel's buffers for a connection: they count as the container's memory.
	readBuffer, writeBuffer = 4 << 10, 64 << 10
)

// connections is a listener that limits open connections. It accepts each new connection and closes another one
// instead: the kubelet would restart the pod if its probe were refused.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open *connlimit.Limit[*connection]
}

func limitConnections(l net.Listener) *connections {
	return &connections{Listener: l, open: connlimit.New[*connection](maxConnections)}
}

// Accept returns the next connection. If there are too many, it closes another one.
func (l *connections) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t, ok := accepted.(interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	}); ok {
		_ = t.SetReadBuffer(readBuffer)
		_ = t.SetWriteBuffer(writeBuffer)
	}
	c := &connection{Conn: accepted, of: l}
	l.mu.Lock()
	over, full := l.open.Add(connlimit.Source(accepted.RemoteAddr().String()), c)
	l.mu.Unlock()
	if full {
		_ = over.Close()
	}
	return c, nil
}

type connection struct {
	net.Conn
	of *connections
}

// Close may be called more than once.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.open.Remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
