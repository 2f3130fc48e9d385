package telemetry

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// The paths that Serve always serves.
const (
	PathMetrics = "/metrics"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
)

const (
	// readTimeout bounds the request, answerTimeout the answer, and furtherTimeout the answer of a further path, which may
	// be some MB for a slow reader.
	readTimeout    = 5 * time.Second
	answerTimeout  = 10 * time.Second
	furtherTimeout = 30 * time.Second
	idleTimeout    = 10 * time.Second
	// furtherAtOnce is how many requests of further paths are answered at once, queueTimeout how long another one waits.
	furtherAtOnce = 2
	queueTimeout  = 10 * time.Second
	// graceTimeout is for answers in flight when the server shuts down.
	graceTimeout = 5 * time.Second
	maxHeader    = 4 << 10
)

// MaxBody is the longest body of a request of a further path, in bytes. A handler sees one byte more of a longer one,
// so that it can refuse it.
const MaxBody = 64 << 10

// Config is what Serve serves.
type Config struct {
	Gatherer prometheus.Gatherer
	// Ready and Healthy answer the probes: with ok, or with an error as the text of a 503. Without a function, a probe
	// always answers ok.
	Ready, Healthy func() error
	// Handlers are further paths, such as /plan. Their answers may be large: two are made at once, and each has 30 s.
	Handlers map[string]http.Handler
	Log      logrus.FieldLogger
}

// Serve serves metrics and probes on addr until ctx ends, then lets the answers in flight finish and returns nil. An
// address that can't be used is an error at once.
func Serve(ctx context.Context, addr string, cfg Config) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Wrapf(err, "serving metrics and probes on %q", addr)
	}
	cfg.Log.WithField(FieldAddress, l.Addr().String()).Debug("Serving metrics and probes")
	return serve(ctx, l, cfg)
}

func serve(ctx context.Context, l net.Listener, cfg Config) error {
	srv := &http.Server{
		Handler:           mux(cfg),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(limitConnections(l)) }()
	select {
	case err := <-failed:
		return errors.Wrapf(err, "serving metrics and probes on %q", l.Addr())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTimeout)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		// A client that still reads after the grace time is cut off; that is no failure of the server.
		_ = srv.Close()
	}
	<-failed
	return nil
}

func mux(cfg Config) http.Handler {
	m := http.NewServeMux()
	m.Handle("GET "+PathMetrics, promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{
		ErrorLog:           promLog{cfg.Log},
		ErrorHandling:      promhttp.ContinueOnError,
		DisableCompression: true,
	}))
	m.Handle("GET "+PathHealth, probe(cfg.Healthy))
	m.Handle("GET "+PathReady, probe(cfg.Ready))
	slots := make(chan struct{}, furtherAtOnce)
	for path, h := range cfg.Handlers {
		m.Handle(path, queued(slots, h))
	}
	return m
}

// queued makes a handler wait for a slot, because answers may be large. The request's body is read before, so that a
// slow client holds no slot.
func queued(slots chan struct{}, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		if err != nil {
			http.Error(w, "the request's body could not be read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(queueTimeout + answerTimeout))
		wait, cancel := context.WithTimeout(r.Context(), queueTimeout)
		defer cancel()
		select {
		case slots <- struct{}{}:
		case <-wait.Done():
			http.Error(w, "too many requests at the same time: try again", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-slots }()
		_ = control.SetWriteDeadline(time.Now().Add(furtherTimeout))
		h.ServeHTTP(w, r)
	})
}

func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if check != nil {
			if err := check(); err != nil {
				http.Error(w, plain.Line(err.Error(), maxText), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}

// promLog implements promhttp.Logger.
type promLog struct{ log logrus.FieldLogger }

func (p promLog) Println(v ...any) { p.log.WithField(FieldMessage, v).Warn("Metrics are incomplete") }
