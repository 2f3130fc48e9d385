package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	// A connection that is silent for pingAfter is asked if it lives, and dropped after pingTimeout:
	// a proxy whose host died would hold the watch for long minutes else.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	idleConn    = 90 * time.Second
)

// newTransport returns a transport that trusts, for each connection it makes, the certificates that
// stand in caFile at that moment: the system that makes them renews them at any time. A connection that
// stands was trusted when it was made and lives on.
func newTransport(cfg ProxyConfig) (http.RoundTripper, error) {
	if _, err := readCAs(cfg.CAFile); err != nil {
		return nil, err
	}
	w := &way{cfg: cfg}
	return &http.Transport{
		DialTLSContext:     w.dial,
		ForceAttemptHTTP2:  true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression: true,
		MaxIdleConns:       2,
		IdleConnTimeout:    idleConn,
	}, nil
}

// way is how the proxy is found: at its address, or by its name once nothing that can be trusted answers there, as when
// its Service was made anew with another address. Whichever worked last is tried next.
type way struct {
	cfg    ProxyConfig
	byName atomic.Bool
}

func (w *way) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	byName := w.byName.Load()
	conn, err := w.connect(ctx, network, addr, byName)
	if err != nil && w.cfg.Lookup != nil {
		w.byName.Store(!byName)
	}
	return conn, err
}

func (w *way) connect(ctx context.Context, network, addr string, byName bool) (net.Conn, error) {
	pool, err := readCAs(w.cfg.CAFile)
	if err != nil {
		return nil, err
	}
	addrs := []string{addr}
	if byName {
		if addrs, err = w.lookUp(ctx, addr); err != nil {
			return nil, err
		}
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}
	var conn net.Conn
	for _, a := range addrs {
		// A name may stand for an address of each family, of which one leads nowhere.
		if conn, err = dialer.DialContext(ctx, network, a); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		ServerName: w.cfg.ServerName,
		NextProtos: []string{"h2", "http/1.1"},
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, errors.Wrapf(err, "trusting the proxy as %q by %s", w.cfg.ServerName, w.cfg.CAFile)
	}
	return secured, nil
}

// lookUp returns addr with each address that the proxy's name stands for.
func (w *way) lookUp(ctx context.Context, addr string) ([]string, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errors.Wrap(err, "reading the proxy's address")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	hosts, err := w.cfg.Lookup(ctx, w.cfg.ServerName)
	if err == nil && len(hosts) == 0 {
		err = errors.New("it stands for no address")
	}
	if err != nil {
		return nil, errors.Wrapf(err, "looking up %s, since the proxy did not answer at %s", w.cfg.ServerName, addr)
	}
	for i := range hosts {
		hosts[i] = net.JoinHostPort(hosts[i], port)
	}
	return hosts, nil
}

func readCAs(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "reading the proxy's CA")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.Errorf("reading the proxy's CA: %s holds no certificate", path)
	}
	return pool, nil
}
