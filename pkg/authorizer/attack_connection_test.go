package authorizer

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
)

// dialFrom connects from another loopback address, without TLS.
func (b *battlefield) dialFrom(t *testing.T, address string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: slowest}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(b.p.url, "https://"))
	assert.NilError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// closedWithin fails unless the server ends a connection in time, whatever it says before.
func closedWithin(t *testing.T, conn net.Conn, most time.Duration) {
	t.Helper()
	assert.NilError(t, conn.SetReadDeadline(time.Now().Add(most)))
	_, err := io.Copy(io.Discard, conn)
	assert.Assert(t, !errors.Is(err, os.ErrDeadlineExceeded), "the connection is open after %s", most)
}

// isOpen reports whether nothing ended a connection so far; nothing is expected on it.
func isOpen(t *testing.T, conn net.Conn) bool {
	t.Helper()
	assert.NilError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// ask sends a request on a connection that stays open.
func ask(t *testing.T, conn net.Conn, request string) int {
	t.Helper()
	assert.NilError(t, conn.SetDeadline(time.Now().Add(slowest)))
	_, err := io.WriteString(conn, request)
	assert.NilError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	assert.NilError(t, err)
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	assert.NilError(t, err)
	return res.StatusCode
}

// TestAttackConnections holds that connections without a good token are few, short and small, and that those of agents
// don't feel them.
func TestAttackConnections(t *testing.T) {
	const most = 20
	few := func(p *Proxy) { p.maxUnauthenticated = most }
	t.Run("more than may be", func(t *testing.T) {
		b := newBattlefield(t, few)
		known, err := b.dial(t, tls.VersionTLS13)
		assert.NilError(t, err)
		defer known.Close()
		assert.Equal(t, ask(t, known, b.getRequest(b.token)), http.StatusOK)
		// This one is older than all of the attacker's, and has shown no token yet.
		quiet, err := b.dial(t, tls.VersionTLS13)
		assert.NilError(t, err)
		defer quiet.Close()
		var attackers []net.Conn
		for i := range 3 * most {
			attackers = append(attackers, b.dialFrom(t, fmt.Sprintf("127.0.0.%d", 2+i%3)))
		}
		until(t, func() error {
			open := 0
			for _, c := range attackers {
				if isOpen(t, c) {
					open++
				}
			}
			if open >= most {
				return errors.Errorf("%d connections without a good token are open", open+1)
			}
			return nil
		})
		assert.Equal(t, ask(t, quiet, b.getRequest(b.token)), http.StatusOK)
		assert.Equal(t, ask(t, known, b.getRequest(b.token)), http.StatusOK)
	})
	t.Run("many by one agent", func(t *testing.T) {
		b := newBattlefield(t)
		var all []net.Conn
		for range 2*agentConnections + 1 {
			conn, err := b.dial(t, tls.VersionTLS13)
			assert.NilError(t, err)
			defer conn.Close()
			assert.Equal(t, ask(t, conn, b.getRequest(b.token)), http.StatusOK)
			all = append(all, conn)
		}
		for _, conn := range all[:agentConnections+1] {
			closedWithin(t, conn, 10*time.Second)
		}
		assert.Equal(t, ask(t, all[2*agentConnections], b.getRequest(b.token)), http.StatusOK)
	})
	t.Run("a client that goes on after a refusal", func(t *testing.T) {
		b := newBattlefield(t)
		conn, err := b.dial(t, tls.VersionTLS13)
		assert.NilError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, b.getRequest("nonsense"))
		assert.NilError(t, err)
		closedWithin(t, conn, 10*time.Second)
	})
	t.Run("a greeting without end", func(t *testing.T) {
		b := newBattlefield(t)
		conn := b.dialFrom(t, "127.0.0.1")
		// One message of TLS may be 64 KiB, in records of 16.
		message := append([]byte{1, 0, 0xff, 0x00}, make([]byte, 60<<10)...)
		for record := message; len(record) > 0; {
			n := min(len(record), 16<<10)
			if _, err := conn.Write(append([]byte{22, 3, 1, byte(n >> 8), byte(n)}, record[:n]...)); err != nil {
				break
			}
			record = record[n:]
		}
		closedWithin(t, conn, headerTime-time.Second)
	})
}

// TestConnectionsInTime holds that a connection without a good token ends by itself, and an agent's doesn't.
func TestConnectionsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipes := make(pipeListener)
		l := limitConnections(pipes, maxUnauthenticated)
		accept := func() (server *connection, client net.Conn) {
			near, far := net.Pipe()
			go func() { pipes <- far }()
			c, err := l.Accept()
			assert.NilError(t, err)
			return c.(*connection), near
		}
		unknown, peer := accept()
		agents, agentsPeer := accept()
		agents.authenticate("a")
		agents.authenticate("b")
		ended := make(chan struct{})
		go func() {
			_, _ = peer.Read(make([]byte, 1))
			close(ended)
		}()
		time.Sleep(authTime - time.Second)
		synctest.Wait()
		select {
		case <-ended:
			t.Error("a connection without a good token ended early")
		default:
		}
		time.Sleep(time.Second)
		<-ended
		unknown.authenticate("a")
		assert.Equal(t, l.unauthenticated.Len(), 0)
		assert.Equal(t, len(l.agents["a"]), 1, "one that is closed is no agent's")
		assert.Equal(t, len(l.agents["b"]), 0, "the first agent counts")
		go func() { _, _ = agentsPeer.Write(make([]byte, 2*authBytes)) }()
		_, err := io.ReadFull(agents, make([]byte, 2*authBytes))
		assert.NilError(t, err)
		assert.NilError(t, agents.Close())
		assert.Equal(t, len(l.agents)+l.unauthenticated.Len(), 0)
	})
}

type pipeListener chan net.Conn

func (p pipeListener) Accept() (net.Conn, error) { return <-p, nil }
func (p pipeListener) Close() error              { return nil }
func (p pipeListener) Addr() net.Addr            { return &net.TCPAddr{} }

// TestHTTP2Settings holds what a connection in HTTP/2 may occupy.
func TestHTTP2Settings(t *testing.T) {
	b := newBattlefield(t)
	conn := tls.Client(b.dialFrom(t, "127.0.0.1"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	assert.NilError(t, conn.SetDeadline(time.Now().Add(slowest)))
	_, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	assert.NilError(t, err)
	var head [9]byte
	_, err = io.ReadFull(conn, head[:])
	assert.NilError(t, err)
	payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(conn, payload)
	assert.NilError(t, err)
	settings := map[uint16]uint32{}
	for r := bytes.NewReader(payload); r.Len() > 0; {
		var s struct {
			ID    uint16
			Value uint32
		}
		assert.NilError(t, binary.Read(r, binary.BigEndian, &s))
		settings[s.ID] = s.Value
	}
	// RFC 9113, section 6.5.2: streams, window, frame.
	assert.Equal(t, settings[3], uint32(streams))
	assert.Equal(t, settings[4], uint32(window))
	assert.Equal(t, settings[5], uint32(frame))
	assert.Assert(t, settings[6] < maxHeader+5<<10, "%d bytes of headers", settings[6])
}
