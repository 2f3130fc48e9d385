package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
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
func newTransport(serverName, caFile string) (http.RoundTripper, error) {
	if _, err := readCAs(caFile); err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			pool, err := readCAs(caFile)
			if err != nil {
				return nil, err
			}
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			secured := tls.Client(conn, &tls.Config{
				MinVersion: tls.VersionTLS13,
				RootCAs:    pool,
				ServerName: serverName,
				NextProtos: []string{"h2", "http/1.1"},
			})
			ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
			defer cancel()
			if err := secured.HandshakeContext(ctx); err != nil {
				_ = conn.Close()
				return nil, errors.Wrapf(err, "trusting the proxy as %q by %s", serverName, caFile)
			}
			return secured, nil
		},
		ForceAttemptHTTP2:  true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression: true,
		MaxIdleConns:       2,
		IdleConnTimeout:    idleConn,
	}, nil
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
