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
	// A connection that is silent for pingAfter gets a ping, and is closed if that isn't answered within pingTimeout: a
	// proxy whose machine died would keep the watch open for minutes otherwise.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	idleConn    = 90 * time.Second
)

// newTransport returns a transport that reads the trusted certificates from CAFile for each new connection, since they
// are renewed at any time. An open connection was trusted when it was made, and stays.
func newTransport(cfg ProxyConfig) (http.RoundTripper, error) {
	if _, err := readCAs(cfg.CAFile); err != nil {
		return nil, err
	}
	d := &dialer{cfg: cfg}
	return &http.Transport{
		DialTLSContext:     d.dial,
		ForceAttemptHTTP2:  true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression: true,
		MaxIdleConns:       2,
		IdleConnTimeout:    idleConn,
	}, nil
}

// dialer connects to the proxy: at its address, or by its name when nothing with the right certificate answers there,
// as after its Service was created anew with another address. It begins with what worked last.
type dialer struct {
	cfg    ProxyConfig
	byName atomic.Bool
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	byName := d.byName.Load()
	conn, err := d.connect(ctx, network, addr, byName)
	if err != nil && d.cfg.Lookup != nil {
		d.byName.Store(!byName)
	}
	return conn, err
}

func (d *dialer) connect(ctx context.Context, network, addr string, byName bool) (net.Conn, error) {
	pool, err := readCAs(d.cfg.CAFile)
	if err != nil {
		return nil, err
	}
	addrs := []string{addr}
	if byName {
		if addrs, err = d.lookUp(ctx, addr); err != nil {
			return nil, err
		}
	}
	tcp := net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}
	var conn net.Conn
	for _, a := range addrs {
		// A name may have an IPv4 and an IPv6 address, of which only one is reachable.
		if conn, err = tcp.DialContext(ctx, network, a); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		ServerName: d.cfg.ServerName,
		NextProtos: []string{"h2", "http/1.1"},
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, errors.Wrapf(err, "trusting the proxy as %q by %s", d.cfg.ServerName, d.cfg.CAFile)
	}
	return secured, nil
}

// lookUp returns addr with each address of the proxy's name.
func (d *dialer) lookUp(ctx context.Context, addr string) ([]string, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errors.Wrap(err, "reading the proxy's address")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	hosts, err := d.cfg.Lookup(ctx, d.cfg.ServerName)
	if err == nil && len(hosts) == 0 {
		err = errors.New("it has no address")
	}
	if err != nil {
		return nil, errors.Wrapf(err, "looking up %s, since the proxy did not answer at %s", d.cfg.ServerName, addr)
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
