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
)

const (
	// headerTime bounds the TLS handshake too.
	headerTime = 5 * time.Second
	bodyTime   = 20 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 12 << 10
	// A connection that is silent for pingAfter is asked if somebody is there: a host that lost its power
	// says no good-bye.
	pingAfter = 30 * time.Second
	pingTime  = 15 * time.Second
	// streams of one connection; an agent needs two or three. frame and window are what HTTP/2 allows least: of a
	// frame, and of bodies that were sent and not read yet.
	streams = 16
	frame   = 16 << 10
	window  = 64 << 10
	// drainTime is how long a shutdown waits for requests under way.
	drainTime = 10 * time.Second
)

// Proxy serves agents.
type Proxy struct {
	options Options
	client  kubernetes.Interface
	keeper  *certificate.Keeper
	handler *handler
	log     logrus.FieldLogger
	// strangers is how many connections are open without a good token.
	strangers int
}

// New wires a proxy that reaches the API server by config; nothing runs yet. Options must be valid.
func New(o Options, config *rest.Config, r prometheus.Registerer, log logrus.FieldLogger) (*Proxy, error) {
	// Every request of an agent is one or two of the proxy's: the limits per agent and the API server's own
	// fairness set the pace.
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
		options: o, client: client, log: log, strangers: mostStrangers,
		keeper: certificate.NewKeeper(certificate.Config{
			Client: client, Namespace: o.Namespace, SecretName: o.SecretName, CAName: o.CAName, ServerName: o.ServerName,
			Life:     certificate.Life{CA: o.CALife, Serving: o.CertificateLife, Settle: o.CASettle},
			CertFile: o.CertFile, KeyFile: o.KeyFile, CertCAFile: o.CertCAFile,
			Now: time.Now, Log: log, Expires: m.expires,
		}),
		handler: &handler{
			reviewer: newReviewer(client, keys, o.Audience, o.Namespace, o.AgentAccount, time.Now),
			upstream: up, limits: newKept[string](newLimit), patches: make(chan struct{}, patchesAtOnce), audit: newAuditor(log, m), metrics: m,
			admission: admission{missing: m.admission, log: log, now: time.Now}, now: time.Now, log: log, trust: defaultTrust, stopping: context.Background(),
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

// Serve is Run on a listener, which it closes.
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
		if err := server.ServeTLS(limitConnections(l, p.strangers), "", ""); !errors.Is(err, http.ErrServerClosed) {
			failed <- errors.Wrap(err, "serving agents")
		}
	})
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Watches would go on for minutes: they end now, and agents open them with another replica.
	stop()
	drain, end := context.WithTimeout(context.Background(), drainTime)
	defer end()
	if err := server.Shutdown(drain); err != nil {
		_ = server.Close()
	}
	return <-failed
}

// newServer returns a server that nobody can hold up. Answers have deadlines of their own, for a watch
// has no end.
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
		ErrorLog:    quiet(log),
	}
}

// Ready tells if agents can be served: there is a certificate that is valid, and the API server was
// reached lately.
func (p *Proxy) Ready() error { return p.keeper.Ready() }
