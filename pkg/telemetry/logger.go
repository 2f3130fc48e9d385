package telemetry

import (
	"io"
	"strings"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
)

// The formats of log lines.
const (
	FormatText = "text"
	FormatJSON = "json"
)

const (
	// Levels and Formats are what NewLogger takes, for the help of flags.
	Levels  = "error, warn, info, debug, trace"
	Formats = FormatText + ", " + FormatJSON
)

// NewLogger returns a logger that writes to out.
func NewLogger(out io.Writer, level, format string) (*logrus.Logger, error) {
	parsed, err := logrus.ParseLevel(level)
	if err != nil || parsed < logrus.ErrorLevel {
		return nil, errors.Errorf("log level %q is not one of: %s", level, Levels)
	}
	log := logrus.New()
	log.SetOutput(out)
	log.SetLevel(parsed)
	switch strings.ToLower(format) {
	case FormatText:
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, DisableColors: true})
	case FormatJSON:
		log.SetFormatter(&logrus.JSONFormatter{})
	default:
		return nil, errors.Errorf("log format %q is not one of: %s", format, Formats)
	}
	return log, nil
}
