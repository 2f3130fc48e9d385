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

// The paths that Serve always has.
const (
	PathMetrics = "/metrics"
	PathHealth  = "/healthz"
	PathReady   = "/readyz"
)

const (
	// readTimeout bounds the request. answerTimeout bounds the answer, furtherTimeout that of a further path, which may
	// have some MB for a slow reader.
	readTimeout    = 5 * time.Second
	answerTimeout  = 10 * time.Second
	furtherTimeout = 30 * time.Second
	idleTimeout    = 10 * time.Second
	// furtherAtOnce is how many requests of further paths are answered at once, turnTimeout how long another one waits.
	furtherAtOnce = 2
	turnTimeout   = 10 * time.Second
	// graceTimeout is for answers in flight when the server is told to end.
	graceTimeout = 5 * time.Second
	maxHeader    = 4 << 10
)

// MaxBody is the longest body that a request of a further path may have, in bytes. One byte more is read, and no other.
const MaxBody = 64 << 10

// Config says what Serve serves.
type Config struct {
	// Gatherer gives the metrics.
	Gatherer prometheus.Gatherer
	// Ready and Healthy answer the probes: nil is fine, an error is the text of a 503. A probe without a
	// function always answers ok.
	Ready, Healthy func() error
	// Handlers are further paths, such as /plan. Their answers may be large: two are made at once, and each has 30 s. Of a
	// request's body they see no more than a byte beyond MaxBody.
	Handlers map[string]http.Handler
	Log      logrus.FieldLogger
}

// Serve serves metrics and probes on addr until ctx ends, then lets the answers in flight finish and
// returns nil. It listens first, so an address that can't be used is an error at once.
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
		// Who still reads after the grace time is cut off; that is no failure of ours.
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
	turn := make(chan struct{}, furtherAtOnce)
	for path, h := range cfg.Handlers {
		m.Handle(path, inTurn(turn, h))
	}
	return m
}

// inTurn holds back an answer while others are made and read, for each of them may be large. The request's body is read
// before, so that a slow one holds up nothing.
func inTurn(turn chan struct{}, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		if err != nil {
			http.Error(w, "the request's body did not come", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(turnTimeout + answerTimeout))
		wait, cancel := context.WithTimeout(r.Context(), turnTimeout)
		defer cancel()
		select {
		case turn <- struct{}{}:
		case <-wait.Done():
			http.Error(w, "too many ask for this at the same time: try again", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-turn }()
		_ = control.SetWriteDeadline(time.Now().Add(furtherTimeout))
		h.ServeHTTP(w, r)
	})
}

func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if check != nil {
			if err := check(); err != nil {
				http.Error(w, plain.Line(err.Error(), maxWords), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}

// promLog is what promhttp wants for a logger.
type promLog struct{ log logrus.FieldLogger }

func (p promLog) Println(v ...any) { p.log.WithField(FieldMessage, v).Warn("Metrics are incomplete") }
