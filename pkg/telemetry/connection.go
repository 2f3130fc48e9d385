package telemetry

import (
	"net"
	"sync"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/connlimit"
)

const (
	// mostConnections are open: the kubelet, Prometheus and an administrator need one each.
	mostConnections = 64
	// The kernel's buffers of a connection: what is under way in them is memory of the container too.
	readBuffer, writeBuffer = 4 << 10, 64 << 10
)

// connections is a listener with a most of open connections. Who comes is never refused, another one is closed: a probe
// that finds no place would restart the pod.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open *connlimit.Limit[*connection]
}

func limitConnections(l net.Listener) *connections {
	return &connections{Listener: l, open: connlimit.New[*connection](mostConnections)}
}

// Accept returns the next connection, in the place of another one where there are too many.
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
