package authorizer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/certificate"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Start runs a proxy with its probes and metrics until ctx ends; it logs to out. Options must be valid.
func Start(ctx context.Context, o Options, out io.Writer) error {
	log, err := telemetry.NewLogger(out, o.LogLevel, o.LogFormat)
	if err != nil {
		return err
	}
	telemetry.RedirectKlog(log)
	config, err := kube.Config(o.Kubeconfig, "bottlerocket-update-operator/"+telemetry.Version+" proxy")
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	telemetry.RegisterBuildInfo(registry, "proxy")
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	p, err := New(o, config, registry, log)
	if err != nil {
		return err
	}
	log.WithFields(logrus.Fields{telemetry.FieldVersion: telemetry.Version, telemetry.FieldAddress: o.ServeAddress}).Info("Starting the proxy")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	ends := make(chan error, 2)
	for _, run := range []func(context.Context) error{p.Run, func(ctx context.Context) error {
		return telemetry.Serve(ctx, o.ListenAddress, telemetry.Config{Gatherer: registry, Ready: p.Ready, Log: log})
	}} {
		wg.Go(func() {
			defer cancel()
			ends <- run(ctx)
		})
	}
	wg.Wait()
	close(ends)
	for err := range ends {
		if err != nil {
			return err
		}
	}
	return nil
}

// Proxy serves agents.
type Proxy struct {
	options Options
	keeper  *certificate.Keeper
	handler *handler
	log     logrus.FieldLogger
}

// New wires a proxy; nothing runs yet.
func New(o Options, config *rest.Config, r prometheus.Registerer, log logrus.FieldLogger) (*Proxy, error) {
	// Every request of an agent is one or two of the proxy's: the API server's own fairness sets the pace.
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
	m := newMetrics(r)
	p := &Proxy{options: o, log: log}
	p.keeper = certificate.NewKeeper(certificate.Config{
		Client: client, Namespace: o.Namespace, SecretName: o.SecretName, CAName: o.CAName, ServerName: o.ServerName,
		Life:     certificate.Life{CA: o.CALife, Serving: o.CertificateLife, Settle: o.CASettle},
		CertFile: o.CertFile, KeyFile: o.KeyFile, CertCAFile: o.CertCAFile,
		Now: time.Now, Log: log, Expires: m.expires,
	})
	p.handler = &handler{
		reviewer: newReviewer(client, o.Audience, o.Namespace, o.AgentAccount),
		upstream: up, limits: newLimits(), metrics: m, now: time.Now, log: log,
	}
	return p, nil
}

// drainTime is how long a shutdown waits for requests under way.
const drainTime = 10 * time.Second

// Run serves until ctx ends, then lets requests under way finish.
func (p *Proxy) Run(ctx context.Context) error {
	l, err := net.Listen("tcp", p.options.ServeAddress)
	if err != nil {
		return errors.Wrapf(err, "listening on %q", p.options.ServeAddress)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { p.keeper.Run(ctx) })
	stopping, stop := context.WithCancel(context.Background())
	defer stop()
	p.handler.stopping = stopping
	server := &http.Server{
		Handler:           p.handler,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: p.keeper.GetCertificate},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          nil,
	}
	server.ErrorLog = quiet(p.log)
	failed := make(chan error, 1)
	wg.Go(func() {
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			failed <- errors.Wrap(err, "serving agents")
		}
		close(failed)
	})
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop()
	drain, end := context.WithTimeout(context.Background(), drainTime)
	defer end()
	if err := server.Shutdown(drain); err != nil {
		_ = server.Close()
	}
	return <-failed
}

// Ready tells if agents can be served: there is a certificate, and the API server was reached lately.
func (p *Proxy) Ready() error { return p.keeper.Ready() }
