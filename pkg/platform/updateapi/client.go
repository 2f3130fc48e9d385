package updateapi

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/platform"
)

const (
	// DefaultSocket is where Bottlerocket's API server listens.
	DefaultSocket = "/run/api.sock"
	// DefaultBootIDPath is host-wide, and readable in any container without a mount.
	DefaultBootIDPath = "/proc/sys/kernel/random/boot_id"
	// DefaultTimeout is for one request. The server answers looks within milliseconds, but has one worker, which a slow
	// request blocks.
	DefaultTimeout = 10 * time.Second
)

// maxHeader bounds the headers of an answer, in bytes; real ones are below 200.
const maxHeader = 16 << 10

// Config says where the host is. The zero value is a real host with all defaults.
type Config struct {
	// Socket is the path of the API's socket; empty: DefaultSocket.
	Socket string
	// BootIDPath is the file with the kernel's boot ID; empty: DefaultBootIDPath.
	BootIDPath string
	// Timeout is for each request and its answer; 0 or less: DefaultTimeout.
	Timeout time.Duration
	// Transport replaces the socket, and BootID the file, of a simulated host. nil: the socket and the file.
	Transport http.RoundTripper
	BootID    func() (string, error)
}

// Client is a platform.Host. It is safe for concurrent use and holds no connection between requests.
type Client struct {
	socket  string
	timeout time.Duration
	http    *http.Client
	bootID  func() (string, error)
}

var _ platform.Host = (*Client)(nil)

// New returns a client. It doesn't connect: a host that isn't there shows at the first request.
func New(cfg Config) *Client {
	if cfg.Socket == "" {
		cfg.Socket = DefaultSocket
	}
	if cfg.BootIDPath == "" {
		cfg.BootIDPath = DefaultBootIDPath
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Transport == nil {
		cfg.Transport = socketTransport(cfg.Socket)
	}
	if cfg.BootID == nil {
		cfg.BootID = func() (string, error) { return readBootID(cfg.BootIDPath) }
	}
	return &Client{
		socket:  cfg.Socket,
		timeout: cfg.Timeout,
		bootID:  cfg.BootID,
		http: &http.Client{
			Transport: cfg.Transport,
			// The API has no redirects; one is an unexpected answer like any other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// socketTransport returns a transport with a new connection for each request: the server closes idle ones after 5 s,
// and a request on a closed connection may or may not have arrived.
func socketTransport(path string) *http.Transport {
	var d net.Dialer
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}
