package telemetry

import (
	"io"
	"strings"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// The formats of log lines.
const (
	FormatText = "text"
	FormatJSON = "json"
)

const (
	// Levels and Formats list what NewLogger accepts, for the help texts of flags.
	Levels  = "error, warn, info, debug, trace"
	Formats = FormatText + ", " + FormatJSON
)

// NewLogger returns a logger that writes printable lines to out.
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
		log.SetFormatter(printable{&logrus.TextFormatter{FullTimestamp: true, DisableColors: true}, plain.Text})
	case FormatJSON:
		log.SetFormatter(printable{&logrus.JSONFormatter{}, plain.JSON})
	default:
		return nil, errors.Errorf("log format %q is not one of: %s", format, Formats)
	}
	return log, nil
}
