package authorizer

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/certificate"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube/access"
)

const (
	// headerTime bounds the TLS handshake too.
	headerTime = 5 * time.Second
	bodyTime   = 20 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 12 << 10
	// pingAfter is how long a connection may be silent before it gets a ping, and pingTime how long its answer may take: a
	// host that lost its power doesn't close its connections.
	pingAfter = 30 * time.Second
	pingTime  = 15 * time.Second
	// streams limits the requests of one connection; an agent needs two or three. frame and window are the smallest that
	// HTTP/2 allows.
	streams = 16
	frame   = 16 << 10
	window  = 64 << 10
	// drainTime is how long a shutdown waits for requests under way.
	drainTime = 10 * time.Second
)

// Proxy is the proxy's process: the server for agents and its certificate.
type Proxy struct {
	options Options
	client  kubernetes.Interface
	keeper  *certificate.Keeper
	handler *handler
	log     logrus.FieldLogger
	// maxUnauthenticated limits open connections without a good token.
	maxUnauthenticated int
}

// New returns a proxy that uses the API server of config; nothing runs yet. Options must be valid.
func New(o Options, config *rest.Config, r prometheus.Registerer, log logrus.FieldLogger) (*Proxy, error) {
	// The proxy has no rate limit of its own: those per agent and the API server's fairness are enough.
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, errors.Wrap(err, "making a client of the API server")
	}
	up, err := newUpstream(config)
	if err != nil {
		return nil, err
	}
	m := NewMetrics(r)
	keys := newKeys(func(ctx context.Context) ([]byte, error) {
		content, err := client.Discovery().RESTClient().Get().AbsPath(keysPath).SetHeader("Accept", "application/json, */*").DoRaw(ctx)
		return content, errors.Wrap(err, "reading "+keysPath)
	}, log)
	return &Proxy{
		options: o, client: client, log: log, maxUnauthenticated: maxUnauthenticated,
		keeper: certificate.NewKeeper(certificate.Config{
			Client: client, Namespace: o.Namespace, SecretName: o.SecretName, CAName: o.CAName, ServerName: o.ServerName,
			Life:     certificate.Life{CA: o.CALife, Serving: o.CertificateLife, Settle: o.CASettle},
			CertFile: o.CertFile, KeyFile: o.KeyFile, CertCAFile: o.CertCAFile,
			Now: time.Now, Log: log, Expires: m.expires,
		}),
		handler: &handler{
			reviewer: newReviewer(client, keys, o.Audience, o.Namespace, o.AgentAccount, time.Now, m),
			upstream: up, limits: newLRUMap[string](newLimit), patches: make(chan struct{}, patchesAtOnce), audit: newAuditor(log, m), metrics: m,
			enforcer: access.Enforcer{Missing: m.admission, Say: notRestricted, Log: log, Now: time.Now}, now: time.Now, log: log, trust: defaultTrust, stopping: context.Background(),
		},
	}, nil
}

// Run serves on the address of the options until ctx ends, then lets requests under way finish.
func (p *Proxy) Run(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", p.options.ServeAddress)
	if err != nil {
		return errors.Wrapf(err, "listening on %q", p.options.ServeAddress)
	}
	return p.Serve(ctx, l)
}

// Serve is Run on a listener, which it closes at the end.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.keeper.Run(ctx) })
	wg.Go(func() { p.handler.reviewer.keys.run(ctx) })
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	p.handler.stopping = stopping
	server := newServer(p.handler, p.keeper, p.log)
	failed := make(chan error, 1)
	wg.Go(func() {
		defer close(failed)
		if err := server.ServeTLS(limitConnections(l, p.maxUnauthenticated), "", ""); !errors.Is(err, http.ErrServerClosed) {
			failed <- errors.Wrap(err, "serving agents")
		}
	})
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Watches would go on for minutes: they end now, and agents watch through another replica.
	stop()
	drain, end := context.WithTimeout(context.Background(), drainTime)
	defer end()
	if err := server.Shutdown(drain); err != nil {
		_ = server.Close()
	}
	return <-failed
}

// newServer returns a server with a timeout for each read. Handlers set the deadlines of writes, since a watch may be
// long.
func newServer(h http.Handler, k *certificate.Keeper, log logrus.FieldLogger) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: k.GetCertificate},
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReadFrameSize: frame, MaxReceiveBufferPerConnection: window,
			MaxReceiveBufferPerStream: window, WriteByteTimeout: writeTime, SendPingTimeout: pingAfter, PingTimeout: pingTime},
		ConnContext: withConnection,
		ErrorLog:    debugLog(log),
	}
}

// Ready returns why agents can't be served; nil if there is a valid certificate and the API server answered lately.
func (p *Proxy) Ready() error { return p.keeper.Ready() }

func notRestricted(log logrus.FieldLogger) {
	log.Error("No admission policy restricts the proxy's account to what agents may write: apply update-operator.yaml whole, " +
		"and check that the policy update-operator-proxy matches this account")
}
