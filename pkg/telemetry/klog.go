package telemetry

import (
	"context"
	"log/slog"

	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// RedirectKlog sends what client-go logs to log: errors as warnings, all else for debugging, since the loops report
// their failures themselves. It is for commands: klog is global.
func RedirectKlog(log logrus.FieldLogger) {
	klog.SetSlogLogger(slog.New(handler{log: log}))
}

// handler is a slog.Handler in front of logrus.
type handler struct {
	log    logrus.FieldLogger
	prefix string
}

// Enabled reports whether a record is no more verbose than klog's level 0.
func (h handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	fields := logrus.Fields{}
	r.Attrs(func(a slog.Attr) bool {
		h.put(fields, a)
		return true
	})
	log := h.log.WithFields(fields)
	if r.Level >= slog.LevelError {
		log.Warn(r.Message)
	} else {
		log.Debug(r.Message)
	}
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := logrus.Fields{}
	for _, a := range attrs {
		h.put(fields, a)
	}
	h.log = h.log.WithFields(fields)
	return h
}

func (h handler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.prefix += name + "."
	}
	return h
}

func (h handler) put(fields logrus.Fields, a slog.Attr) {
	key := h.prefix + a.Key
	if a.Key == "err" {
		key = h.prefix + FieldError
	}
	fields[key] = a.Value.Resolve().Any()
}
