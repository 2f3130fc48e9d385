package hostsim

import (
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/pkg/errors"
)

// Server serves a host's API on a unix socket. It can be closed and served again, any number of times:
// a restart of the API server, or a machine that was off. Its methods are safe for concurrent use.
type Server struct {
	host *Host

	mu  sync.Mutex
	now *serving
}

// serving is the time between a Serve and its Close.
type serving struct {
	host     *Host
	listener *net.UnixListener
	work     sync.WaitGroup

	mu     sync.Mutex
	conns  map[*net.UnixConn]struct{}
	closed bool
}

// NewServer returns a server that doesn't serve yet.
func NewServer(h *Host) *Server { return &Server{host: h} }

// Serve listens on the socket path, in place of a stale socket there, and returns as soon as a client
// can connect. Anything but a socket at path is an error.
func (s *Server) Serve(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		return errors.Errorf("serve on %s: already serving", path)
	}
	if err := removeSocket(path); err != nil {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return errors.Wrapf(err, "listen on %s", path)
	}
	// A server that dies leaves its socket behind, and no process answers on it.
	l.SetUnlinkOnClose(false)
	mode := os.FileMode(0o660)
	if errors.Is(s.host.connect(), syscall.EACCES) {
		mode = 0
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = l.Close()
		return errors.Wrapf(err, "set mode of %s", path)
	}
	s.now = &serving{host: s.host, listener: l, conns: map[*net.UnixConn]struct{}{}}
	s.now.work.Go(s.now.accept)
	return nil
}

func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "look for a stale socket at %s", path)
	}
	if info.Mode().Type() != os.ModeSocket {
		return errors.Errorf("serve on %s: there is something that isn't a socket", path)
	}
	return errors.Wrapf(os.Remove(path), "remove stale socket %s", path)
}

// Close cuts all connections and stops serving; the socket file stays, so that connections are refused
// until the next Serve. When it returns no goroutine of the server is left, but for those that are
// inside of Config.OnReboot. Closing a server that doesn't serve is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil
	}
	err := s.now.close()
	s.now = nil
	return errors.Wrap(err, "close the server's socket")
}

func (r *serving) close() error {
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	err := r.listener.Close()
	r.work.Wait()
	return err
}

// accept runs until the listener is closed.
func (r *serving) accept() {
	for {
		c, err := r.listener.AcceptUnix()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.closed {
			_ = c.Close()
		} else {
			r.conns[c] = struct{}{}
			r.work.Add(1)
			go r.talk(c)
		}
		r.mu.Unlock()
	}
}

// talk answers the requests of one connection.
func (r *serving) talk(c *net.UnixConn) {
	for again := true; again; {
		again = r.exchange(c)
	}
	_ = c.Close()
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	// Only now: OnReboot may well close the server, which waits for this connection.
	r.work.Done()
	r.host.Settle()
}
