package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"gotest.tools/v3/assert"
	"k8s.io/klog/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

func TestNewLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, "info", telemetry.FormatJSON)
	assert.NilError(t, err)
	log.WithField(telemetry.FieldNode, "n1").Info("Message")
	log.Debug("Unheard")
	assert.Assert(t, strings.Contains(out.String(), `"node":"n1"`), out.String())
	assert.Equal(t, strings.Count(out.String(), "\n"), 1)

	_, err = telemetry.NewLogger(&out, "info", telemetry.FormatText)
	assert.NilError(t, err)
	for _, level := range []string{"", "loud", "panic"} {
		_, err = telemetry.NewLogger(&out, level, telemetry.FormatText)
		assert.Error(t, err, fmt.Sprintf("log level %q is not one of: error, warn, info, debug, trace", level))
	}
	_, err = telemetry.NewLogger(&out, "info", "xml")
	assert.Error(t, err, `log format "xml" is not one of: text, json`)
}

func TestKlogIsQuieter(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.TraceLevel)
	t.Cleanup(klog.ClearLogger)
	telemetry.RedirectKlog(log)
	klog.V(4).Info("verbose")
	klog.InfoS("info", "a", "b")
	klog.ErrorS(errors.New("why"), "error")
	entries := hook.AllEntries()
	assert.Equal(t, len(entries), 2)
	assert.Equal(t, entries[0].Level, logrus.DebugLevel)
	assert.Equal(t, entries[0].Data["a"], "b")
	assert.Equal(t, entries[1].Level, logrus.WarnLevel)
	assert.Equal(t, fmt.Sprint(entries[1].Data[telemetry.FieldError]), "why")
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	assert.NilError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	assert.NilError(t, err)
	return resp.StatusCode, string(body)
}

// listening tells where a server said that it listens, through its log.
type listening chan string

func (l listening) Levels() []logrus.Level { return []logrus.Level{logrus.DebugLevel} }
func (l listening) Fire(e *logrus.Entry) error {
	l <- fmt.Sprint(e.Data[telemetry.FieldAddress])
	return nil
}

// serve returns the address of a server that lives as long as the test, and how to end it earlier.
func serve(t *testing.T, cfg telemetry.Config) (addr string, end func()) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	up := make(listening, 1)
	log.AddHook(up)
	cfg.Log = log
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- telemetry.Serve(ctx, "127.0.0.1:0", cfg) }()
	end = sync.OnceFunc(func() {
		cancel()
		assert.Check(t, <-ended)
	})
	t.Cleanup(end)
	select {
	case addr = <-up:
	case err := <-ended:
		t.Fatal(err)
	}
	return addr, end
}

func TestServe(t *testing.T) {
	registry := prometheus.NewRegistry()
	telemetry.RegisterBuildInfo(registry, "test")
	ready := make(chan error, 2)
	ready <- errors.New("not yet")
	ready <- nil
	addr, end := serve(t, telemetry.Config{
		Gatherer: registry,
		Ready:    func() error { return <-ready },
		Handlers: map[string]http.Handler{"/plan": http.NotFoundHandler()},
	})
	status, body := get(t, "http://"+addr+"/readyz")
	assert.Equal(t, status, 503)
	assert.Equal(t, body, "not yet\n")
	status, _ = get(t, "http://"+addr+"/readyz")
	assert.Equal(t, status, 200)
	status, _ = get(t, "http://"+addr+"/healthz")
	assert.Equal(t, status, 200)
	status, _ = get(t, "http://"+addr+"/plan")
	assert.Equal(t, status, 404)
	status, body = get(t, "http://"+addr+"/metrics")
	assert.Equal(t, status, 200)
	assert.Assert(t, strings.Contains(body, `bottlerocket_update_build_info{commit="`+telemetry.Commit+`",component="test"`), body)
	end()
}

func TestServeOnABadAddressFailsAtOnce(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	err := telemetry.Serve(t.Context(), "nowhere", telemetry.Config{Gatherer: prometheus.NewRegistry(), Log: log})
	assert.ErrorContains(t, err, `serving metrics and probes on "nowhere"`)
}
