package chaos

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/pkg/errors"
)

// relay passes connections on to one place, until it is cut.
type relay struct {
	listener net.Listener
	to       func() string
	work     sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
	// whole is closed while nothing is cut.
	whole   chan struct{}
	refused int
	closed  bool
}

// newRelay listens on a loopback address of its own; to is asked for each connection.
func newRelay(to func() string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listening for a relay")
	}
	r := &relay{listener: l, to: to, open: map[net.Conn]bool{}, whole: make(chan struct{})}
	close(r.whole)
	r.work.Go(r.accept)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// cut freezes what is connected and refuses what is new, until the returned function is called. It
// returns what the cut hit: how many connections froze, and, when it ends, how many were refused.
func (r *relay) cut() (frozen int, mend func() (refused int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole, r.refused = make(chan struct{}), 0
	return len(r.open) / 2, func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.closed {
			close(r.whole)
		}
		return r.refused
	}
}

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		if !r.admit() {
			if tcp, ok := in.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = in.Close()
			continue
		}
		r.work.Go(func() { r.serve(in) })
	}
}

// admit reports whether a new connection may pass.
func (r *relay) admit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.whole:
		return !r.closed
	default:
		r.refused++
		return false
	}
}

func (r *relay) serve(in net.Conn) {
	defer in.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.to())
	cancel()
	if err != nil {
		return
	}
	defer out.Close()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.open[in], r.open[out] = true, true
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.pass(in, out) })
	both.Go(func() { r.pass(out, in) })
	both.Wait()
	r.mu.Lock()
	delete(r.open, in)
	delete(r.open, out)
	r.mu.Unlock()
}

// pass hands on what comes, and holds it back while the relay is cut, its end too.
func (r *relay) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		whole := r.whole
		r.mu.Unlock()
		<-whole
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	select {
	case <-r.whole:
	default:
		close(r.whole)
	}
	for c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// network is the relays of all nodes.
type network struct {
	to func() string

	mu     sync.Mutex
	relays map[string]*relay
}

// address is where the agent on a node finds the proxies.
func (n *network) address(node string) (string, error) {
	r, err := n.of(node)
	if err != nil {
		return "", err
	}
	return r.address(), nil
}

func (n *network) of(node string) (*relay, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.relays[node]; r != nil {
		return r, nil
	}
	r, err := newRelay(n.to)
	if err == nil {
		n.relays[node] = r
	}
	return r, err
}

func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.relays {
		r.close()
	}
}
