package telemetry_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
	"gotest.tools/v3/assert"
	"k8s.io/klog/v2"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

var at = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

type stringer string

func (s stringer) String() string { return string(s) }

// TestAttackLogs: whatever is logged, in each format a log line is one printable line of bounded values.
func TestAttackLogs(t *testing.T) {
	t.Cleanup(klog.ClearLogger)
	for _, format := range []string{telemetry.FormatText, telemetry.FormatJSON} {
		for name, word := range hostile.Words() {
			t.Run(format+"/"+name, func(t *testing.T) {
				var out bytes.Buffer
				log, err := telemetry.NewLogger(&out, "debug", format)
				assert.NilError(t, err)
				log.WithFields(logrus.Fields{"text": word, "typed": stringer(word), "list": []string{word}, "map": map[string]any{word: word}, "struct": struct{ A *string }{&word},
					word: 1, "bytes": []byte(word)}).WithError(errors.New(word)).Info(word)
				telemetry.RedirectKlog(log)
				klog.ErrorS(errors.New(word), word, "key", word)
				klog.Warningf("%s", word)
				assert.Equal(t, strings.Count(out.String(), "\n"), 3, "%q", out.String())
				said := out.String()
				if name == "very long" || name == "a very long number" {
					// What is behind a pointer isn't measured.
					said = strings.ReplaceAll(said, word, "")
				}
				assert.NilError(t, hostile.Obeyed(said))
			})
		}
	}
}

// What is logged honestly is logged as it was.
func TestHonestLogs(t *testing.T) {
	for format, new := range map[string]logrus.Formatter{
		telemetry.FormatText: &logrus.TextFormatter{FullTimestamp: true, DisableColors: true}, telemetry.FormatJSON: &logrus.JSONFormatter{}} {
		var out, want bytes.Buffer
		log, err := telemetry.NewLogger(&out, "info", format)
		assert.NilError(t, err)
		plainly := logrus.New()
		plainly.SetOutput(&want)
		plainly.SetFormatter(new)
		for _, l := range []*logrus.Logger{log, plainly} {
			l.WithFields(logrus.Fields{"node": "ü 漢字", "count": 3, "duration": 90, "list": []string{"a", "b"}, "none": nil, "yes": true}).WithError(errors.New("why: \"x\"")).
				WithTime(at).Info("Message")
		}
		assert.Equal(t, out.String(), want.String())
	}
}

// TestAttackProbes: a probe's answer is one printable line.
func TestAttackProbes(t *testing.T) {
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			log, err := telemetry.NewLogger(&bytes.Buffer{}, "info", telemetry.FormatText)
			assert.NilError(t, err)
			h := telemetry.Mux(telemetry.Config{Ready: func() error { return errors.New(word) }, Log: log})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, telemetry.PathReady, nil))
			assert.NilError(t, hostile.Obeyed(w.Body.String()))
			assert.Equal(t, strings.Count(w.Body.String(), "\n"), 1, fmt.Sprintf("%q", w.Body))
		})
	}
}
