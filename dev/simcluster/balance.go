package simcluster

import (
	"context"
	"net"
	"sync"

	"github.com/pkg/errors"
)

// balancer stands in for the proxies' Service: it takes connections on one address and hands each to
// one of the pods that answer.
type balancer struct {
	listener net.Listener
	conns    sync.WaitGroup

	mu   sync.Mutex
	pods []string // addresses, the next one to try first
	open map[net.Conn]bool
}

func newBalancer() (*balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listening for the proxies' Service")
	}
	b := &balancer{listener: l, open: map[net.Conn]bool{}}
	b.conns.Go(b.accept)
	return b, nil
}

func (b *balancer) address() string { return b.listener.Addr().String() }

// add makes a pod known. One that doesn't answer any more is passed over.
func (b *balancer) add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.pods {
		if a == address {
			return
		}
	}
	b.pods = append(b.pods, address)
}

func (b *balancer) accept() {
	for {
		c, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.conns.Go(func() { b.serve(c) })
	}
}

func (b *balancer) serve(in net.Conn) {
	out := b.dial()
	if out == nil {
		_ = in.Close()
		return
	}
	b.mu.Lock()
	b.open[in], b.open[out] = true, true
	b.mu.Unlock()
	join(in, out)
	b.mu.Lock()
	delete(b.open, in)
	delete(b.open, out)
	b.mu.Unlock()
}

func (b *balancer) dial() net.Conn {
	b.mu.Lock()
	if len(b.pods) > 1 {
		b.pods = append(b.pods[1:], b.pods[0])
	}
	pods := append([]string(nil), b.pods...)
	b.mu.Unlock()
	for _, a := range pods {
		if c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", a); err == nil {
			return c
		}
	}
	return nil
}

func (b *balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.conns.Wait()
}
